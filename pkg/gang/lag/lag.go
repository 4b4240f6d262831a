// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lag knows what the scheduler's cache has yet to learn that the model knows. The two have watches of their own.
package lag

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// How long, and how often, the scheduler's cache is waited for to take in an event. A pod that was deleted while it waited to
// bind stays there until its cycle ends, which may take minutes. The cache and the model have watches of their own. If only that of the
// cache breaks, it may be late by as much. Nobody is told when it has caught up, so that refused jobs are planned again now and then.
const (
	patience  = time.Second
	mostLooks = 100
	memory    = time.Minute
	// mostExpected bounds what is remembered; the oldest is forgotten first.
	mostExpected = 4096
)

// Lag is the room that the model knows of and the scheduler's cache may not. A plan made without it would give the room to the next job, or
// have somebody evicted for nothing. So a Lag is a witness of the model: who reads there that a pod has left finds it here, too.
type Lag struct {
	clock clock.PassiveClock
	// task returns what the model knows of a pod; nil when it is no task. It is not called with the lock held, which the model waits for.
	task func(types.UID) *model.Task

	mu sync.Mutex
	// expected are in the order in which the model learned of them.
	expected []*expectation
}

// New returns a Lag that expects nothing yet. Task returns what the model knows of a pod; nil when it is no task.
func New(c clock.PassiveClock, task func(types.UID) *model.Task) *Lag {
	return &Lag{clock: c, task: task}
}

// expectation is a pod that is to be gone from a node, one that is to be there as of a version, or, without a pod, a node that is to be as of one.
type expectation struct {
	pod           types.UID
	node, version string
	since         time.Time
	looks         int
}

// Notify takes in what changed in the model.
func (l *Lag) Notify(c model.Change) {
	if len(c.Left) == 0 && len(c.Nodes) == 0 && len(c.Resized) == 0 {
		return
	}
	now := l.clock.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	stale := 0
	for stale < len(l.expected) && now.Sub(l.expected[stale].since) > memory {
		stale++
	}
	l.expected = slices.Delete(l.expected, 0, stale)
	for _, d := range c.Left {
		l.expected = append(l.expected, &expectation{pod: d.Pod, node: d.Node, since: now})
	}
	for _, r := range c.Resized {
		if r.Version != "" {
			l.expected = append(l.expected, &expectation{pod: r.Pod, node: r.Node, version: r.Version, since: now})
		}
	}
	for _, n := range c.Nodes {
		l.expected = append(l.expected, &expectation{node: n.Name, version: n.ResourceVersion, since: now})
	}
	if more := len(l.expected) - mostExpected; more > 0 {
		l.expected = slices.Delete(l.expected, 0, more)
	}
}

// Behind reports whether a snapshot of the cache lacks room that the model knew of when the snapshot was taken, on a node that concerns the
// caller. A turn that was refused by it is to be planned again: at once, or after a while if the room is late.
func (l *Lag) Behind(snapshot fwk.NodeInfoLister, taken time.Time, concerns func(node string) bool) (behind, late bool) {
	now := l.clock.Now()
	for _, e := range l.open(snapshot, now) {
		switch {
		case e.since.After(taken) || !concerns(e.node):
		case e.looks < mostLooks && now.Sub(e.since) <= patience:
			e.looks++
			behind = true
		default:
			late = true
		}
	}
	return behind, late
}

// Doubted reports whether a snapshot of the cache lacks room that the model has learned of within the last second, on a node that concerns the
// caller. Nobody is to be evicted by such a snapshot, however often that was looked at.
func (l *Lag) Doubted(snapshot fwk.NodeInfoLister, concerns func(node string) bool) bool {
	now := l.clock.Now()
	return slices.ContainsFunc(l.open(snapshot, now), func(e *expectation) bool {
		return now.Sub(e.since) <= patience && concerns(e.node)
	})
}

// open forgets what a snapshot shows, or is long past, and returns the rest. Only the scheduling goroutine calls it.
func (l *Lag) open(snapshot fwk.NodeInfoLister, now time.Time) []*expectation {
	l.mu.Lock()
	all := slices.Clone(l.expected)
	l.mu.Unlock()
	seen := make(map[*expectation]bool, len(all))
	for _, e := range all {
		seen[e] = l.met(e, snapshot)
	}
	over := func(e *expectation) bool { return now.Sub(e.since) > memory || seen[e] }
	if len(all) > 0 {
		l.mu.Lock()
		l.expected = slices.DeleteFunc(l.expected, over)
		l.mu.Unlock()
	}
	return slices.DeleteFunc(all, over)
}

// met reports whether a snapshot shows what is expected. A pod that lost its reservation may have got one on the same node since.
func (l *Lag) met(e *expectation, snapshot fwk.NodeInfoLister) bool {
	info, err := snapshot.Get(e.node)
	if e.pod == "" {
		return err == nil && asOf(info.Node(), e.version)
	}
	if t := l.task(e.pod); e.version == "" && t != nil && t.Node == e.node && t.Status.HoldsNode() {
		return true
	}
	if err != nil {
		return true
	}
	at := slices.IndexFunc(info.GetPods(), func(p fwk.PodInfo) bool { return p.GetPod().UID == e.pod })
	return at < 0 || e.version != "" && asOf(info.GetPods()[at].GetPod(), e.version)
}

// asOf reports whether an object is no older than a version. Versions that cannot be compared are not waited for.
func asOf(object metav1.Object, version string) bool {
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), version)
	return err != nil || order >= 0
}
