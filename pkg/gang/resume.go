// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Told is room that was reserved for a job before the scheduler started: the nodes of its pods, and by when the room is free. Bound: by then at the
// latest.
type Told struct {
	Nodes map[types.UID]string
	Start time.Time
	Bound bool
}

// Resume reserves the same room for a job again. Room that is kept for others is not counted. The pods in the way are those that are there by now, which
// may be none. There are no placements if the room cannot be reserved any more: a pod of the job is gone, or a node is, or somebody has taken the room.
func (p *Planner) Resume(r Request, o Outlook, told Told) (Ahead, error) {
	placements := told.placements(r.Job)
	if len(placements) == 0 {
		return Ahead{}, nil
	}
	f, err := p.forecast(r, o)
	if err != nil || !f.admits(placements) {
		return Ahead{}, err
	}
	at := told.Start
	if !told.Bound && len(f.leavers) > 0 {
		at = f.leavers[len(f.leavers)-1].At
	}
	a := f.ahead(placements, at)
	if !f.has(a) || told.Bound && a.Start.After(told.Start) {
		return Ahead{}, nil
	}
	return a, nil
}

// placements are those of the pods that are still to be placed; none if one of the pods is gone, or they are too few.
func (t *Told) placements(job *model.Job) (placements []Placement) {
	known := 0
	for _, task := range job.Tasks {
		node, told := t.Nodes[task.UID]
		if !told {
			continue
		}
		if known++; task.Placeable() {
			placements = append(placements, Placement{Task: task, Node: node})
		}
	}
	if known < len(t.Nodes) || len(placements) < job.Requirement().Tasks {
		return nil
	}
	return placements
}

// admits reports whether all nodes of some placements are there and could take the tasks if they were empty.
func (f *forecast) admits(placements []Placement) bool {
	of := map[string]*prospect{}
	for k := range f.nodes {
		of[f.nodes[k].info.Node().Name] = &f.nodes[k]
	}
	return !slices.ContainsFunc(placements, func(p Placement) bool {
		n := of[p.Node]
		if n == nil {
			return true
		}
		i := slices.IndexFunc(f.demands, func(d demand) bool { return d.task.Class == p.Task.Class })
		return i >= 0 && !n.admits[i]
	})
}

// has reports whether there is room for a plan, and its queue may take it, by the time at which the pods in the way have ended.
func (f *forecast) has(a Ahead) bool {
	taken := takenBy(a.Placements)
	return f.affordsBy(a.Start) && !slices.ContainsFunc(f.nodes, func(n prospect) bool { return n.short(taken[n.info.Node().Name], a.Start) })
}

// short reports whether the node has too little of something at a time.
func (n *prospect) short(need resource.Vector, at time.Time) bool {
	return slices.ContainsFunc(need, func(q resource.Amount) bool { return q.Value > n.idle(q.Name, at) })
}

// takenBy is what the tasks of some placements ask for, by node.
func takenBy(placements []Placement) map[string]resource.Vector {
	taken := map[string]resource.Vector{}
	for _, p := range placements {
		sum := taken[p.Node]
		sum.Add(p.Task.Request)
		taken[p.Node] = sum
	}
	return taken
}
