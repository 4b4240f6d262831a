// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/gang/room"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// ask is a shape that a lot waits for: so many of its tasks can be placed at most.
type ask struct {
	shape *room.Shape
	count int
}

// indexed reports whether room that is made for the lot's jobs is noticed by the count of places alone.
func (l *lot) indexed() bool {
	return len(l.asks) > 0 && !l.uncounted && l.best().job.Traits == 0 && !l.best().exact && l.best().job.Counts.Nominated == 0
}

// rooms counts the places that lots wait for, by shape, and knows which lots wait for each. All methods are called with the dispatcher's lock held.
type rooms struct {
	state *model.State
	index *room.Index
	// askers are the lots that wait for each shape.
	askers map[*room.Shape]lotSet
	// touched are the nodes that changed since they were last counted, and whether there were news of room on them; judged: anything about any node may
	// have.
	touched map[string]bool
	judged  bool
	// counted: the index has the nodes.
	counted bool
}

func newRooms(state *model.State, checks func(scheduler string) room.Checks) rooms {
	return rooms{state: state, index: room.New(checks), askers: map[*room.Shape]lotSet{}, touched: map[string]bool{}}
}

// reset forgets what is waited for, but not which nodes changed.
func (r *rooms) reset(checks func(scheduler string) room.Checks) {
	r.index, r.askers, r.counted = room.New(checks), map[*room.Shape]lotSet{}, false
}

// note takes in that nodes changed.
func (r *rooms) note(c model.Change) {
	// Who raises it without a node does not say which.
	r.judged = r.judged || c.Events&model.JudgedAnew != 0 || c.Events&model.NodeChanged != 0 && len(c.Nodes) == 0
	for _, name := range c.Touched {
		r.touched[name] = r.touched[name] || c.Events&byRoom != 0
	}
}

// follow has the places counted that the jobs of a lot wait for.
func (r *rooms) follow(l *lot) {
	if len(l.asks) > 0 {
		return
	}
	if !r.counted {
		r.index.Reset(r.state.Rooms())
		r.counted = true
		clear(r.touched)
	}
	for shape, demand := range byShape(l.best().job.Pending) {
		s := r.index.Follow(shape, demand.Pod, demand.Request)
		l.asks = append(l.asks, ask{shape: s, count: demand.Count})
		if r.askers[s] == nil {
			r.askers[s] = lotSet{}
		}
		r.askers[s][l] = true
	}
	l.lack = l.lacks()
}

// unfollow has them counted no more.
func (r *rooms) unfollow(l *lot) {
	for _, a := range l.asks {
		if delete(r.askers[a.shape], l); len(r.askers[a.shape]) == 0 {
			delete(r.askers, a.shape)
		}
		r.index.Unfollow(a.shape)
	}
	l.asks = nil
	if r.index.Len() == 0 {
		r.counted = false
	}
}

// count takes in what happened on nodes.
func (r *rooms) count() {
	if r.counted {
		for name, made := range r.touched {
			r.index.Set(name, r.state.Room(name), made)
		}
		if r.judged {
			r.index.Reconsider()
		}
	}
	r.touched = emptied(r.touched)
}

// setAside takes in that a lot waits for room. If the count says that there is enough, room was gone when it was looked for, and may be back before it
// is counted again: any news of it count.
func (r *rooms) setAside(l *lot) {
	if !l.indexed() || l.lacks() > 0 {
		return
	}
	for _, a := range l.asks {
		a.shape.Listen()
	}
}

// gained are the lots that have more places for some shape since they were last asked for, and those that go by their places alone and were to hear
// of any room.
func (r *rooms) gained(yield func(*lot) bool) {
	for s, more := range r.index.Gained {
		for l := range r.askers[s] {
			if (more || l.indexed()) && !yield(l) {
				return
			}
		}
	}
}

// concerns reports whether room on a node may be of use to a lot.
func (r *rooms) concerns(l *lot, node string) bool {
	return !r.counted || !l.indexed() || slices.ContainsFunc(l.asks, func(a ask) bool { return r.index.Admits(a.shape, node) })
}

// concernsAny reports whether room on one of several nodes may be of use to a lot.
func (r *rooms) concernsAny(l *lot, nodes map[string]bool) bool {
	for name := range nodes {
		if r.concerns(l, name) {
			return true
		}
	}
	return false
}

// heed takes in what the plan of a turn found out about nodes that have room. Not so of those that changed since it began: it reports whether
// there are any.
func (r *rooms) heed(l *lot, t *turn, vetoes []Veto) (changed bool) {
	for _, v := range vetoes {
		nodes := slices.DeleteFunc(slices.Clone(v.Nodes), func(node string) bool { return t.touched[node] })
		changed = changed || len(nodes) < len(v.Nodes)
		for _, a := range l.asks {
			if a.shape.Key() == v.Shape {
				r.index.Veto(a.shape, nodes)
			}
		}
	}
	l.lack = l.lacks()
	return changed
}

// byShape sums up what tasks ask of nodes, whatever their labels.
func byShape(demands []model.Demand) map[model.Class]model.Demand {
	sums := map[model.Class]model.Demand{}
	for _, d := range demands {
		d.Count += sums[d.Shape].Count
		sums[d.Shape] = d
	}
	return sums
}

// places is how many tasks of the lot's first job the nodes have room for at most, of those that its turn may place.
func (l *lot) places() int {
	n := 0
	for _, a := range l.asks {
		n += min(a.count, a.shape.Places())
	}
	return n
}

// spare is how many more places there are for tasks like those of the lot's first job than its turn must have.
func (l *lot) spare() int {
	n := -max(1, l.best().job.Requirement().Tasks)
	for _, a := range l.asks {
		n += a.shape.Places()
	}
	return n
}

// lacks is how many of the tasks that a turn of the lot must place have no room, as far as it is counted: at least so many.
func (l *lot) lacks() int {
	if l.uncounted || len(l.asks) == 0 {
		return 0
	}
	return max(0, max(1, l.best().job.Requirement().Tasks)-l.places())
}

// Concerns reports whether room on a node may be of use to the job whose turn the pod leads.
func (d *Dispatcher) Concerns(lead types.UID, node string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.turn
	if t == nil || t.lead.UID != lead {
		return false
	}
	l := d.lots.of(t)
	return l == nil || d.lots.rooms.concerns(l, node)
}

// Veto is nodes on which filters refuse tasks of a shape though the nodes have room, for as long as these stay as they are.
type Veto struct {
	Shape model.Class
	Nodes []string
}
