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

	"github.com/caldera-scheduler/caldera/test/perf/harness/workload/processor"
)

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
		t.Fatal(err)
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
