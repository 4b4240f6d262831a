// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
)

// docket keeps the evictions that the API server has agreed to, until their beneficiaries have started.
type docket struct {
	w *world
	// open are evictions whose beneficiary has not got anything yet.
	open []taking
	// forgiven are jobs of which evictions were forgiven that have not got what they lack since. The room may be theirs.
	forgiven map[string]bool
	// pardoned is until when what happens to the cluster may be why evictions come to nothing.
	pardoned time.Time
	// free is since when there has been room for jobs that wait; told are the pods of which the API server knew by then where room is kept.
	free map[string]time.Time
	told map[types.UID]bool

	mu sync.Mutex // guards what follows, which requests write
	// entered counts the evictions, agreed are those that are yet to be judged.
	entered int
	agreed  []agreement
}

// agreement is an eviction that the API server has agreed to. The job is the one that is to have the room, if any. The action is empty if the
// scheduler has no decision to evict the pod.
type agreement struct {
	pod, job, action string
	// cores are those that the pod has.
	cores int
	// kept are the pods for which the scheduler kept room by then.
	kept []*corev1.Pod
	// before is where the pods of the job were by then.
	before standing
}

// taking is an eviction for a job that had so many pods on nodes by then, while so many waited.
type taking struct {
	agreement
	life       *life
	held, need int
}

// seemsFree is how long there has to be room for a job before the scheduler has to know of it. News may be late by less.
const seemsFree = 10 * time.Second

func newDocket(w *world) *docket {
	return &docket{w: w, forgiven: map[string]bool{}, free: map[string]time.Time{}}
}

