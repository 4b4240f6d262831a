// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package schedulerprocess

import (
	"os"
	"runtime"
	"testing"
	"time"
)

func TestASampleIsReadBehindTheName(t *testing.T) {
	stat := "7 (a (b) c) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 9 0 5 1000 3 18446744073709551615 1 1"
	s, err := parse([]byte(stat), 4096)
	if err != nil || s.CPU != 2*time.Second || s.Memory != 3*4096 {
		t.Errorf("the sample is %+v (%v), want 2 s and 3 pages", s, err)
	}
	if _, err := parse([]byte("7 (a) S 1"), 4096); err == nil {
		t.Error("a short line is read without an error")
	}
}

func TestASampleGrowsByWhatTheProcessUses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	before, err := SampleOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	const more = 5 * time.Second / ticksPerSecond
	// It ends by the test's own time limit if the samples never grow.
	for after := before; after.CPU < before.CPU+more; {
		if after, err = SampleOf(os.Getpid()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := SampleOf(-1); err == nil {
		t.Error("a process that does not exist is read without an error")
	}
}
