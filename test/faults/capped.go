// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// cappedQueue is the queue of all jobs of a scenario with a capability.
const cappedQueue = "a"

// drawCapped has more jobs ask to be let into a queue than it may hold. Some of them never run, so that they keep what they were promised, until
// their PodGroup is replaced. What is promised to pods that a gate holds does not count in a queue, nor here.
func drawCapped(seed uint64) *scenario {
	r := rand.New(rand.NewPCG(seed, 0xca))
	s := &scenario{Seed: seed, Conf: "capped"}
	all := 0
	for i := range 2 + r.IntN(3) {
		s.Nodes = append(s.Nodes, node{Name: fmt.Sprintf("node-%d", i), Cores: 4 + r.IntN(5)})
		all += s.Nodes[i].Cores
	}
	s.Capability = all/2 + r.IntN(all/4)
	seconds := func(from, to int) duration { return secondsBetween(r, from, to) }
	for i := range 4 + r.IntN(5) {
		size := 1 + r.IntN(3)
		j := job{
			Name: fmt.Sprintf("job-%d", i), At: seconds(0, 90), Size: size, Min: size, Cores: 1 + r.IntN(2), Queue: cappedQueue,
			Class: []string{"low", "low", "high"}[r.IntN(3)], Lasts: seconds(5, 60), Grace: duration(2 * time.Second),
		}
		if i == 0 || r.IntN(3) == 0 {
			j.At, j.Stuck = seconds(0, 10), []string{noNode, noVolume}[r.IntN(2)]
			for range 1 + r.IntN(3) {
				s.Events = append(s.Events, event{At: seconds(10, 170), Kind: groupReplaced, Target: j.Name, For: seconds(0, 30)})
			}
		}
		s.Jobs = append(s.Jobs, j)
	}
	for range r.IntN(4) {
		e := event{At: seconds(0, 170), Kind: []string{crash, watchExpired, watchDropped}[r.IntN(3)], Target: "podgroups"}
		if e.Kind == crash {
			e.Target, e.For = "", seconds(0, 10)
		}
		s.Events = append(s.Events, e)
	}
	return s
}

// promised is how much of the capability a job takes for certain, and how much at most.
func (w *world) promised(l *life) (least, most int) {
	if !l.submitted || l.deleted {
		return 0, 0
	}
	on := 0
	for _, p := range w.pods() {
		if p.Labels[jobLabel] == l.Name && p.Spec.NodeName != "" && !finished(p) {
			on++
		}
	}
	switch w.phase(l) {
	case "":
		return 0, on * l.Cores
	case volcano.PodGroupPending:
		return on * l.Cores, on * l.Cores
	case volcano.PodGroupInqueue:
		return l.min * l.Cores, max(on, l.min) * l.Cores
	}
	return min(on, l.min) * l.Cores, max(on, l.min) * l.Cores
}

// overpromised says which job was let into its queue since the last look though that had promised to others what it may hold; empty if none was.
func (w *world) overpromised() string {
	if w.s.Conf != "capped" {
		return ""
	}
	promised, last := 0, ""
	for _, j := range w.s.Jobs {
		l := w.jobs[j.Name]
		least, _ := w.promised(l)
		promised += least
		phase := w.phase(l)
		if phase == volcano.PodGroupInqueue && l.phase != phase {
			last = l.Name
		}
		l.phase = phase
	}
	if last == "" || promised <= w.s.Capability {
		return ""
	}
	return fmt.Sprintf("%s was let into a queue that may hold %d cores, of which %d are promised now", last, w.s.Capability, promised)
}

// keptOut says which job is not let into its queue though that has promised too little to be in the way; empty if none.
func (w *world) keptOut() string {
	all := 0
	for _, n := range w.s.Nodes {
		all += n.Cores
	}
	free := min(w.s.Capability, all)
	for _, l := range w.jobs {
		_, most := w.promised(l)
		free -= most
	}
	for _, j := range w.s.Jobs {
		l := w.jobs[j.Name]
		if s := w.standing(l); w.phase(l) == volcano.PodGroupPending && s.waiting >= l.min && l.min*l.Cores <= free {
			return fmt.Sprintf("%s is not let in though its queue may hold %d more cores", l.Name, free)
		}
	}
	return ""
}