// enter notes that the API server has agreed to evict a pod of so many cores. The plans are those of the scheduler that has asked for it.
func (d *docket) enter(pod string, cores int, of plans) {
	a := agreement{pod: pod, cores: cores, kept: of.kept}
	for _, made := range of.decisions {
		for _, v := range made.Victims {
			if v.Pod.Name == pod && v.State == eviction.Sent {
				a.job, a.action = made.Beneficiary.Name, made.Action
			}
		}
	}
	if l := d.w.jobs[a.job]; l != nil {
		a.before = d.w.standing(l)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entered++
	d.agreed = append(d.agreed, a)
}

// judge looks at the evictions since the last look, and says which should not have been; empty if none. Each has to be decided, and none is for
// a job that finds room without.
func (d *docket) judge() string {
	d.mu.Lock()
	agreed := d.agreed
	d.agreed = nil
	d.mu.Unlock()
	for _, a := range agreed {
		l := d.w.jobs[a.job]
		switch {
		case a.action == "":
			return fmt.Sprintf("pod %s was evicted, and nobody had decided that", a.pod)
		case l == nil:
			continue
		}
		if since := d.free[l.Name]; !since.IsZero() && time.Since(since) > seemsFree && d.w.s.prompt() && (a.action == eviction.Reclaim || d.oneQueue()) && !d.keptSince(a) {
			return fmt.Sprintf("pod %s was evicted (%s) for %s, for which there has been room since %s", a.pod, a.action, l.Name, since.Sub(d.w.began))
		}
		if l.missing(a.before) > 0 && !time.Now().Before(d.pardoned) {
			d.open = append(d.open, taking{a, l, a.before.placed, a.before.waiting})
		}
	}
	d.follow()
	for _, t := range d.open {
		if complaint := d.tooMuch(t.life); complaint != "" {
			return complaint
		}
	}
	return ""
}

// keptSince reports whether the scheduler kept room for pods of other jobs that was not known of when it was last looked who has room. It says so
// only where somebody is evicted for them.
func (d *docket) keptSince(a agreement) bool {
	return slices.ContainsFunc(a.kept, func(p *corev1.Pod) bool { return p.Labels[jobLabel] != a.job && !d.told[p.UID] })
}

// follow closes what has come to what it was for, or has nobody any more whom it could be for, and notes for whom there is room.
func (d *docket) follow() {
	left := d.open[:0]
	for _, t := range d.open {
		if s := d.w.standing(t.life); !t.life.deleted && s.placed <= t.held && t.life.missing(s) > 0 {
			left = append(left, t)
		}
	}
	d.open = left
	d.told = map[types.UID]bool{}
	for _, p := range d.w.pods() {
		d.told[p.UID] = p.Status.NominatedNodeName != ""
	}
	for name, l := range d.w.jobs {
		need := 0
		if l.submitted && !l.deleted {
			need = l.missing(d.w.standing(l))
		}
		if need == 0 {
			delete(d.forgiven, name)
		}
		switch {
		case need == 0 || places(d.roomFor(l), l.Cores) < need:
			delete(d.free, name)
		case d.free[name].IsZero():
			d.free[name] = time.Now()
		}
	}
}

// pardon drops what is open, and what is entered for a while: what happens to the cluster now may be why it comes to nothing.
func (d *docket) pardon(lasts time.Duration) {
	d.open = nil
	if until := time.Now().Add(lasts + time.Minute); until.After(d.pardoned) {
		d.pardoned = until
	}
}

// tooMuch says that more was evicted for a job, since it was last placed in part, than it can need; empty if not. On each node that it gets, all
// victims but one are too few.
func (d *docket) tooMuch(l *life) string {
	taken, need, largest := 0, 0, 0
	for _, t := range d.open {
		if t.life == l {
			taken, need, largest = taken+t.cores, max(need, t.need), max(largest, t.cores)
		}
	}
	if most := need * (l.Cores + largest - 1); taken > most && d.w.s.prompt() {
		return fmt.Sprintf("%d cores were taken from others for %s, which has got nothing by it and needs %d pods of %d cores", taken, l.Name, need, l.Cores)
	}
	return ""
}

// forgive drops evictions for jobs whose pods have no nominated node in the API server. The next scheduler cannot know of them. Those that were
// not judged yet are not open yet: they are dropped likewise, and not judged.
func (d *docket) forgive() {
	untold := map[string]bool{}
	for _, p := range d.w.pods() {
		if p.Spec.NodeName == "" && p.Status.NominatedNodeName == "" {
			untold[p.Labels[jobLabel]] = true
		}
	}
	drop := func(a agreement) bool {
		if untold[a.job] {
			d.forgiven[a.job] = true
		}
		return untold[a.job]
	}
	d.open = slices.DeleteFunc(d.open, func(t taking) bool { return drop(t.agreement) })
	d.mu.Lock()
	defer d.mu.Unlock()
	d.agreed = slices.DeleteFunc(d.agreed, drop)
}

// inVain says which eviction has come to nothing, though nobody keeps its job off nodes for ever; empty if none has.
func (d *docket) inVain() string {
	i := slices.IndexFunc(d.open, func(t taking) bool { return !d.w.refusesForEver(t.job) })
	if i < 0 {
		return ""
	}
	t := d.open[i]
	return fmt.Sprintf("pod %s was evicted (%s) for %s, which has got nothing by it", t.pod, t.action, t.job)
}

// roomFor is what a job may have once terminating pods are gone. What is kept for others does not count.
func (d *docket) roomFor(l *life) []idle {
	room := d.w.room()
	for _, p := range d.w.pods() {
		node, by := p.Status.NominatedNodeName, -sizeOf(p)
		switch {
		case p.Spec.NodeName != "" && p.DeletionTimestamp != nil && !finished(p):
			node, by = p.Spec.NodeName, sizeOf(p)
		case p.Spec.NodeName != "" || p.Labels[jobLabel] == l.Name:
			continue
		}
		others := node == "" && d.isFor(p.Labels[jobLabel])
		for i := range room {
			// Nobody has told yet where the room is of others for whom somebody was evicted: it may be anywhere.
			if others || room[i].name == node {
				room[i].idle += by
			}
		}
	}
	return room
}

// oneQueue reports whether all jobs are in one queue. Else its share may be why somebody in it makes room for another, and not the nodes.
func (d *docket) oneQueue() bool {
	queues := map[string]bool{}
	for _, l := range d.w.jobs {
		if l.submitted && !l.deleted {
			queues[l.Queue] = true
		}
	}
	return len(queues) < 2
}

// isFor reports whether an eviction is open that is for a job, or was forgiven.
func (d *docket) isFor(job string) bool {
	if d.forgiven[job] {
		return true
	}
	for _, t := range d.open {
		if t.job == job {
			return true
		}
	}
	return false
}
