// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package processor_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/test/perf/harness/workload/processor"
)

func TestSharesGoRound(t *testing.T) {
	for name, tc := range map[string]struct {
		processors   []int
		among, round int
		want         [][]int
	}{
		"one each":                    {[]int{0, 1}, 2, 0, [][]int{{0}, {1}}},
		"changed in the second round": {[]int{0, 1}, 2, 1, [][]int{{1}, {0}}},
		"and back in the third":       {[]int{0, 1}, 2, 2, [][]int{{0}, {1}}},
		"what is left over is unused": {[]int{2, 3, 5, 7, 8}, 2, 0, [][]int{{2, 3}, {5, 7}}},
		"too few":                     {[]int{0, 1}, 3, 0, nil},
		"none":                        {nil, 1, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, processor.Share(tc.processors, tc.among, tc.round)); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

// child has this binary print the processors that it may use.
const child = "PRINT_PROCESSORS"

func TestMain(m *testing.M) {
	if os.Getenv(child) == "" {
		os.Exit(m.Run())
	}
	list, err := processor.List()
	fmt.Println(list, err)
}

func TestAProcessHasTheProcessorsItIsGiven(t *testing.T) {
	all, err := processor.List()
	if err != nil {
		t.Skip(err)
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1:]
	for name, tc := range map[string]struct{ give, want []int }{
		"one": {last, last},
		"all": {nil, all},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			cmd := exec.CommandContext(t.Context(), binary)
			cmd.Env, cmd.Stdout = append(os.Environ(), child+"=yes"), &out
			if err := processor.Start(cmd, tc.give); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			if want := fmt.Sprintln(tc.want, error(nil)); out.String() != want {
				t.Errorf("it has processors %swant %s", out.String(), want)
			}
		})
	}
	if after, err := processor.List(); err != nil || !slices.Equal(all, after) {
		t.Errorf("this process has processors %v (%v) after it started others, want %v", after, err, all)
	}
}
