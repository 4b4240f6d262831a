// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Inherit takes back, as far as the filters of the profiles are concerned, the room that is kept for tasks of a job
// which are about to get a node, that one or another. A plan may give the room of a task to another one of the same job,
// for instance one that was created after the room was made: that takes over what is kept, so that the filters let it in
// and the room is not counted twice.
func (k *Keeper) Inherit(job *model.Job, placements []gang.Placement) {
	switch {
	case job.Counts.Nominated == 0:
		return
	case k.Holds.Has(job.Key):
		k.Holds.releaseRest(job, placements)
		return
	}
	for _, p := range placements {
		if p.Task.Nominated != "" {
			k.profile.DeleteNominatedPodIfExists(p.Task.Pod)
		}
	}
	given, taken := transfers(job, placements)
	if len(taken) == 0 {
		return
	}
	k.waits.transfer(job.Key, given)
	uids := make([]types.UID, len(taken))
	for i, t := range taken {
		uids[i] = t.UID
		k.profile.DeleteNominatedPodIfExists(t.Pod)
	}
	// In this order the job is never without room that is kept, which would end its decision.
	k.state.Pipeline(given, nil)
	k.state.ClearNominations(uids...)
}

// transfers finds the tasks that are placed where room is kept for others of their job that are not placed, and those
// others: on each node so many that what they ask for covers what is placed there instead of it.
func transfers(job *model.Job, placements []gang.Placement) (given []model.Nomination, taken []*model.Task) {
	placed := make(map[types.UID]bool, len(placements))
	for _, p := range placements {
		placed[p.Task.UID] = true
	}
	kept := map[string][]*model.Task{}
	for _, t := range job.Tasks {
		if t.Nominated != "" && !placed[t.UID] {
			kept[t.Nominated] = append(kept[t.Nominated], t)
		}
	}
	for _, p := range placements {
		if p.Task.Nominated == p.Node || len(kept[p.Node]) == 0 {
			continue
		}
		given = append(given, model.Nomination{UID: p.Task.UID, Node: p.Node})
		// One of the same kind if there is one.
		if i := slices.IndexFunc(kept[p.Node], func(t *model.Task) bool { return t.Class == p.Task.Class }); i > 0 {
			kept[p.Node][0], kept[p.Node][i] = kept[p.Node][i], kept[p.Node][0]
		}
		left := p.Task.Request.Clone()
		for len(kept[p.Node]) > 0 && len(left.Exceeding(nil)) > 0 {
			left.Sub(kept[p.Node][0].Request)
			taken = append(taken, kept[p.Node][0])
			kept[p.Node] = kept[p.Node][1:]
		}
	}
	return given, taken
}
