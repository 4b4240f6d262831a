// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package tutorials_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// block is what is between two fences of a page.
type block struct {
	// line is that of the page on which it begins, from 1.
	line     int
	language string
	text     []string
	how
}

// how is what the comment before a block says of it. Readers do not see it.
//
//	<!-- run: in terminal 2 -->                in another terminal; the page stays there
//	<!-- run: stays -->                        its last command goes on until the page is over
//	<!-- run: on a screen -->                  what it writes to is a terminal
//	<!-- run: on another cluster -->           than the block before
//	<!-- run: gang-a or gang-b first -->       from here on the two names may have changed places, as chance has it
//	<!-- run: in terminal 2; stays -->         both
//	<!-- not run: it takes hours -->           and why
//	<!-- output of: make try -->               what a command wrote that was run before
//	<!-- file: pkg/plugins/registry.go -->     a file that the reader writes
type how struct {
	terminal        int
	stays, onScreen bool
	otherCluster    bool
	either          []string
	notRun, output  string
	file            string
}

var (
	fence   = regexp.MustCompile("^(`{3,})([a-z]*)$")
	comment = regexp.MustCompile(`^<!-- (run|not run|output of|file): (.+) -->$`)
)

// blocksOf finds the blocks of a page. The error says which line is wrong.
func blocksOf(page string) ([]block, error) {
	var all []block
	var open string
	said := ""
	for i, line := range strings.Split(page, "\n") {
		at := fence.FindStringSubmatch(line)
		switch {
		case open != "" && line == open:
			open = ""
		case open != "":
			last := &all[len(all)-1]
			last.text = append(last.text, line)
		case at != nil:
			how, err := howOf(said)
			if err != nil {
				return nil, fmt.Errorf("line %d: %w", i, err)
			}
			all = append(all, block{line: i + 1, language: at[2], how: how})
			open, said = at[1], ""
		case said != "":
			return nil, fmt.Errorf("line %d: %s is not before a block", i, said)
		case comment.MatchString(line):
			said = line
		}
	}
	if open != "" {
		return nil, fmt.Errorf("the block of line %d has no end", all[len(all)-1].line)
	}
	return all, nil
}

var (
	inTerminal = regexp.MustCompile(`^in terminal ([1-9])$`)
	eitherOf   = regexp.MustCompile(`^([-a-z]+) or ([-a-z]+) first$`)
)

func howOf(said string) (how, error) {
	if said == "" {
		return how{}, nil
	}
	at := comment.FindStringSubmatch(said)
	switch at[1] {
	case "not run":
		return how{notRun: at[2]}, nil
	case "output of":
		return how{output: at[2]}, nil
	case "file":
		return how{file: at[2]}, nil
	}
	var h how
	for part := range strings.SplitSeq(at[2], "; ") {
		switch number, two := inTerminal.FindStringSubmatch(part), eitherOf.FindStringSubmatch(part); {
		case number != nil:
			h.terminal, _ = strconv.Atoi(number[1]) // one digit
		case two != nil:
			h.either = two[1:]
		case part == "stays":
			h.stays = true
		case part == "on a screen":
			h.onScreen = true
		case part == "on another cluster":
			h.otherCluster = true
		default:
			return how{}, fmt.Errorf(`%q is not one of "in terminal N", "stays", "on a screen", "on another cluster", "X or Y first"`, part)
		}
	}
	return h, nil
}

// step is a command of a block, and what the page says that it writes; nothing if it says nothing.
type step struct {
	command string
	want    []string
}

// steps are the commands of a block. Those begin with "$ ", unless all of its lines are commands.
func (b block) steps() ([]step, error) {
	prompted := slices.ContainsFunc(b.text, func(line string) bool { return strings.HasPrefix(line, "$ ") })
	var all []step
	goesOn := false
	for _, line := range b.text {
		command, ok := strings.CutPrefix(line, "$ ")
		switch {
		case goesOn:
			all[len(all)-1].command += "\n" + line
		case ok || !prompted:
			all = append(all, step{command: command})
		case len(all) == 0:
			return nil, errors.New("what a command writes has no command before it")
		default:
			all[len(all)-1].want = append(all[len(all)-1].want, line)
			continue
		}
		goesOn = strings.HasSuffix(line, `\`)
	}
	return all, nil
}

// What differs from run to run is the same for the comparison: times, ports, folders for a while, which nodes were taken, and whether a job that waits was let in
// before its pods were there.
var differing = []struct {
	is  *regexp.Regexp
	say string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`/dev/shm/localcluster-\d+`), "FOLDER"},
	{regexp.MustCompile(`\bnode-(\d{4}|\d{2,3}\[[-,0-9]+\])`), "NODES"},
	{regexp.MustCompile(`\b\d+(\.\d+)?( ?(ms|s|m|h|d)\b|(m|h)\d+(s|m)\b)`), "TIME"},
	{regexp.MustCompile(`\b(Inqueue|Pending)\b`), "PHASE"},
	{regexp.MustCompile(`[ ─]+`), " "},
}

func plain(line string) string {
	for _, d := range differing {
		line = d.is.ReplaceAllString(line, d.say)
	}
	return strings.TrimSpace(line)
}

// missing is the first line of want that got does not have in its place; false if got is as the page says. A line "..." of want stands for any lines, and at the
// end of one for the rest of it. Empty lines do not count. If two names may have changed places, the lines in which they have may have, too.
func missing(want, got, either []string) (string, bool) {
	line, no := lacks(want, got, inOrder)
	if no && either != nil {
		swap := strings.NewReplacer(either[0], either[1], either[1], either[0])
		swapped := strings.Split(swap.Replace(strings.Join(want, "\n")), "\n")
		if _, still := lacks(swapped, got, inAnyOrder); !still {
			return "", false
		}
	}
	return line, no
}

// lacks is missing for names that are where they are; has counts how many lines of a part the lines have at their beginning.
func lacks(want, got []string, has func(part, lines []string) int) (string, bool) {
	parts := [][]string{nil}
	for _, line := range filled(want) {
		if line == "..." {
			parts = append(parts, nil)
			continue
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], line)
	}
	rest := filled(got)
	for i, part := range parts {
		from, to := 0, len(rest)
		if i == 0 {
			to = 0
		}
		if i > 0 && i == len(parts)-1 && len(part) > 0 {
			from = max(0, len(rest)-len(part))
		}
		at, best := from, 0
		for ; at <= to; at++ {
			n := has(part, rest[at:])
			if best = max(best, n); n == len(part) {
				break
			}
		}
		if best < len(part) {
			return part[best], true
		}
		rest = rest[at+len(part):]
	}
	if len(parts) == 1 && len(rest) > 0 {
		return "nothing more, before " + rest[0], true
	}
	return "", false
}

func inOrder(part, lines []string) int {
	n := 0
	for n < len(part) && n < len(lines) && same(part[n], lines[n]) {
		n++
	}
	return n
}

func inAnyOrder(part, lines []string) int {
	left := slices.Clone(lines[:min(len(part), len(lines))])
	for n, want := range part {
		at := slices.IndexFunc(left, func(line string) bool { return same(want, line) })
		if at < 0 {
			return n
		}
		left = slices.Delete(left, at, at+1)
	}
	return len(part)
}

// filled are the lines as they are compared, without empty ones.
func filled(lines []string) []string {
	all := make([]string, 0, len(lines))
	for _, line := range lines {
		if line = plain(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

func same(want, got string) bool {
	begin, cut := strings.CutSuffix(want, "...")
	return got == want || cut && strings.HasPrefix(got, begin)
}
