// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node"
)

// A statement may move pods: they are evicted only if each of them fits another node, by the filters, beside all that the statement places. A pod that
// is moved makes nobody else move, and goes to no node that pods are moved from.

const (
	// mostMoveTries is how often a statement tries to find other nodes for the pods of one node.
	mostMoveTries = 64
	// mostLooks is after how many nodes on which filters were run for pods that would be moved it tries no more.
	mostLooks = 10_000
)

// Why pods are not moved.
const (
	whyNoHome  = "it fits no other node"
	whyUnclear = "a plugin failed when it was asked which other nodes it fits"
	whyDivided = "nobody is moved for a job with subgroups"
)

// home is another node for a pod: the pod as it will be created again, and where it would be.
type home struct {
	planned
	victim model.Victim
}

// mover is the part of an evictor that moves pods.
type mover struct {
	*evictor
	// homes are those of the pods that were taken, by the UIDs of these. Settled are pods for which there is none.
	homes   map[types.UID]home
	settled map[types.UID]bool
	// tries and looks are how much has been tried: see mostMoveTries and mostLooks.
	tries, looks int
}

// weary reports whether enough has been tried.
func (m *mover) weary() bool { return m != nil && (m.tries >= mostMoveTries || m.looks >= mostLooks) }

// settles reports whether a pod has been found to fit no other node.
func (m *mover) settles(uid types.UID) bool { return m != nil && m.settled[uid] }

// work is what is lost if pods are created again, in seconds of a whole node. For each pod it is how long it has run, a second at least. That is
// multiplied by the part of its node that it has, of what the class asks for.
func (m *mover) work(c *class, at int, units []unit) float64 {
	if m == nil {
		return 0
	}
	lost, info := 0.0, m.attempt.overlay.at(at)
	for _, u := range units {
		for _, v := range u.victims {
			part, ran := 0.0, time.Second
			for _, a := range c.task.Request {
				if has, _ := node.Amounts(info, a.Name); has > 0 && a.Name != corev1.ResourcePods {
					part = max(part, float64(v.Task.Request.Get(a.Name))/float64(has))
				}
			}
			if start := v.Task.Pod.Status.StartTime; start != nil {
				ran = max(ran, m.search.Now.Sub(start.Time))
			}
			lost += part * ran.Seconds()
		}
	}
	return lost
}

// find finds homes for all pods of a node that make room there, and changes nothing. It returns none if some pod has none.
func (m *mover) find(ctx context.Context, s *evictionNode) ([]home, error) {
	m.tries++
	var victims []model.Victim
	for _, u := range s.units {
		victims = append(victims, u.victims...)
	}
	slices.SortStableFunc(victims, func(a, b model.Victim) int { return -compareSizes(a.Task.Request, b.Task.Request) })
	homes := make([]home, 0, len(victims))
	nodes := map[int]fwk.NodeInfo{}
	for _, v := range victims {
		h, err := m.homeOf(ctx, v, s.node, nodes)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			// That is between the plugin and the pod; it must not keep others from starting.
			m.settle(v, whyUnclear)
			return nil, nil
		case h == nil:
			m.settle(v, whyNoHome)
			return nil, nil
		}
		info := nodes[h.node]
		if info == nil {
			info = m.attempt.overlay.at(h.node).Snapshot()
			nodes[h.node] = info
		}
		info.AddPodInfo(h.pod)
		homes = append(homes, *h)
	}
	return homes, nil
}

// settle has a pod stay for the rest of the search, and says why.
func (m *mover) settle(v model.Victim, why string) {
	m.settled[v.Task.UID] = true
	m.keep(v.Task.UID, why)
}

