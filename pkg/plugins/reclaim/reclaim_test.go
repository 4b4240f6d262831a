// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reclaim

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/gang"
	"github.com/caldera-scheduler/caldera/pkg/preemption"
)

// TestWhatAnAttemptTells: a reason of its own replaces that of the refusal, with the time that goes with it; else the earlier time counts.
func TestWhatAnAttemptTells(t *testing.T) {
	t.Parallel()
	noRoom := model.Reason{Kind: model.NotEnoughResources, Message: "insufficient cpu"}
	waits := model.Reason{Kind: model.WaitingForVictims, Message: "2 pods have yet to leave"}
	soon, later := time.Unix(1000, 0), time.Unix(2000, 0)
	kept := noRoom
	kept.Detail = "reclaim: nobody is above its due; preempt: nobody is less urgent"
	for name, c := range map[string]struct {
		again   time.Time
		outcome preemption.Outcome
		want    model.Reason
		at      time.Time
	}{
		"nothing":                            {again: later, want: noRoom, at: later},
		"a time that is before the other":    {again: later, outcome: preemption.Outcome{Again: soon}, want: noRoom, at: soon},
		"a time that is after the other":     {again: soon, outcome: preemption.Outcome{Again: later}, want: noRoom, at: soon},
		"a reason of its own, with its time": {again: soon, outcome: preemption.Outcome{Reason: waits, Again: later}, want: waits, at: later},
		"why nobody is evicted": {
			outcome: preemption.Outcome{Why: errors.Join(errors.New("reclaim: nobody is above its due"), errors.New("preempt: nobody is less urgent"))},
			want:    kept,
		},
	} {
		refusal := &gang.Refusal{Reason: noRoom, Again: c.again}
		tell(refusal, c.outcome)
		if diff := cmp.Diff(c.want, refusal.Reason); diff != "" || !refusal.Again.Equal(c.at) {
			t.Errorf("%s: again at %s, want %s; reason (-want,+got):\n%s", name, refusal.Again, c.at, diff)
		}
	}
}
