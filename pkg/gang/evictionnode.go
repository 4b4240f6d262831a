// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/heap"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// leastEvictionNodes is how many nodes that can be made to fit are compared before one is chosen, if there are so many; a gang
// compares at least as many as it has tasks. Source: upstream's preemption dry-runs 100 or 10 % of the nodes, Volcano's
// preempt action at most 100.
const leastEvictionNodes = 100

// evictionNode is a node on which evictions make room for one task of a class.
type evictionNode struct {
	node  int
	units []unit
	cost  cost
	// work is the work that is lost if the pods are moved: see mover.work.
	work float64
	// changes is the evictor's count as of when it was looked at.
	changes int
	at      int
}

// Position implements heap.Element.
func (s *evictionNode) Position() *int { return &s.at }

// evictionNodes are the nodes of one class that were looked at.
type evictionNodes struct {
	heap *heap.Heap[*evictionNode]
	next int
}

// cost orders nodes: where pods are moved by priority, then by the work that is lost; else nearer queues, fewer whole jobs that are of use, lower priority, fewer victims, queues that go first, less work lost.
// Where only broken gangs go, with which nothing is lost, the order of victims decides. Upstream orders by budget violations, priority,
// number and start time; budgets are not violated here.
type cost struct {
	distance, whole int
	priority        int32
	victims         int
	// dearest is the victim that goes last.
	dearest model.Victim
	// lost is how long the victims have run, together.
	lost time.Duration
	// broken is the victim of broken gangs that goes last; the others above do not count it. Scraps counts them.
	broken model.Victim
	scraps int
}

func (e *evictor) compare(a, b *evictionNode) int {
	if e.mover != nil {
		return cmp.Or(cmp.Compare(a.cost.priority, b.cost.priority), cmp.Compare(a.work, b.work), cmp.Compare(a.node, b.node))
	}
	c := cmp.Or(
		cmp.Compare(a.cost.distance, b.cost.distance),
		cmp.Compare(a.cost.whole, b.cost.whole),
		cmp.Compare(a.cost.priority, b.cost.priority),
		cmp.Compare(a.cost.victims, b.cost.victims),
	)
	x, y := a.cost.dearest, b.cost.dearest
	switch {
	case c != 0:
		return c
	case x.Task == nil || y.Task == nil:
		return cmp.Or(e.trial.Compare(a.cost.broken, b.cost.broken), cmp.Compare(a.cost.scraps, b.cost.scraps), cmp.Compare(a.node, b.node))
	case x.Job.Queue != y.Job.Queue:
		return e.trial.Compare(x, y)
	}
	return cmp.Or(cmp.Compare(a.cost.lost, b.cost.lost), e.trial.Compare(x, y), cmp.Compare(a.node, b.node))
}

// costOf adds up what the evictions on a node cost.
func (e *evictor) costOf(units []unit) cost {
	var c cost
	for _, u := range units {
		c.distance = max(c.distance, e.trial.Distance(u.victims[0]))
		if e.trial.Lapsed(u.victims[0].Job) {
			c.scraps += len(u.victims)
			if last := u.dearest(); c.broken.Task == nil || e.trial.Compare(c.broken, last) < 0 {
				c.broken = last
			}
			continue
		}
		if u.whole {
			c.whole++
		}
		for _, v := range u.victims {
			c.victims++
			if c.dearest.Task == nil || v.Job.Priority > c.priority {
				c.priority = v.Job.Priority
			}
			if c.dearest.Task == nil || e.trial.Compare(c.dearest, v) < 0 {
				c.dearest = v
			}
			if start := v.Task.Pod.Status.StartTime; start != nil {
				c.lost += max(0, e.search.Now.Sub(start.Time))
			}
		}
	}
	if c.victims == 0 {
		c.priority = math.MinInt32
	}
	return c
}

// makeRoom finds a node for a task where evictions make room, the cheapest of those looked at, and carries them out on the
// overlay. Room that earlier evictions left over comes first. It returns nil when there is none.
func (e *evictor) makeRoom(ctx context.Context, c *class, t *model.Task) (*candidate, error) {
	if e.withinBudget(t) {
		if spare := e.leftover(ctx, c); spare != nil {
			return spare, nil
		}
	}
	if neverPreempts(t.Pod) {
		e.keep(t.UID, "the pod that needs room has preemptionPolicy Never")
		return nil, nil
	}
	found := e.evictionNodesOf(c)
	if found.next == 0 {
		e.scanFurther(ctx, c, t, found)
	}
	for {
		for s := e.cheapest(ctx, c, t, found); s != nil; s = e.cheapest(ctx, c, t, found) {
			if at, err := e.carryOut(ctx, c, found, s); at != nil || err != nil {
				return at, err
			}
		}
		if found.next >= c.size() || e.mover.weary() {
			return nil, nil
		}
		e.scanFurther(ctx, c, t, found)
	}
}

// cheapest takes the cheapest of the nodes found, as things are now. It returns nil when there is none, or enough has been tried.
func (e *evictor) cheapest(ctx context.Context, c *class, t *model.Task, found *evictionNodes) *evictionNode {
	for found.heap.Len() > 0 && !e.mover.weary() {
		s := found.heap.Pop()
		if s.changes == e.changes {
			return s
		}
		if s = e.tryNode(ctx, c, t, s.node); s == nil {
			continue
		}
		if found.heap.Len() == 0 || e.compare(found.heap.Top(), s) >= 0 {
			return s
		}
		found.heap.Put(s)
	}
	return nil
}

