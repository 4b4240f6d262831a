// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"testing"
	"time"
)

// from is the version that tests upgrade from. Where its history is missing they are skipped, but not where that would be to say that they have passed.
func from(t *testing.T) *version {
	t.Helper()
	v, err := earlier(t.Context(), os.Getenv("CALDERA_UPGRADE_FROM"))
	switch {
	case err == nil:
		return v
	case errors.Is(err, errNoHistory) && os.Getenv("CI") != "true":
		t.Skip(err)
	default:
		t.Fatal(err)
	}
	return nil
}

// TestAFewSwitches does what a whole run does, a few times.
func TestAFewSwitches(t *testing.T) {
	t.Parallel()
	old := from(t)
	current, err := present(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := options{
		// Each version is told to end and killed. What becomes of a leader that stands still has a test of its own, in test/integration/binary.
		Switches: 4, Ways: []string{"stop", "kill", "kill", "stop"}, Nodes: 10, Lease: 4 * time.Second, Between: time.Second, Rate: 200, Seed: 1,
		logs: t.TempDir(), verbosity: 2, out: "text",
	}
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	r, err := play(t.Context(), o, [2]*version{old, current}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.print(t.Output(), o); err != nil {
		t.Error(err)
	}
	if len(r.Changes) != o.Switches || r.Counts.Bound < 100 {
		t.Errorf("%d switches, %d pods bound: too little happened to judge by", len(r.Changes), r.Counts.Bound)
	}
}
