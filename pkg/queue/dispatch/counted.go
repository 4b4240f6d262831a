// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
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

// follow has the places counted that the jobs of a lot wait for.
func (d *Dispatcher) follow(l *lot) {
	if len(l.asks) > 0 {
		return
	}
	if !d.counted {
		d.index.Reset(d.cfg.State.Rooms())
		d.counted = true
		clear(d.touched)
	}
	for shape, demand := range byShape(l.best().job.Pending) {
		s := d.index.Follow(shape, demand.Pod, demand.Request)
		l.asks = append(l.asks, ask{shape: s, count: demand.Count})
		if d.askers[s] == nil {
			d.askers[s] = lotSet{}
		}
		d.askers[s][l] = true
	}
	l.lack = l.lacks()
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

// forget drops a lot that has no jobs any more.
func (d *Dispatcher) forget(l *lot) {
	if l.stage != ready {
		delete(d.aside[l.stage], l)
	}
	for _, a := range l.asks {
		if delete(d.askers[a.shape], l); len(d.askers[a.shape]) == 0 {
			delete(d.askers, a.shape)
		}
		d.index.Unfollow(a.shape)
	}
	l.asks = nil
	if d.index.Len() == 0 {
		d.counted = false
	}
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

// countRoom takes in what happened on nodes, and wakes the lots for which there are more places since.
func (d *Dispatcher) countRoom() {
	if d.counted {
		for name := range d.touched {
			d.index.Set(name, d.cfg.State.Room(name))
		}
		if d.judged {
			d.index.Reconsider()
		}
	}
	clear(d.touched)
	for s := range d.index.Gained {
		for l := range d.askers[s] {
			before := l.lack
			if l.lack = l.lacks(); l.lack == 0 && l.stage == parked && l.helps&byRoom != 0 {
				d.wakeLot(l, before > 0)
			}
		}
	}
}

// Concerns reports whether room on a node may be of use to the job whose turn the pod leads.
func (d *Dispatcher) Concerns(lead types.UID, node string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.turn
	if t == nil || t.lead.UID != lead {
		return false
	}
	l := d.lots[t.lot]
	if l == nil || !d.counted || !l.indexed() {
		return true
	}
	for _, a := range l.asks {
		if d.index.Admits(a.shape, node) {
			return true
		}
	}
	return false
}

// Veto is nodes on which filters refuse tasks of a shape though the nodes have room, for as long as these stay as they are.
type Veto struct {
	Shape model.Class
	Nodes []string
}

// heed takes in what a plan found out about nodes that have room.
func (d *Dispatcher) heed(l *lot, vetoes []Veto) {
	for _, v := range vetoes {
		for _, a := range l.asks {
			if a.shape.Key() == v.Shape {
				d.index.Veto(a.shape, v.Nodes)
			}
		}
	}
	l.lack = l.lacks()
}