// carryOut evicts on the overlay those who make room on a node. It returns nil if the filters say otherwise than in the trial: what is to be
// reserved for a task there they find with the state of the class.
func (e *evictor) carryOut(ctx context.Context, c *class, found *evictionNodes, s *evictionNode) (*candidate, error) {
	if m := e.mover; m != nil {
		if moved, err := m.rehome(ctx, c, found, s); !moved || err != nil {
			return nil, err
		}
	}
	for _, u := range s.units {
		if err := e.take(ctx, u); err != nil {
			return nil, err
		}
	}
	// It may do for the next task too, and is looked at again once this one is on it.
	found.heap.Put(&evictionNode{node: s.node, cost: s.cost, work: s.work, changes: -1, at: -1})
	if c.canFail && !c.runFilters(ctx, e.attempt.overlay.at(s.node)).IsSuccess() {
		c.unreservable[s.node] = true
		return nil, nil
	}
	return newCandidate(e.attempt.overlay, s.node), nil
}

// withinBudget reports whether the queue may hold the task on top of what it holds and placed so far.
func (e *evictor) withinBudget(t *model.Task) bool {
	return e.attempt.budget.Refuses(t.Charge) == (model.Reason{})
}

// leftover returns a node from which pods were removed, and that has room as it is.
func (e *evictor) leftover(ctx context.Context, c *class) *candidate {
	for _, node := range e.touched {
		info := e.attempt.overlay.at(node)
		if c.allowed(node) && room(info, c.task.Request) > 0 && c.runFilters(ctx, info).IsSuccess() {
			return newCandidate(e.attempt.overlay, node)
		}
	}
	return nil
}

func (e *evictor) evictionNodesOf(c *class) *evictionNodes {
	found := e.nodes[c]
	if found == nil {
		found = &evictionNodes{heap: heap.New(func(a, b *evictionNode) bool { return e.compare(a, b) < 0 })}
		e.nodes[c] = found
	}
	return found
}

// scanFurther looks at further nodes until enough of them can be made to fit, or none is left.
func (e *evictor) scanFurther(ctx context.Context, c *class, t *model.Task, found *evictionNodes) {
	enough := max(leastEvictionNodes, c.wanted)
	for ; found.next < c.size() && found.heap.Len() < enough; found.next++ {
		if s := e.tryNode(ctx, c, t, c.node(found.next)); s != nil {
			found.heap.Put(s)
		}
	}
	e.scanned = max(e.scanned, found.next)
}

// tryNode finds the least evictions on one node that make room for the task, preferring those who go first: surplus tasks,
// and only if they do not suffice whole jobs. It returns nil when there are none. Nothing is changed.
func (e *evictor) tryNode(ctx context.Context, c *class, t *model.Task, node int) *evictionNode {
	candidates := e.candidates(node)
	if len(candidates) == 0 || c.unreservable[node] {
		return nil
	}
	units := e.choose(ctx, c, t, node, candidates, false)
	if units == nil && e.trial.WholeJobs() {
		units = e.choose(ctx, c, t, node, candidates, true)
	}
	if units == nil {
		return nil
	}
	return &evictionNode{node: node, units: units, cost: e.costOf(units), work: e.mover.work(c, node, units), changes: e.changes, at: -1}
}

// candidates are the pods of a node that could be victims, in the order in which they would go.
func (e *evictor) candidates(node int) []model.Victim {
	info := e.attempt.overlay.at(node)
	var list []model.Victim
	for _, p := range info.GetPods() {
		uid := p.GetPod().UID
		v := e.search.Victim(uid)
		if v.Task == nil || v.Job == nil || e.gone[uid] || v.Task.Node == "" || e.mover.settles(uid) {
			continue
		}
		v.Node = info.Node()
		if why := e.trial.Candidate(v); why != "" {
			e.keep(uid, why)
			continue
		}
		list = append(list, v)
	}
	slices.SortFunc(list, e.trial.Compare)
	return list
}

// choose takes units in order, as the trial allows, until the task fits the node, and then gives back those that it does
// not need, the dearest first. It returns nil when all of them do not suffice. Nothing is changed in the end.
func (e *evictor) choose(ctx context.Context, c *class, t *model.Task, node int, candidates []model.Victim, wholes bool) []unit {
	w := e.what(c, t, node)
	defer w.done()
	units := w.unitsOf(candidates, wholes)
	for u := range units {
		if why := e.trial.Evaluate(u.victims...); why != "" {
			e.keep(u.victims[0].Task.UID, why)
			continue
		}
		w.take(u)
		if w.enough() {
			break
		}
	}
	// Arithmetic only gets so far: ports, volumes and terms of other pods are for the filters to say.
	if len(w.units) == 0 || !w.enough() || !w.fits(ctx) && !w.more(ctx, units) {
		return nil
	}
	kept := slices.Clone(w.units)
	for i := len(kept) - 1; i >= 0 && len(kept) > 1; i-- {
		w.giveBack(kept[i])
		if w.enough() && w.fits(ctx) {
			kept = slices.Delete(kept, i, i+1)
		} else {
			w.take(kept[i])
		}
	}
	w.units = kept
	return slices.Clone(kept)
}

// neverPreempts reports whether the pod asks that nobody be evicted for it.
func neverPreempts(pod *corev1.Pod) bool {
	return pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
}
