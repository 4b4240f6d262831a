// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package tutorials_test

import (
	"slices"
	"strings"
	"testing"
)

func TestWhatIsReadOfAPage(t *testing.T) {
	t.Parallel()
	all, err := blocksOf("# Page\n\n<!-- run: in terminal 2; stays -->\n```console\n$ a \\\n  b\n1\n$ c\n```\n\n<!-- file: x/y -->\n````\n```yaml\n```\n````\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].line != 4 || all[0].terminal != 2 || !all[0].stays || all[1].file != "x/y" || !slices.Equal(all[1].text, []string{"```yaml", "```"}) {
		t.Fatalf("the blocks are %+v", all)
	}
	steps, err := all[0].steps()
	if err != nil {
		t.Fatal(err)
	}
	if len(steps) != 2 || steps[0].command != "a \\\n  b" || !slices.Equal(steps[0].want, []string{"1"}) || steps[1].command != "c" || steps[1].want != nil {
		t.Errorf("the steps are %+v", steps)
	}
	unprompted := block{text: []string{"make a", "make b"}}
	if steps, err := unprompted.steps(); err != nil || len(steps) != 2 || steps[1].command != "make b" {
		t.Errorf("without prompts the steps are %+v, %v", steps, err)
	}
}

func TestAPageThatCannotBeFollowed(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]string{
		"```console\n$ a":                                "the block of line 1 has no end",
		"<!-- run: stays -->\nText.":                     "line 1: <!-- run: stays --> is not before a block",
		"<!-- run: in terminal two -->\n```console\n```": `line 1: "in terminal two" is not one of`,
	} {
		if _, err := blocksOf(page); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: the error is %v, want %s", page, err, want)
		}
	}
	if _, err := (block{text: []string{"1", "$ a"}}).steps(); err == nil {
		t.Error("a block that begins with what a command wrote has no error")
	}
}

func TestWhatDiffersIsFound(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want, got, lacks string
		either           []string
	}{
		"the same":                {want: "a\nb", got: "a\n\nb"},
		"few places":              {want: "web 1 s node-00[01,11,17]", got: "web 2 s node-000[2,8-9]"},
		"times, ports and places": {want: "at 127.0.0.1:1, 3 s, 2m15s, node-00[00-02]", got: "at 127.0.0.1:22, 0.5 s, 7m1s, node-00[03,07]"},
		"let in or not":           {want: "gang Inqueue 4 pods", got: "gang Pending 4 pods"},
		"it runs":                 {want: "gang Inqueue", got: "gang Running", lacks: "gang PHASE"},
		"another number":          {want: "3/4 pods", got: "2/4 pods", lacks: "3/4 pods"},
		"another node's count":    {want: "20 nodes", got: "19 nodes", lacks: "20 nodes"},
		"a line too few":          {want: "a\nb", got: "a", lacks: "b"},
		"a line too many":         {want: "a", got: "a\nb", lacks: "nothing more, before b"},
		"another order":           {want: "a\nb", got: "b\na", lacks: "a"},
		"left out":                {want: "a\n...\nb", got: "a\n1\n2\nb"},
		"left out, and then more": {want: "a\n...\nb", got: "a\n1\nb\n2", lacks: "b"},
		"the rest is left out":    {want: "a\n...", got: "a\nb"},
		"the start is left out":   {want: "...\nb", got: "a\nb"},
		"not together":            {want: "...\na\nb\n...", got: "a\n1\nb", lacks: "b"},
		"the second place is it":  {want: "...\na\nb\n...", got: "a\n1\na\nb\n2"},
		"the rest of a line":      {want: "a: ...", got: "a: 1"},
		"not its beginning":       {want: "a: ...", got: "b: 1", lacks: "a: ..."},
		"places changed":          {want: "x 1\ny 2", got: "x 2\ny 1", either: []string{"x", "y"}},
		"places not changed":      {want: "x 1\ny 2", got: "x 1\ny 2", either: []string{"x", "y"}},
		"both at one place":       {want: "x 1\ny 2", got: "x 1\ny 1", either: []string{"x", "y"}, lacks: "y 2"},
	} {
		if line, no := missing(strings.Split(c.want, "\n"), strings.Split(c.got, "\n"), c.either); line != c.lacks || no != (c.lacks != "") {
			t.Errorf("%s: it lacks %q, want %q", name, line, c.lacks)
		}
	}
}
