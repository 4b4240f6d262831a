// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package schedulerprocess

import (
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
