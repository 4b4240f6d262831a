// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// rooms are the tasks and the nodes on which room is kept for them while a turn is planned: those for which it is, but for the tasks of the
// request itself unless own is set, and those that were placed with other parts of the job.
func (r *Request) rooms(own bool) []Placement {
	rooms := make([]Placement, 0, len(r.Nominated))
	// Of a divided job those of the part, and those that were placed with other parts, have no other room.
	settled := map[types.UID]bool{}
	if r.before != nil {
		for _, p := range r.before.placed {
			settled[p.Task.UID] = true
		}
		for _, t := range r.Job.Tasks {
			settled[t.UID] = settled[t.UID] || !own
		}
	}
	for _, t := range r.Nominated {
		switch {
		case t.Job != r.Job.Key, r.before == nil && own, r.before != nil && !settled[t.UID]:
			rooms = append(rooms, Placement{t, t.Nominated})
		}
	}
	if r.before != nil {
		rooms = append(rooms, r.before.placed...)
	}
	return rooms
}

// keepRoom puts tasks for which room is kept on their nodes of the overlay: the room is theirs, whatever the priority of who asks for it now. What
// those with departures get from pods that leave is not kept.
func (a *attempt) keepRoom(rooms []Placement, departures map[model.JobKey]Departure) error {
	if len(rooms) == 0 {
		a.planner.infos = nil
		return nil
	}
	a.keeps = true
	infos := make(map[types.UID]fwk.PodInfo, len(rooms))
	reduced := a.reduce(rooms, departures)
	for _, r := range rooms {
		t := r.Task
		node := a.overlay.index(r.Node)
		if node < 0 {
			continue
		}
		pod := t.Pod
		if less := reduced[t.UID]; less != nil {
			pod = less
		}
		info := a.planner.infos[t.UID]
		if info == nil || info.GetPod() != pod {
			var err error
			if info, err = a.planner.NewPodInfo(pod); err != nil {
				return fmt.Errorf("reading pod %s/%s: %w", t.Pod.Namespace, t.Pod.Name, err)
			}
		}
		infos[t.UID] = info
		a.overlay.add(node, info, t)
	}
	a.planner.infos = infos
	return nil
}

// kept returns the node on which room is kept for a task of a class that has caught up, if it is free by now.
func (a *attempt) kept(ctx context.Context, c *class, t *model.Task) *candidate {
	if t.Nominated == "" || a.clears() {
		return nil
	}
	node := a.overlay.index(t.Nominated)
	if node < 0 || !c.allowed(node) {
		return nil
	}
	if info := a.overlay.at(node); c.places(ctx, info) == 0 || !c.runFilters(ctx, info).IsSuccess() {
		return nil
	}
	return newCandidate(a.overlay, node)
}

// newCandidate is a node as it is on the overlay, outside the candidates of any class.
func newCandidate(o *overlay, node int) *candidate {
	e := &candidate{}
	e.begin(o, node)
	return e
}
