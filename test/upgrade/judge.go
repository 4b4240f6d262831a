// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// gangLabel names the gang that a pod of the load is of.
const gangLabel = "upgrade.caldera.dev/gang"

// judge follows the pods of the load in the order of their changes, and notes what should not have happened.
type judge struct {
	// limit is for how long a gang may hold nodes for fewer pods than its minimum: while it is bound, and while nobody leads.
	limit time.Duration

	mu sync.Mutex // guards the rest
	// has is what each node has to give, in thousandths of a core, held what is taken of it.
	has, held map[string]int64
	pods      map[types.UID]*seenPod
	gangs     map[string]*seenGang
	faults    []string
	counts    counts
}

// counts is what happened.
type counts struct {
	// Gangs is how many gangs there were, Bound how many of their pods were bound, and Evicted how many of those ended before their time.
	Gangs   int `json:"gangs"`
	Bound   int `json:"bound"`
	Evicted int `json:"evicted"`
	// Longest is how long at most a gang held nodes for fewer pods than its minimum.
	Longest time.Duration `json:"longest"`
}

// state is what a pod is to the judge.
type state int

const (
	waiting state = iota
	// placed: it has a node and is to stay.
	placed
	succeeded
	// leaving: it was told to end, or has failed.
	leaving
)

type seenPod struct {
	name, node string
	gang       *seenGang
	state      state
	// takes is what it takes of its node until it has ended, in thousandths of a core, and since is when it was bound.
	takes int64
	since time.Time
	freed bool
}

type seenGang struct {
	least int
	// started: it once had its minimum. ended: its load deletes it.
	started, ended bool
	pods           map[types.UID]*seenPod
	// short is since when it has held nodes for fewer pods than its minimum; zero if it does not.
	short time.Time
	told  bool
}

func newJudge(limit time.Duration, nodes map[string]int64) *judge {
	return &judge{limit: limit, has: nodes, held: map[string]int64{}, pods: map[types.UID]*seenPod{}, gangs: map[string]*seenGang{}}
}

// expect announces a gang.
func (j *judge) expect(gang string, least int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.gangs[gang] = &seenGang{least: least, pods: map[types.UID]*seenPod{}}
	j.counts.Gangs++
}

// end announces that a gang is about to be deleted.
func (j *judge) end(gang string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if g := j.gangs[gang]; g != nil {
		g.ended, g.short = true, time.Time{}
	}
}

func (j *judge) fault(format string, a ...any) {
	j.faults = append(j.faults, fmt.Sprintf(format, a...))
}

// see takes in a pod as it is now.
func (j *judge) see(p *corev1.Pod, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := j.pods[p.UID]
	if seen == nil {
		seen = &seenPod{name: p.Name, gang: j.gangs[p.Labels[gangLabel]], takes: resource.OfPod(p).Get(corev1.ResourceCPU)}
		j.pods[p.UID] = seen
		if seen.gang != nil {
			seen.gang.pods[p.UID] = seen
		}
	}
	j.place(seen, p.Spec.NodeName, now)
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		j.free(seen)
	}
	j.move(seen, stateOf(p), now)
}

// gone takes in that a pod is gone.
func (j *judge) gone(p *corev1.Pod, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := j.pods[p.UID]
	if seen == nil {
		return
	}
	j.free(seen)
	if seen.state != succeeded {
		j.move(seen, leaving, now)
	}
	delete(j.pods, p.UID)
	if seen.gang == nil {
		return
	}
	delete(seen.gang.pods, p.UID)
	if name := p.Labels[gangLabel]; seen.gang.ended && len(seen.gang.pods) == 0 && seen.gang.started {
		delete(j.gangs, name)
	}
}

func stateOf(p *corev1.Pod) state {
	switch {
	case p.Status.Phase == corev1.PodSucceeded:
		return succeeded
	case p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed:
		return leaving
	case p.Spec.NodeName != "":
		return placed
	}
	return waiting
}

// place notes where a pod is bound. It may be bound once.
func (j *judge) place(p *seenPod, node string, now time.Time) {
	switch {
	case node == p.node:
		return
	case p.node != "":
		j.fault("pod %s was bound to node %s, and then to %q", p.name, p.node, node)
		return
	}
	p.node, p.since = node, now
	j.counts.Bound++
	j.held[node] += p.takes
	if j.held[node] <= j.has[node] {
		return
	}
	var on []string
	for _, other := range j.pods {
		if other.node == node && !other.freed {
			on = append(on, fmt.Sprintf("%s (%dm since %s)", other.name, other.takes, other.since.Format("15:04:05.000")))
		}
	}
	slices.Sort(on)
	j.fault("node %s has %dm, and with pod %s its pods ask for %dm: %s", node, j.has[node], p.name, j.held[node], strings.Join(on, ", "))
}

// free gives back what a pod took, once it has ended.
func (j *judge) free(p *seenPod) {
	if p.node != "" && !p.freed {
		p.freed = true
		j.held[p.node] -= p.takes
	}
}

// move has a pod come to another state. Nobody may be evicted without whom a gang that had its minimum falls below it.
func (j *judge) move(p *seenPod, to state, now time.Time) {
	if p.state == to || p.state == leaving {
		return
	}
	from := p.state
	g := p.gang
	p.state = to
	if g == nil || g.ended {
		return
	}
	if from == placed && to == leaving {
		j.counts.Evicted++
		if _, have := g.have(); have == g.least-1 && g.short.IsZero() {
			j.fault("pod %s was evicted, and left its gang with %d of %d", p.name, have, g.least)
		}
	}
	j.settle(g, now)
}

// have counts the pods that hold a node and are to stay, and those with the ones that have succeeded.
func (g *seenGang) have() (on, all int) {
	for _, p := range g.pods {
		switch p.state {
		case placed:
			on++
			all++
		case succeeded:
			all++
		case waiting, leaving:
		}
	}
	return on, all
}

// settle notes since when a gang has been below its minimum.
func (j *judge) settle(g *seenGang, now time.Time) {
	on, all := g.have()
	g.started = g.started || all >= g.least
	switch below := on > 0 && all < g.least; {
	case !below && !g.short.IsZero():
		j.counts.Longest = max(j.counts.Longest, now.Sub(g.short))
		g.short, g.told = time.Time{}, false
	case below && g.short.IsZero():
		g.short = now
	}
}

// tick looks for gangs that have been below their minimum for too long.
func (j *judge) tick(now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(j.gangs)) {
		g := j.gangs[name]
		if g.short.IsZero() || g.told || now.Sub(g.short) <= j.limit {
			continue
		}
		on, all := g.have()
		g.told = true
		j.fault("gang %s has held nodes for %d pods since %s, and %d of its minimum of %d are placed or have succeeded", name, on, g.short.Format(time.TimeOnly), all, g.least)
	}
}

// halves is how many gangs are below their minimum now.
func (j *judge) halves() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for _, g := range j.gangs {
		if !g.short.IsZero() {
			n++
		}
	}
	return n
}

// unstarted are the gangs that never had their minimum.
func (j *judge) unstarted() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var names []string
	for _, name := range slices.Sorted(maps.Keys(j.gangs)) {
		if !j.gangs[name].started {
			names = append(names, name)
		}
	}
	return names
}

// verdict is what should not have happened, and what happened.
func (j *judge) verdict() ([]string, counts) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.faults), j.counts
}
