// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// mostExams is how often room is made for whoever is first.
	mostExams = 4
	// prompted is how long who fits may take: a pod that failed rests for 10 s.
	prompted = 30 * time.Second
	// rested is how long who fits has for room that became free by itself; mostRest how long that may go on: jobs that end run for two minutes.
	rested, mostRest = 12 * time.Second, 5 * time.Minute
)

// examinee is a job that waits.
type examinee struct {
	*life
	created time.Time
	standing
	// ranks: it waits for nothing but room. Who was ever half placed, or is refused for ever, may rest.
	ranks bool
}

// on is how many pods have got nodes.
func (s *standing) on() int { return s.ended + s.placed }

// on is the same of a job.
func (w *world) on(l *life) int {
	s := w.standing(l)
	return s.on()
}

// ready reports whether the job has its minimum on nodes.
func (e *examinee) ready() bool { return e.on() >= e.min }

// before reports whether a job has to have its turn before another one: by priority, then those that are yet to start, then the older one, as
// Volcano's plugins priority and gang have it, and its last word.
func (e *examinee) before(o *examinee) bool {
	rank := map[string]int{"high": 1}
	readiness := map[bool]int{true: 1}
	return cmp.Or(rank[o.Class]-rank[e.Class], readiness[e.ready()]-readiness[o.ready()], e.created.Compare(o.created)) < 0
}

// exam adds, a few times, a node with just the room that the first of those who wait needs, and says who came before it; empty if nobody did. It
// takes a cluster that has come to rest, and a configuration in which nothing but priority and age decides.
func (p *playing) exam(began time.Time) string {
	for n := range mostExams {
		if failure := p.rest(began); failure != "" {
			return failure
		}
		first, others := p.world.examinees()
		if first == nil || len(others) == 0 {
			return ""
		}
		name := fmt.Sprintf("extra-%d", n)
		p.world.must(p.world.api.Add(nodeObject(name, first.missing(first.standing)*first.Cores)))
		got := func() bool { return first.on() < p.world.on(first.life) }
		if failure := p.await(began, got); failure != "" {
			return failure
		}
		if got() {
			continue
		}
		if complaint := p.world.overtaken(first, others); complaint != "" {
			return complaint
		}
	}
	return ""
}

// overtaken says who came before the first of those who wait; empty if somebody may. Those of other queues have an order of their own.
func (w *world) overtaken(first *examinee, others []*examinee) string {
	complaint := fmt.Sprintf("%s waits though a node came that has just the room for it", first.Name)
	for _, o := range others {
		switch {
		case w.on(o.life) == o.on():
		case !o.ranks || o.Queue != first.Queue || !first.before(o) || o.broken():
			return ""
		default:
			complaint = fmt.Sprintf("%s was placed, though %s comes before it, and a node came that has just the room for that", o.Name, first.Name)
		}
	}
	return complaint
}

// rest lets time pass until no pod has left a node, nor is about to, for a while: what has left just now is for whoever fits into that.
func (p *playing) rest(began time.Time) string {
	since := time.Now()
	for end := since.Add(mostRest); time.Now().Before(end) && time.Since(since) < rested; {
		if failure := p.step(began); failure != "" {
			return failure
		}
		if p.world.passing() {
			since = time.Now()
		}
	}
	return ""
}

// await lets time pass until something is so, or whoever fits had the time to be placed.
func (p *playing) await(began time.Time, until func() bool) string {
	for end := time.Now().Add(prompted); time.Now().Before(end) && !until(); {
		if failure := p.step(began); failure != "" {
			return failure
		}
	}
	return ""
}

// broken reports whether the gang has lost members: it is completed before all others.
func (e *examinee) broken() bool { return e.placed > 0 && e.on() < e.started }

// examinees are the jobs that there are: the first one of those that wait for nothing but room, nil if there is none, and the others.
func (w *world) examinees() (first *examinee, others []*examinee) {
	for _, j := range w.s.Jobs {
		l := w.jobs[j.Name]
		created, ok := w.created(l)
		if !ok || !l.submitted || l.deleted {
			continue
		}
		e := &examinee{life: l, created: created, standing: w.standing(l)}
		e.ranks = l.missing(e.standing) > 0 && !l.half && !w.refusesForEver(l.Name)
		if e.ranks && (first == nil || e.before(first)) {
			first, e = e, first
		}
		if e != nil {
			others = append(others, e)
		}
	}
	return first, others
}

// passing reports whether pods are about to leave nodes.
func (w *world) passing() bool {
	return slices.ContainsFunc(w.pods(), func(p *corev1.Pod) bool {
		return p.Spec.NodeName != "" && !finished(p) && (p.DeletionTimestamp != nil || w.jobs[p.Labels[jobLabel]].Lasts > 0)
	})
}
