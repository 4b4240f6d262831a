// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/heap"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// leastSites is how many nodes that can be made to fit are compared before one is chosen, if there are so many; a gang
// compares at least as many as it has tasks. Source: upstream's preemption dry-runs 100 or 10 % of the nodes, Volcano's
// preempt action at most 100.
const leastSites = 100

// site is a node on which evictions make room for one task of a class.
type site struct {
	node  int
	units []unit
	cost  cost
	// changes is the evictor's count as of when the site was looked at.
	changes int
	at      int
}

// Position implements heap.Element.
func (s *site) Position() *int { return &s.at }

// sites are the nodes of one class that were looked at.
type sites struct {
	heap *heap.Heap[*site]
	next int
}

// cost orders sites: nearer queues, fewer whole jobs, lower priority, fewer victims, queues that go first, less work lost.
// Upstream orders by budget violations, priority, number and start time; budgets are not violated here.
type cost struct {
	distance, whole int
	priority        int32
	victims         int
	// dearest is the victim that goes last.
	dearest model.Victim
	// lost is how long the victims have run, together.
	lost time.Duration
}

func (e *evictor) compare(a, b *site) int {
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
		return cmp.Compare(a.node, b.node)
	case x.Job.Queue != y.Job.Queue:
		return e.trial.Compare(x, y)
	}
	return cmp.Or(cmp.Compare(a.cost.lost, b.cost.lost), e.trial.Compare(x, y), cmp.Compare(a.node, b.node))
}

