// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestJobsThatFailedTogetherRestApart: they may have got in each other's way.
func TestJobsThatFailedTogetherRestApart(t *testing.T) {
	t.Parallel()
	for failures := 1; failures < 30; failures++ {
		full := min(10*time.Second, 100*time.Millisecond<<min(failures-1, 10))
		rests := map[time.Duration]bool{}
		for i := range 200 {
			rest := backoff(model.JobKey{Namespace: "ns", Name: fmt.Sprintf("job-%d", i)}, failures)
			if rest < full/2 || rest > full {
				t.Errorf("a rest of %s after %d failures, want from %s to %s", rest, failures, full/2, full)
			}
			rests[rest] = true
		}
		if len(rests) < 100 {
			t.Errorf("%d different rests of 200 jobs after %d failures, want 100", len(rests), failures)
		}
	}
}
