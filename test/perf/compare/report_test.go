// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheTableHasTheCPUOfSchedulerAndServerForEachPod(t *testing.T) {
	s := scenario{Nodes: 10, Gangs: 2, Size: 100}
	records := []record{{Scenario: s, Contender: "caldera", Run: 1, Result: result{
		Rate: 50, CPU: 100 * time.Millisecond, ServerCPU: 250 * time.Millisecond,
	}}}
	var out strings.Builder
	report(&out, s, []contender{{name: "caldera"}}, records)
	var head, row string
	for line := range strings.Lines(out.String()) {
		switch name, _, _ := strings.Cut(strings.TrimSpace(line), " "); name {
		case "scheduler":
			head = line
		case "caldera":
			row = line
		}
	}
	if !strings.Contains(head, "  CPU ms/pod  server CPU ms/pod  ") {
		t.Errorf("the head is %q", head)
	}
	// After the name: the rate, the least, the most, and the rate with events.
	if got, want := strings.Fields(row), []string{"0.50", "1.25"}; len(got) < 7 || !slices.Equal(got[5:7], want) {
		t.Errorf("the row is %q, want %s behind the rates", row, want)
	}
}
