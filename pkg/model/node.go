// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// node is one node of the cluster. A pod may be seen before its node; such a node has known == false and adds nothing
// to the totals.
type node struct {
	known       bool
	allocatable resource.Vector
	used        resource.Vector
	// excess is the sum of its pods' requests above its allocatable amounts; empty while the node is not known.
	excess resource.Vector
	// foreign is the part of used that pods hold which are nobody's tasks. Barrier is the taints that keep pods off; nil where it has none. Usable is
	// what it adds to what tasks can use, shut to what is idle where no task may go.
	foreign      resource.Vector
	barrier      *barrier
	usable, shut resource.Vector
	// object is the node as last seen, nil while it is not known.
	object *corev1.Node
}

// Totals are sums over the known nodes.
type Totals struct {
	Nodes       int
	Allocatable resource.Vector
	// Used is what all pods on the nodes ask for, those of other schedulers included.
	Used resource.Vector
	// Excess sums up, node by node, the requests above the allocatable amounts: of nodes that have shrunk.
	Excess resource.Vector
	// Shut is idle, on nodes whose taints no task tolerates.
	Shut resource.Vector
	// Largest is the greatest allocatable amount of each resource on any one node.
	Largest resource.Vector
}

// Idle is what the pods leave, summed up node by node. A node that is overcommitted counts as full.
func (t Totals) Idle() resource.Vector {
	idle := t.Allocatable.Clone()
	idle.Sub(t.Used)
	idle.Add(t.Excess)
	return idle
}

// IdleForTasks is the idle part of all nodes but those whose taints no task tolerates.
func (t Totals) IdleForTasks() resource.Vector {
	idle := t.Idle()
	idle.Sub(t.Shut)
	return idle
}

// NodeUse is a node and what is taken of it.
type NodeUse struct {
	*corev1.Node
	// Used is what all pods on it ask for, those of other schedulers included, and the tasks that room is kept for.
	Used resource.Vector
}

// Nodes returns the known nodes by name.
func (s *State) Nodes() []NodeUse {
	s.mu.RLock()
	defer s.mu.RUnlock()
	list := make([]NodeUse, 0, s.ledger.count)
	for _, n := range s.ledger.nodes {
		if n.known {
			list = append(list, NodeUse{Node: n.object, Used: n.used.Clone()})
		}
	}
	slices.SortFunc(list, func(a, b NodeUse) int { return cmp.Compare(a.Name, b.Name) })
	for uid := range s.nominated {
		t := s.task(uid)
		if i, known := slices.BinarySearchFunc(list, t.Nominated, func(n NodeUse, name string) int { return cmp.Compare(n.Name, name) }); known {
			list[i].Used.Add(t.Request)
		}
	}
	return list
}

// Room is what a node has left for the tasks that wait.
type Room struct {
	// Node is the node; nil when it is not known.
	Node *corev1.Node
	// Idle is what the pods on it leave of each resource that it has, below zero where they hold more than there is. What is only kept
	// for tasks is idle.
	Idle resource.Vector
}

// Room returns the room of a node.
func (s *State) Room(name string) Room {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := s.ledger.nodes[name]
	if n == nil || !n.known {
		return Room{}
	}
	return n.room()
}

// Rooms returns the room of each known node by name.
func (s *State) Rooms() map[string]Room {
	s.mu.RLock()
	defer s.mu.RUnlock()
	rooms := make(map[string]Room, s.ledger.count)
	for name, n := range s.ledger.nodes {
		if n.known {
			rooms[name] = n.room()
		}
	}
	return rooms
}

func (n *node) room() Room {
	idle := make(resource.Vector, 0, len(n.allocatable))
	for _, a := range n.allocatable {
		if a.Value > 0 {
			idle = append(idle, resource.Amount{Name: a.Name, Value: a.Value - n.used.Get(a.Name)})
		}
	}
	return Room{Node: n.object, Idle: idle}
}

// ledger keeps the totals. It belongs to the State that holds it.
type ledger struct {
	nodes map[string]*node
	// pods maps the UID of every pod on a node to what it holds there.
	pods        map[types.UID]holding
	count       int
	allocatable resource.Vector
	used        resource.Vector
	excess      resource.Vector
	usability
	// largest is nil when it has to be computed again.
	largest resource.Vector
	// leaving are the pods that terminate.
	leaving map[types.UID]bool
	// touched are the nodes whose room changed since the last write ended.
	touched []string
	// request is what the pod before asked for.
	request resource.Vector
}

// holding is what a pod takes of its node, and what the affinity and spread terms of other pods look at.
type holding struct {
	node    string
	request resource.Vector
	labels  map[string]string
	// foreign: the pod is nobody's task.
	foreign     bool
	terminating bool
	// until is when a terminating pod should be gone; zero while the API server has not said.
	until time.Time
}

func newLedger() ledger {
	return ledger{nodes: map[string]*node{}, pods: map[types.UID]holding{}, leaving: map[types.UID]bool{}, usability: newUsability()}
}

func (l *ledger) at(name string) *node {
	n := l.nodes[name]
	if n == nil {
		n = &node{}
		l.nodes[name] = n
	}
	return n
}

// alike is what a pod asks for, kept once for pods that ask for the same and come one after the other, as those of a job do.
func (l *ledger) alike(request resource.Vector) resource.Vector {
	if !slices.Equal(request, l.request) {
		l.request = request
	}
	return l.request
}

// touch records that the room of a node changed.
func (l *ledger) touch(name string) { l.touched = append(l.touched, name) }

