// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/caldera-scheduler/caldera/internal/demo/history"
)

var someRows = []history.Row{
	{Name: "train", Queue: "default", Min: 8, Pending: 8, Phase: "Inqueue", Reason: strings.Repeat("no room at all ", 20)},
	{Name: "web", Running: 3},
}

func TestLinesAreAppendedForChangesOnly(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := &lines{out: &out, shown: map[string]history.Row{}}
	rows := []history.Row{{Name: "train", Min: 2, Pending: 2, Phase: "Inqueue", Reason: "no room"}}
	l.draw(time.Second, "", rows)
	l.draw(2*time.Second, "", rows)
	rows[0] = history.Row{Name: "train", Min: 2, Running: 2, Phase: "Running"}
	l.draw(3*time.Second, "", rows)
	want := "" +
		"   1.0s  train        2 pending   0 bound   0 running   0 done  min 2   Inqueue    no room\n" +
		"   3.0s  train        0 pending   0 bound   2 running   0 done  min 2   Running\n"
	if out.String() != want {
		t.Errorf("wrote\n%swant\n%s", out.String(), want)
	}
}

func TestNoLineOfTheTableIsWiderThanTheTerminal(t *testing.T) {
	t.Parallel()
	for _, width := range []int{40, 80, 200} {
		for line := range strings.Lines(rowTable(someRows, width)) {
			if got := utf8.RuneCountInString(strings.TrimRight(line, "\n")); got > width {
				t.Errorf("on %d columns a line takes %d:\n%s", width, got, line)
			}
		}
	}
}

func TestLiveTableIsDrawnOverItself(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := &live{out: &out, size: func() (int, int) { return 80, 24 }}
	l.draw(time.Second, "title", someRows)
	lines := strings.Count(out.String(), "\n")
	out.Reset()
	l.draw(2*time.Second, "title", someRows)
	if want := "\x1b[" + string(rune('0'+lines)) + "A\r\x1b[J"; !strings.HasPrefix(out.String(), want) {
		t.Errorf("the second drawing of %d lines begins with %q, want %q", lines, out.String()[:10], want)
	}
}

func TestProgramHasScenesForAllExamples(t *testing.T) {
	t.Parallel()
	list, err := Scenes()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, s := range list {
		for _, w := range s.Workloads {
			if names[w.Name] {
				t.Errorf("two workloads are called %s", w.Name)
			}
			names[w.Name] = true
			if w.Pods < w.Min || w.Pods == 0 {
				t.Errorf("%s: %+v", s.File, w)
			}
		}
	}
	if len(names) != 7 {
		t.Errorf("workloads %v, want 7", names)
	}
}
