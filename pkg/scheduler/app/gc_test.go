// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"runtime"
	"testing"
)

func TestGCPercent(t *testing.T) {
	for name, tc := range map[string]struct {
		live uint64
		want int
	}{
		"nothing collected yet": {0, 200},
		"small":                 {64 << 20, 200},
		"the limit of garbage":  {80 << 20, 160},
		"large":                 {128 << 20, 100},
		"huge":                  {8 << 30, 100},
	} {
		t.Run(name, func(t *testing.T) {
			if got := gcPercent(tc.live); got != tc.want {
				t.Errorf("%d percent for %d bytes, want %d", got, tc.live, tc.want)
			}
		})
	}
}

func TestAfterEachGC(t *testing.T) {
	collected := make(chan struct{}, 1)
	// It is called after the test, too, and must not hold up other cleanups.
	afterEachGC(func() {
		select {
		case collected <- struct{}{}:
		default:
		}
	})
	for range 3 {
		runtime.GC()
		<-collected
	}
}
