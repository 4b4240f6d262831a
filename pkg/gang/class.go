// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/heap"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// class is the planning state of the tasks that every node treats alike: they are filtered once and scored once, and
// after a placement only the node just used is looked at again.
type class struct {
	attempt *attempt
	job     *model.Job
	pod     *corev1.Pod
	podInfo fwk.PodInfo
	task    *model.Task
	kind    kind
	state   fwk.CycleState
	// wanted is how many tasks of the class the turn may place; needed is how many it must.
	wanted, needed int
	// looksAround: a filter of the class depends on pods of other nodes.
	looksAround bool
	// canFail: Reserve may refuse what Filter promised, as it did on the nodes that are unreservable.
	canFail      bool
	unreservable map[int]bool
	// uses is how many plans have used the candidates.
	uses int
	// newest is the highest generation of the nodes when all of them had been looked at, and filled are those that were refused with
	// what was planned on them.
	newest int64
	filled sets.Set[int]

	// only are the nodes that PreFilter left, if it did not leave all.
	only []int
	// start is where the scan of the nodes began; next is how many have been looked at.
	start, next int
	heap        *heap.Heap[*candidate]
	// entries maps a node to its candidate; deferred are those that a filter refused that looks at other nodes' pods.
	entries, deferred map[int]*candidate
	scores            scorer
	// seen is how much of the overlay's log the candidates reflect, and met what of it can make no difference any more.
	seen int
	met  map[meeting]bool
	// upset: pods were taken away, or put back, since the class last looked.
	upset bool
	// exhausted: every node has been looked at and none is left.
	exhausted bool
	// trustRequests: a node whose idle resources are below the request is refused without running the filters; valid once
	// checkedRequests.
	trustRequests, checkedRequests bool
	// vetoed are the nodes that have room and that filters refuse.
	vetoed []int
	// rejectedBy is the plugin whose PreFilter left no node; empty for none.
	rejectedBy string
	// shortages are what nodes without room are said to lack, by the set of positions in the request.
	shortages map[uint64][]string
	refusals  refusals
}

