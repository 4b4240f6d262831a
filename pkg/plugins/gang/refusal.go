// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"strings"
	"time"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// refusalKey is where the cycle of a lead keeps why its turn was refused.
const refusalKey fwk.StateKey = Name + "/refusal"

// Refusal is a turn for which there is no room. The plugins at PostFilter may change the reason, or make room; the last of
// them, Gang, ends the turn.
type Refusal struct {
	// Request is what was asked of the planner, and Planner whom.
	Request gang.Request
	Planner *gang.Planner
	// Withheld: there is room, but somebody outside does not let the job start. Evictions do not help.
	Withheld bool
	// Reason is why the job waits; Again when it is to be tried again though nothing happens, zero for never.
	Reason model.Reason
	Again  time.Time
	// Doubts tell for whom else the refusal holds; Stale: the scheduler's cache did not know of all room.
	Doubts gang.Doubts
	Stale  bool
	// Doubted reports whether by now the cache, by which the turn was refused, does not know of room that may be of use to it. Nobody is
	// evicted by such a refusal, and no room given up: what is decided by it may be for nothing.
	Doubted func() bool
	// Repeated: the turn is over, and will be repeated.
	Repeated bool
}

// forDispatch is the refusal as far as the dispatcher goes.
func (r *Refusal) forDispatch() dispatch.Refusal {
	d := dispatch.Refusal{Reason: r.Reason, Again: r.Again, Exact: r.Doubts.Labels, Uncounted: r.Doubts.NoRoomNeeded, Unmet: r.Doubts.Unmet, Stale: r.Stale}
	for shape, nodes := range r.Doubts.Vetoed {
		d.Vetoes = append(d.Vetoes, dispatch.Veto{Shape: shape, Nodes: nodes})
	}
	return d
}

// Clone implements fwk.StateData.
func (r *Refusal) Clone() fwk.StateData { return r }

// Explain adds to the reason why nobody is evicted.
func (r *Refusal) Explain(kept error) {
	text := strings.ReplaceAll(kept.Error(), "\n", "; ")
	if r.Reason.Detail != "" {
		text = r.Reason.Detail + "; " + text
	}
	r.Reason.Detail = text
}

// RefusalOf returns the refusal of the cycle's turn; nil when the pod does not lead a turn, or the turn was not refused.
func RefusalOf(state fwk.CycleState) *Refusal {
	if data, err := state.Read(refusalKey); err == nil {
		return data.(*Refusal)
	}
	return nil
}