// costOf adds up what the evictions of a site cost.
func (e *evictor) costOf(units []unit) cost {
	var c cost
	for _, u := range units {
		if u.whole {
			c.whole++
		}
		for _, v := range u.victims {
			c.victims++
			c.distance = max(c.distance, e.trial.Distance(v))
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
	found := e.sitesOf(c)
	if found.next == 0 {
		e.survey(ctx, c, t, found)
	}
	for {
		for found.heap.Len() > 0 {
			s := found.heap.Pop()
			if s.changes != e.changes {
				if s = e.look(ctx, c, t, s.node); s == nil {
					continue
				}
				if found.heap.Len() > 0 && e.compare(found.heap.Top(), s) < 0 {
					found.heap.Put(s)
					continue
				}
			}
			for _, u := range s.units {
				if err := e.take(ctx, u); err != nil {
					return nil, err
				}
			}
			// It may do for the next task too, and is looked at again once this one is on it.
			found.heap.Put(&site{node: s.node, cost: s.cost, changes: -1, at: -1})
			return newCandidate(e.attempt.overlay, s.node), nil
		}
		if found.next >= c.size() {
			return nil, nil
		}
		e.survey(ctx, c, t, found)
	}
}

// withinBudget reports whether the queue may hold the task on top of what it holds and placed so far.
func (e *evictor) withinBudget(t *model.Task) bool {
	return e.attempt.budget.Refuses(t.Request) == (model.Reason{})
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

func (e *evictor) sitesOf(c *class) *sites {
	found := e.sites[c]
	if found == nil {
		found = &sites{heap: heap.New(func(a, b *site) bool { return e.compare(a, b) < 0 })}
		e.sites[c] = found
	}
	return found
}

// survey looks at further nodes until there are enough sites or no node is left.
func (e *evictor) survey(ctx context.Context, c *class, t *model.Task, found *sites) {
	enough := max(leastSites, c.wanted)
	for ; found.next < c.size() && found.heap.Len() < enough; found.next++ {
		if s := e.look(ctx, c, t, c.node(found.next)); s != nil {
			found.heap.Put(s)
		}
	}
	e.scanned = max(e.scanned, found.next)
}

// look finds the least evictions on one node that make room for the task, preferring those who go first: surplus tasks,
// and only if they do not suffice whole jobs. It returns nil when there are none. Nothing is changed.
func (e *evictor) look(ctx context.Context, c *class, t *model.Task, node int) *site {
	candidates := e.candidates(node)
	if len(candidates) == 0 {
		return nil
	}
	units := e.choose(ctx, c, t, node, candidates, false)
	if units == nil && e.trial.WholeJobs() {
		units = e.choose(ctx, c, t, node, candidates, true)
	}
	if units == nil {
		return nil
	}
	return &site{node: node, units: units, cost: e.costOf(units), changes: e.changes, at: -1}
}

// candidates are the pods of a node that could be victims, in the order in which they would go.
func (e *evictor) candidates(node int) []model.Victim {
	info := e.attempt.overlay.at(node)
	var list []model.Victim
	for _, p := range info.GetPods() {
		uid := p.GetPod().UID
		v := e.search.Victim(uid)
		if v.Task == nil || v.Job == nil || e.gone[uid] || v.Task.Node == "" {
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

// unitsOf makes a unit of each candidate that may go by itself and, with wholes, after these one of all that a job has left
// for each of the others, in their order.
func (w *whatIf) unitsOf(candidates []model.Victim, wholes bool) iter.Seq[unit] {
	e := w.evictor
	return func(yield func(unit) bool) {
		var rest []model.Victim
		for _, v := range candidates {
			u := unit{victims: []model.Victim{v}, pods: e.podsOf(w.node, v)}
			if e.trial.WholeJobs() && (w.empties(u) || wholes && e.trial.Judge(v) != "") {
				rest = append(rest, v)
			} else if !yield(u) {
				return
			}
		}
		done := map[model.JobKey]bool{}
		for _, v := range rest {
			if !wholes || done[v.Job.Key] || w.has(v) {
				continue
			}
			done[v.Job.Key] = true
			if u, ok := w.wholeOf(v); ok && !yield(u) {
				return
			}
		}
	}
}

// has reports whether a victim is among those taken off.
func (w *whatIf) has(v model.Victim) bool {
	return slices.ContainsFunc(w.units, func(u unit) bool {
		return slices.ContainsFunc(u.victims, func(o model.Victim) bool { return o.Task == v.Task })
	})
}

// wholeOf is a unit of all tasks that a job has on nodes, if each of them could be a victim.
func (w *whatIf) wholeOf(v model.Victim) (unit, bool) {
	e := w.evictor
	u := unit{whole: true}
	o := e.attempt.overlay
	for _, t := range v.Job.Tasks {
		one := model.Victim{Task: t, Job: v.Job}
		if e.gone[t.UID] || t.Status == model.Releasing || !t.Status.HoldsNode() || w.has(one) {
			continue
		}
		node := o.index(t.Node)
		if node >= 0 {
			one.Node = o.at(node).Node()
		}
		if why := e.trial.Candidate(one); why != "" {
			e.keep(v.Task.UID, "of its job, which would go as a whole, another pod stays: "+why)
			return unit{}, false
		}
		u.victims = append(u.victims, one)
		if node >= 0 {
			u.pods = append(u.pods, e.podsOf(node, one)...)
		}
	}
	slices.SortFunc(u.victims, e.trial.Compare)
	return u, len(u.victims) > 0
}

func (e *evictor) podsOf(node int, v model.Victim) []removed {
	if pod := podOn(e.attempt.overlay.at(node), v.Task.UID); pod != nil {
		return []removed{{pod: pod, node: node}}
	}
	return nil
}

// choose takes units in order, as the trial allows, until the task fits the node, and then gives back those that it does
// not need, the dearest first. It returns nil when all of them do not suffice. Nothing is changed in the end.
func (e *evictor) choose(ctx context.Context, c *class, t *model.Task, node int, candidates []model.Victim, wholes bool) []unit {
	w := e.what(c, t, node)
	defer w.done()
	units := w.unitsOf(candidates, wholes)
	for u := range units {
		if why := e.trial.Judge(u.victims...); why != "" {
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

// whatIf is a node with units taken off it, and what the queues would hold then.
type whatIf struct {
	evictor *evictor
	class   *class
	task    *model.Task
	node    int
	info    fwk.NodeInfo
	state   fwk.CycleState
	units   []unit
	failed  error
}

func (e *evictor) what(c *class, t *model.Task, node int) *whatIf {
	w := &whatIf{evictor: e, class: c, task: t, node: node, info: e.attempt.overlay.at(node).Snapshot(), state: c.state}
	if c.looksAround {
		w.state = c.state.Clone()
	}
	return w
}

// take takes a unit off.
func (w *whatIf) take(u unit) {
	e := w.evictor
	for _, v := range u.victims {
		e.trial.Take(v)
		e.attempt.budget.Release(v.Job.Queue, v.Task.Request)
	}
	for _, r := range u.pods {
		if r.node == w.node {
			w.note(e.attempt.planner.RemovePod(w.info, r.pod.GetPod()))
		}
		if w.class.looksAround {
			w.note(w.class.removePod(context.Background(), w.state, r, w.nodeOf(r)))
		}
	}
	w.units = withUnit(w.units, u)
}

// giveBack undoes take.
func (w *whatIf) giveBack(u unit) {
	e := w.evictor
	for _, v := range u.victims {
		e.trial.Return(v)
		e.attempt.budget.Release(v.Job.Queue, negative(v.Task.Request))
	}
	for _, r := range u.pods {
		if r.node == w.node {
			w.info.AddPodInfo(r.pod)
		}
		if w.class.looksAround {
			w.note(w.class.addTo(context.Background(), w.state, r.pod, w.nodeOf(r)))
		}
	}
	w.units = slices.DeleteFunc(w.units, func(o unit) bool { return o.victims[0].Task == u.victims[0].Task })
}

func (w *whatIf) nodeOf(r removed) fwk.NodeInfo {
	if r.node == w.node {
		return w.info
	}
	return w.evictor.attempt.overlay.at(r.node)
}

func (w *whatIf) note(err error) {
	if w.failed == nil {
		w.failed = err
	}
}

// enough reports whether the idle resources of the node, and what the queue may hold, allow the task.
func (w *whatIf) enough() bool {
	return room(w.info, w.task.Request) > 0 && w.evictor.withinBudget(w.task)
}

// fits reports whether the filters allow the task.
func (w *whatIf) fits(ctx context.Context) bool {
	return w.failed == nil && w.class.filterIn(ctx, w.state, w.info).IsSuccess()
}

// more takes the remaining units one by one until the filters allow the task.
func (w *whatIf) more(ctx context.Context, units iter.Seq[unit]) bool {
	for u := range units {
		if w.has(u.victims[0]) || w.evictor.trial.Judge(u.victims...) != "" {
			continue
		}
		if w.take(u); w.fits(ctx) {
			return true
		}
	}
	return false
}

// empties reports whether a job that starts whole or not at all has nothing left on nodes once the unit is gone, too.
func (w *whatIf) empties(u unit) bool {
	job := u.victims[0].Job
	c := &job.Counts.ByStatus
	left := c[model.Allocated] + c[model.Bound] + c[model.Running] - len(u.victims)
	if left > 0 {
		left -= tasksOf(job.Key, w.units) + tasksOf(job.Key, w.evictor.taken)
	}
	return left <= 0 && job.Min() > 0
}

// tasksOf counts the tasks of a job in units.
func tasksOf(job model.JobKey, units []unit) int {
	n := 0
	for _, u := range units {
		if u.victims[0].Job.Key == job {
			n += len(u.victims)
		}
	}
	return n
}

// done undoes whatever is left.
func (w *whatIf) done() {
	for _, u := range w.units {
		for _, v := range u.victims {
			w.evictor.trial.Return(v)
			w.evictor.attempt.budget.Release(v.Job.Queue, negative(v.Task.Request))
		}
	}
	w.units = nil
}

// neverPreempts reports whether the pod asks that nobody be evicted for it.
func neverPreempts(pod *corev1.Pod) bool {
	return pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
}