// newClass runs PreFilter for the class of a task and replays the pods planned so far. It returns another class of the attempt if that
// serves the task as well.
func newClass(ctx context.Context, a *attempt, t *model.Task) (*class, error) {
	p := a.planner
	info, err := p.NewPodInfo(t.Pod)
	if err != nil {
		return nil, fmt.Errorf("reading pod %s/%s: %w", t.Pod.Namespace, t.Pod.Name, err)
	}
	c := &class{
		attempt: a, job: a.job, pod: t.Pod, podInfo: info, task: t, kind: a.arrangement.kindOf(t),
		state:        p.NewState(),
		canFail:      p.ReservationCanFail(t.Pod),
		heap:         newCandidates(),
		entries:      map[int]*candidate{},
		deferred:     map[int]*candidate{},
		unreservable: map[int]bool{},
		met:          map[meeting]bool{},
		shortages:    map[uint64][]string{},
	}
	MarkPlan(c.state, a.job)
	c.demand()
	// Plugins hear one by one of the pods that are planned.
	a.unfollow(ctx)
	result, status, _ := p.Framework.RunPreFilterPlugins(ctx, c.state, t.Pod)
	switch {
	case status.IsRejected():
		c.dismiss(status)
		return c, nil
	case !status.IsSuccess():
		return nil, c.preFilterError(status)
	}
	if c.looksAround = looksAround(t, c.state); c.looksAround {
		if err := c.tell(ctx); err != nil {
			return nil, err
		}
	}
	c.seen = len(a.overlay.added)
	c.restrict(result)
	if a.evictor != nil || !c.plain() {
		return c, nil
	}
	if other, err := c.twin(ctx); other != nil || err != nil {
		return other, err
	}
	if err := c.adopt(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// dismiss gives the class up: PreFilter leaves it no node.
func (c *class) dismiss(status *fwk.Status) {
	c.refusals.general = append(c.refusals.general, status.Message())
	c.rejectedBy = status.Plugin()
	c.exhausted, c.looksAround = true, false
	c.heap, c.entries, c.deferred = newCandidates(), nil, nil
}

// dismissed reports whether PreFilter left no node.
func (c *class) dismissed() bool { return len(c.refusals.general) > 0 }

func (c *class) preFilterError(status *fwk.Status) error {
	return fmt.Errorf("running PreFilter for pod %s/%s: %w", c.pod.Namespace, c.pod.Name, status.AsError())
}

// tell tells the class's filters of all pods planned and taken away so far.
func (c *class) tell(ctx context.Context) error {
	o := c.attempt.overlay
	for _, gone := range o.gone {
		if err := c.removePod(ctx, c.state, gone, o.at(gone.node)); err != nil {
			return err
		}
	}
	for _, added := range o.added {
		if err := c.addPod(ctx, added.pod, o.at(added.node)); err != nil {
			return err
		}
	}
	if len(o.added) == 0 {
		return nil
	}
	return c.recount(ctx)
}

// demand counts how many tasks of the class the turn wants and how many it cannot do without.
func (c *class) demand() {
	a := c.attempt
	same, others := 0, 0
	for _, t := range a.tasks {
		switch {
		case a.arrangement.kindOf(t) == c.kind:
			same++
		case !t.BestEffort || !a.quota.gang:
			others++
		}
	}
	if c.canFail {
		same = 1
	}
	remaining := a.quota.open
	c.wanted = max(1, min(same, remaining))
	if a.evictor == nil {
		c.needed = max(0, remaining-others)
	}
}

// looksAround reports whether placing a pod elsewhere can change the verdict of a filter for this class.
func looksAround(t *model.Task, state fwk.CycleState) bool {
	if t.Traits&(model.HasPodTerms|model.HasVolumes) != 0 || dependence(state)&OnPodsElsewhere != 0 {
		return true
	}
	// Existing or planned pods may have anti-affinity to this one even if it has no terms of its own.
	skipped := state.GetSkipFilterPlugins()
	return !skipped.Has(interPodAffinity) || !skipped.Has(podTopologySpread)
}

// restrict fixes the nodes to look at.
func (c *class) restrict(result *fwk.PreFilterResult) {
	c.start = c.attempt.planner.start
	if result.AllNodes() {
		return
	}
	o := c.attempt.overlay
	for i := range o.nodes {
		c.refusals.node(o, i, restricted)
	}
	c.only = []int{}
	for _, name := range sets.List(result.NodeNames) {
		if i := o.index(name); i >= 0 {
			c.only = append(c.only, i)
			c.refusals.node(o, i, nil)
		}
	}
	for i := range o.nodes {
		if !result.NodeNames.Has(o.nodes[i].Node().Name) {
			c.vetoed = append(c.vetoed, i)
		}
	}
}

// size is the number of nodes the class may use.
func (c *class) size() int {
	if c.only != nil {
		return len(c.only)
	}
	return len(c.attempt.overlay.nodes)
}

// node returns node number i in scan order, which begins where the last plan's scan ended.
func (c *class) node(i int) int {
	if c.only != nil {
		return c.only[i]
	}
	return (c.start + i) % len(c.attempt.overlay.nodes)
}

// allowed reports whether PreFilter left a node, and no reservation was refused there.
func (c *class) allowed(node int) bool {
	return !c.unreservable[node] && (c.only == nil || slices.Contains(c.only, node))
}

// restricted is the reason of nodes that PreFilter left out.
var restricted = []string{"node(s) didn't match the nodes the pod is restricted to"}

// addPod tells the class's filters of a pod planned on a node.
func (c *class) addPod(ctx context.Context, pod fwk.PodInfo, node fwk.NodeInfo) error {
	return c.addTo(ctx, c.state, pod, node)
}

func (c *class) addTo(ctx context.Context, state fwk.CycleState, pod fwk.PodInfo, node fwk.NodeInfo) error {
	if status := c.attempt.planner.Framework.RunPreFilterExtensionAddPod(ctx, state, c.pod, pod, node); !status.IsSuccess() {
		return fmt.Errorf("adding planned pod to the PreFilter state of pod %s/%s: %w", c.pod.Namespace, c.pod.Name, status.AsError())
	}
	return nil
}

// removePod tells the class's filters of a pod taken off a node.
func (c *class) removePod(ctx context.Context, state fwk.CycleState, r removed, node fwk.NodeInfo) error {
	if status := c.attempt.planner.Framework.RunPreFilterExtensionRemovePod(ctx, state, c.pod, r.pod, node); !status.IsSuccess() {
		return fmt.Errorf("removing a pod from the PreFilter state of pod %s/%s: %w", c.pod.Namespace, c.pod.Name, status.AsError())
	}
	return nil
}

// best returns the best node left, or nil, of a class that has caught up: what it returns passes the filters with everything planned so
// far.
func (c *class) best(ctx context.Context) (*candidate, error) {
	for {
		if err := c.scores.settle(ctx, c); err != nil {
			return nil, err
		}
		switch {
		case c.heap.Len() > 0:
			return c.heap.Top(), nil
		case c.exhausted:
			return nil, nil
		}
		if err := c.scan(ctx); err != nil {
			return nil, err
		}
	}
}

// catchUp filters and scores again the nodes about which the pods planned since the class last looked may make a difference.
func (c *class) catchUp(ctx context.Context) error {
	if c.dismissed() {
		return nil
	}
	c.looksAround = c.looksAround || len(c.attempt.overlay.repelling) > 0
	added := c.attempt.overlay.added[c.seen:]
	c.seen += len(added)
	if len(added) == 0 && !c.upset {
		return nil
	}
	var err error
	if c.looksAround {
		err = c.reconsider(ctx, added)
	} else {
		err = c.revisit(ctx, added)
	}
	if err == nil && c.heap.Len() > 0 && c.rescores(added) {
		err = c.scores.all(ctx, c)
	}
	return err
}

// revisit looks again at the nodes that got pods.
func (c *class) revisit(ctx context.Context, added []planned) error {
	for _, p := range added {
		e := c.entries[p.node]
		if e == nil || e.generation == c.attempt.overlay.at(p.node).GetGeneration() {
			continue
		}
		if err := c.renew(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// renew filters and scores a candidate again.
func (c *class) renew(ctx context.Context, e *candidate) error {
	e.see(c.attempt.overlay)
	if c.places(ctx, e.info) == 0 {
		c.refusals.node(c.attempt.overlay, e.node, c.insufficient(e.info))
		c.remove(e)
		return nil
	}
	if status := c.runFilters(ctx, e.info); !status.IsSuccess() {
		c.refuse(e, status)
		return nil
	}
	if err := c.scores.update(ctx, c, e); err != nil {
		return err
	}
	c.heap.Put(e)
	return nil
}

// refuse takes a node out of the class for a reason.
func (c *class) refuse(e *candidate, status *fwk.Status) {
	c.refusals.node(c.attempt.overlay, e.node, status.Reasons())
	c.remove(e)
}

// remove takes a candidate out; nodes on which room is kept or made are none.
func (c *class) remove(e *candidate) {
	if c.entries[e.node] != e {
		return
	}
	c.heap.Remove(e)
	delete(c.entries, e.node)
	c.scores.lose(e)
}