// setNode records a node, and reports whether the change can help a waiting job, and whether there is less for all.
func (l *ledger) setNode(object *corev1.Node) (helps, shrank bool) {
	n := l.at(object.Name)
	allocatable := resource.FromList(object.Status.Allocatable)
	if !n.known || !slices.Equal(allocatable, n.allocatable) || placementChanged(n.object, object) {
		l.touch(object.Name)
	}
	if n.known {
		l.allocatable.Sub(n.allocatable)
	} else {
		l.count++
		l.used.Add(n.used)
	}
	l.allocatable.Add(allocatable)
	l.compare(n.allocatable, allocatable)
	shrank = n.allocatable.Exceeding(allocatable) != nil
	helps = !n.known || allocatable.Exceeding(n.allocatable) != nil || placementChanged(n.object, object)
	n.known, n.allocatable, n.object = true, allocatable, object
	l.weigh(n)
	l.stand(n, keepOff(object))
	l.gauge(n)
	return helps, shrank
}

// compare takes in that a node has other amounts than before. All nodes are gone through again only if it may have been the largest: most news of nodes
// change nothing, and with thousands of nodes there are hundreds a second.
func (l *ledger) compare(before, now resource.Vector) {
	if l.largest == nil || slices.Equal(before, now) {
		return
	}
	mayHaveBeen := func(a resource.Amount) bool {
		return a.Value == l.largest.Get(a.Name) && !slices.ContainsFunc(now, func(b resource.Amount) bool { return b.Name == a.Name && b.Value >= a.Value })
	}
	if slices.ContainsFunc(before, mayHaveBeen) {
		l.largest = nil
		return
	}
	// What it was has been handed out.
	l.largest = l.largest.Clone()
	l.largest.Max(now)
}

// weigh brings up to date what the pods on a node ask for beyond what it has.
func (l *ledger) weigh(n *node) {
	var excess resource.Vector
	if n.known {
		excess = n.used.Exceeding(n.allocatable)
	}
	if len(n.excess) == 0 && len(excess) == 0 {
		return
	}
	l.excess.Sub(n.excess)
	l.excess.Add(excess)
	n.excess = excess
}

// placementChanged reports whether anything but the amounts changed that decides which pods a node takes.
func placementChanged(before, after *corev1.Node) bool {
	return before.Spec.Unschedulable != after.Spec.Unschedulable ||
		!maps.Equal(before.Labels, after.Labels) || !slices.Equal(before.Status.DeclaredFeatures, after.Status.DeclaredFeatures) ||
		!slices.EqualFunc(before.Spec.Taints, after.Spec.Taints, func(a, b corev1.Taint) bool { return a.MatchTaint(&b) && a.Value == b.Value })
}

func (l *ledger) removeNode(name string) {
	n := l.nodes[name]
	if n == nil || !n.known {
		return
	}
	l.touch(name)
	l.count--
	l.allocatable.Sub(n.allocatable)
	l.used.Sub(n.used)
	l.compare(n.allocatable, nil)
	n.known, n.allocatable, n.object = false, nil, nil
	l.weigh(n)
	l.stand(n, nil)
	l.gauge(n)
	l.forgetEmpty(name, n)
}

// forgetEmpty drops an unknown node that no pod is on.
func (l *ledger) forgetEmpty(name string, n *node) {
	if !n.known && n.used.BestEffort() && n.used.Get(corev1.ResourcePods) == 0 {
		delete(l.nodes, name)
	}
}

// hold records what a pod holds, replacing what was known of it, and returns what that can help. Other is whether it held something else.
func (l *ledger) hold(uid types.UID, h holding) (helps Event, other bool) {
	if h.terminating {
		l.leaving[uid] = true
	} else {
		delete(l.leaving, uid)
	}
	before, had := l.pods[uid]
	if had && before.node == h.node && slices.Equal(before.request, h.request) {
		l.pods[uid] = h
		if before.terminating == h.terminating && maps.Equal(before.labels, h.labels) {
			return 0, false
		}
		return PodPlaced, false
	}
	l.drop(uid)
	l.pods[uid] = h
	n := l.at(h.node)
	l.touch(h.node)
	l.fill(n, h, 1)
	if had {
		return RoomMade | PodPlaced, true
	}
	return PodPlaced, false
}

// release records that a pod is on no node, and returns on which it was.
func (l *ledger) release(uid types.UID) (node string, held bool) {
	delete(l.leaving, uid)
	return l.drop(uid)
}

// drop takes what a pod holds off its node.
func (l *ledger) drop(uid types.UID) (node string, held bool) {
	h, ok := l.pods[uid]
	if !ok {
		return "", false
	}
	delete(l.pods, uid)
	n := l.nodes[h.node]
	l.touch(h.node)
	l.fill(n, h, -1)
	l.forgetEmpty(h.node, n)
	return h.node, true
}

// fill adds n times what a pod holds to what is taken of its node.
func (l *ledger) fill(n *node, h holding, times int64) {
	n.used.AddTimes(h.request, times)
	if h.foreign {
		n.foreign.AddTimes(h.request, times)
	}
	if n.known {
		l.used.AddTimes(h.request, times)
		l.weigh(n)
	}
	if h.foreign || n.barred() {
		l.gauge(n)
	}
}

func (l *ledger) totals() Totals {
	if l.largest == nil {
		l.largest = resource.Vector{}
		for _, n := range l.nodes {
			l.largest.Max(n.allocatable)
		}
	}
	return Totals{Nodes: l.count, Allocatable: l.allocatable.Clone(), Used: l.used.Clone(), Excess: l.excess.Clone(), Shut: l.shut.Clone(), Largest: l.largest}
}
