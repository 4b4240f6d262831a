// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// TestNobodyIsEvictedByARefusalInDoubt: where the turn cannot be repeated any more, the job has another one soon.
func TestNobodyIsEvictedByARefusalInDoubt(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(time.Now())
	p := &Preemption{Dispatcher: dispatch.New(dispatch.Config{Clock: clock}), Clock: clock}
	lead := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "lead"}}
	soon, sooner := clock.Now().Add(doubtPause), clock.Now().Add(doubtPause/2)
	for name, c := range map[string]struct {
		doubted     bool
		again, want time.Time
	}{
		"in doubt":                         {doubted: true, want: soon},
		"in doubt, and tried again anyway": {doubted: true, again: sooner, want: sooner},
		"certain":                          {},
	} {
		a := &attempt{Preemption: p, turn: Turn{Lead: lead, Doubted: func() bool { return c.doubted }}, outcome: Outcome{Again: c.again}}
		if off := a.putOff(); off != c.doubted || a.outcome.Repeated || !a.outcome.Again.Equal(c.want) {
			t.Errorf("%s: put off: %t, repeated: %t, again at %s, want %s", name, off, a.outcome.Repeated, a.outcome.Again, c.want)
		}
	}
}
