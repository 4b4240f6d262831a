// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// refusing is how long it takes to find out that a node does not take an unwelcome pod.
	refusing = 60 * time.Millisecond
	// overlooks is how long who fits may wait beside a crowd that cannot be placed. To plan each of the crowd once takes a few seconds.
	overlooks = 15 * time.Second
)

// drawBusy has a crowd of jobs that seem to fit, come first and are refused by each node in turn, while pods end every second. The jobs that fit
// have to be placed all the same.
func drawBusy(seed uint64) *scenario {
	r := rand.New(rand.NewPCG(seed, 0xb))
	s := &scenario{Seed: seed, Conf: "plain"}
	for i := range 2 + r.IntN(3) {
		s.Nodes = append(s.Nodes, node{Name: fmt.Sprintf("node-%d", i), Cores: 8 + r.IntN(5)})
	}
	seconds := func(from, to int) duration { return secondsBetween(r, from, to) }
	// Those that end, and come back.
	short := job{Name: "short", Size: 2 + r.IntN(4), Min: 1, Cores: 1, Queue: "default", Class: "low", Grace: duration(time.Second)}
	s.Jobs = append(s.Jobs, short)
	for at := 5 * time.Second; at < trouble; at += 500*time.Millisecond + time.Duration(r.IntN(1000))*time.Millisecond {
		s.Events = append(s.Events, event{At: duration(at), Kind: podDeleted, Target: short.Name, N: r.IntN(short.Size)})
	}
	for i := range 8 + r.IntN(10) {
		size := 1 + r.IntN(3)
		s.Jobs = append(s.Jobs, job{
			Name: fmt.Sprintf("crowd-%d", i), At: seconds(0, 10), Size: size, Min: size, Cores: 1 + r.IntN(4), Queue: []string{"default", "a"}[r.IntN(2)],
			Class: []string{"low", "high", "high"}[r.IntN(3)], Grace: duration(time.Second), Stuck: unwelcome,
		})
	}
	for i := range 2 + r.IntN(5) {
		size := 1 + r.IntN(2)
		s.Jobs = append(s.Jobs, job{
			Name: fmt.Sprintf("job-%d", i), At: seconds(10, 150), Size: size, Min: size, Cores: 1, Queue: "default", Class: "low",
			Lasts: seconds(5, 60), Grace: duration(time.Second),
		})
	}
	return s
}

// waited is how long the pod of a job has been there that has waited the longest for a node; 0 if none does. Others may have been placed meanwhile.
func (w *world) waited(l *life) (longest time.Duration) {
	for _, p := range w.pods() {
		if p.Labels[jobLabel] == l.Name && p.Spec.NodeName == "" && p.DeletionTimestamp == nil {
			longest = max(longest, time.Since(p.CreationTimestamp.Time))
		}
	}
	return longest
}

// overlooked says which job has waited for long though it fits; empty if none.
func (w *world) overlooked() string {
	if !w.s.busy() {
		return ""
	}
	room := w.room()
	for _, j := range w.s.Jobs {
		l := w.jobs[j.Name]
		need := 0
		if l.submitted && !l.deleted {
			need = l.missing(w.standing(l))
		}
		switch {
		case need == 0 || places(room, l.Cores) < need:
			l.fits = time.Time{}
		case l.fits.IsZero():
			l.fits = time.Now()
		case time.Since(l.fits) > overlooks && w.waited(l) > overlooks:
			return fmt.Sprintf("%s fits, and was overlooked for %s: %v", l.Name, time.Since(l.fits), room)
		}
	}
	return ""
}