// homeOf finds another node for a pod: of those that it fits, the one with the least room for more of the kind. Nodes are those that others of the
// same find have been given, as they would be. It returns nil when there is none.
func (m *mover) homeOf(ctx context.Context, v model.Victim, from int, nodes map[int]fwk.NodeInfo) (*home, error) {
	again := v.Task.ExpectedOn("")
	if m.attempt.planner.ReservationCanFail(again.Pod) {
		return nil, nil
	}
	p, only, err := m.pluginsFor(ctx, v, again.Pod)
	if p == nil || err != nil {
		return nil, err
	}
	type choice struct{ node, places int }
	var choices []choice
	at := func(node int) fwk.NodeInfo {
		if info := nodes[node]; info != nil {
			return info
		}
		return m.attempt.overlay.at(node)
	}
	for i := range m.attempt.overlay.nodes {
		if i == from || m.seen[i] || only != nil && !only[i] {
			continue
		}
		if places := room(at(i), v.Task.Request); places > 0 {
			choices = append(choices, choice{node: i, places: places})
		}
	}
	slices.SortStableFunc(choices, func(a, b choice) int { return cmp.Compare(a.places, b.places) })
	for _, c := range choices {
		m.looks++
		if !p.filterIn(ctx, p.state, at(c.node)).IsSuccess() {
			continue
		}
		results := []verdict{{places: c.places}}
		if err := p.extend([]int{c.node}, results); err != nil {
			return nil, err
		}
		if results[0].fits() {
			return &home{planned: planned{pod: p.podInfo, node: c.node, task: again}, victim: v}, nil
		}
	}
	return nil, nil
}

// pluginsFor runs PreFilter for a pod that is created again. Only are the nodes that it leaves; nil: all. There are no plugins when it leaves none.
func (m *mover) pluginsFor(ctx context.Context, v model.Victim, pod *corev1.Pod) (p *plugins, only map[int]bool, err error) {
	a := m.attempt
	info, err := a.planner.NewPodInfo(pod)
	if err != nil {
		return nil, nil, fmt.Errorf("reading pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	p = &plugins{attempt: a, pod: pod, podInfo: info, state: a.planner.NewState()}
	MarkPlan(p.state, v.Job)
	a.unfollow(ctx)
	result, status, _ := a.planner.Framework.RunPreFilterPlugins(ctx, p.state, pod)
	switch {
	case status.IsRejected():
		return nil, nil, nil
	case !status.IsSuccess():
		return nil, nil, p.preFilterError(status)
	}
	o := a.overlay
	if p.looksAround = looksAround(v.Task, p.state); p.looksAround {
		for _, gone := range o.gone {
			if err := p.removePod(ctx, p.state, gone, o.at(gone.node)); err != nil {
				return nil, nil, err
			}
		}
		for _, added := range o.added {
			if err := p.addPod(ctx, added.pod, o.at(added.node)); err != nil {
				return nil, nil, err
			}
		}
	}
	if !result.AllNodes() {
		only = map[int]bool{}
		for name := range result.NodeNames {
			only[o.index(name)] = true
		}
	}
	return p, only, nil
}

// rehome finds homes for those who make room on a node, and puts them there, and reports whether there are some for all. If there are none for
// somebody, the node may still do with others moved.
func (m *mover) rehome(ctx context.Context, c *class, found *evictionNodes, s *evictionNode) (moved bool, err error) {
	homes, err := m.find(ctx, s)
	if err != nil {
		return false, err
	}
	if homes == nil {
		if again := m.tryNode(ctx, c, c.task, s.node); again != nil {
			found.heap.Put(again)
		}
		return false, nil
	}
	return true, m.occupy(ctx, homes)
}

// occupy puts pods on the overlay where they go.
func (m *mover) occupy(ctx context.Context, homes []home) error {
	for _, h := range homes {
		info := m.attempt.overlay.add(h.node, h.pod, h.task)
		for _, c := range m.attempt.classes {
			if c.state != nil && c.looksAround {
				if err := c.addPod(ctx, h.pod, info); err != nil {
					return err
				}
			}
		}
		m.homes[h.victim.Task.UID] = h
	}
	return nil
}

// stay takes the pods of a unit off the nodes where they would go.
func (m *mover) stay(ctx context.Context, u unit) error {
	for _, v := range u.victims {
		h := m.homes[v.Task.UID]
		if err := m.remove(ctx, removed{pod: h.pod, node: h.node}); err != nil {
			return err
		}
	}
	return nil
}

// goAfterAll undoes stay.
func (m *mover) goAfterAll(ctx context.Context, u unit) error {
	for _, v := range u.victims {
		h := m.homes[v.Task.UID]
		if err := m.putBack(ctx, removed{pod: h.pod, node: h.node}); err != nil {
			return err
		}
	}
	return nil
}

// moves are where victims go.
func (m *mover) moves(victims []model.Victim) []Placement {
	if m == nil {
		return nil
	}
	list := make([]Placement, 0, len(victims))
	for _, v := range victims {
		list = append(list, Placement{Task: v.Task, Node: m.attempt.overlay.nodes[m.homes[v.Task.UID].node].Node().Name})
	}
	return list
}
