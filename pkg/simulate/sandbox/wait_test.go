// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaitingEndsWhenNothingMovesOrNeverWill(t *testing.T) {
	// at is how many milliseconds after the first look at the scheduler another one is.
	type at struct{ look int }
	for name, tc := range map[string]struct {
		bounds  bounds
		moving  func(at) string
		reached func(at) progress
		cancel  bool
		want    string
	}{
		"it ends when nothing moves": {
			bounds: bounds{patience: time.Second, cycles: 10},
			moving: func(n at) string { return strings.Repeat("x", 20-min(20, n.look)) },
		},
		"it goes on while there is progress": {
			bounds: bounds{patience: 10 * time.Millisecond, cycles: 1000},
			moving: func(n at) string {
				if n.look == 100 {
					return ""
				}
				return "pods are being scheduled"
			},
			reached: func(n at) progress { return progress{cycle: int64(n.look)} },
		},
		"it gives up when nothing happens, and says what moves": {
			bounds: bounds{patience: 10 * time.Millisecond, cycles: 10},
			moving: func(at) string { return "pod default/a is being bound" },
			want:   "nothing has happened for 10ms, and yet pod default/a is being bound",
		},
		"it gives up when things go round in circles": {
			bounds:  bounds{patience: time.Second, cycles: 50},
			moving:  func(at) string { return "pods are being scheduled" },
			reached: func(n at) progress { return progress{cycle: int64(n.look)} },
			want:    "the scheduler does not come to rest: at scheduling cycle 51, pods are being scheduled",
		},
		"it is broken off": {
			bounds: bounds{patience: time.Second, cycles: 10},
			moving: func(at) string { return "pods are being scheduled" },
			cancel: true,
			want:   "context canceled while pods are being scheduled",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.cancel {
					cancel()
				}
				if tc.reached == nil {
					tc.reached = func(at) progress { return progress{} }
				}
				begin := time.Now()
				now := func() at { return at{look: int(time.Since(begin) / glance)} }
				err := wait(ctx, tc.bounds, func() string { return tc.moving(now()) }, func() progress { return tc.reached(now()) })
				switch {
				case tc.want == "" && err != nil:
					t.Errorf("got %v", err)
				case tc.want != "" && (err == nil || err.Error() != tc.want):
					t.Errorf("got %v, want %s", err, tc.want)
				}
			})
		})
	}
}
