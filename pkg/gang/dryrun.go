// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"iter"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// dryRun is a node with units taken off it, and what the queues would hold then.
type dryRun struct {
	evictor *evictor
	class   *class
	task    *model.Task
	node    int
	info    fwk.NodeInfo
	state   fwk.CycleState
	units   []unit
	failed  error
}

func (e *evictor) what(c *class, t *model.Task, node int) *dryRun {
	w := &dryRun{evictor: e, class: c, task: t, node: node, info: e.attempt.overlay.at(node).Snapshot(), state: c.state}
	if c.looksAround {
		w.state = c.state.Clone()
	}
	return w
}

// take takes a unit off.
func (w *dryRun) take(u unit) {
	e := w.evictor
	for _, v := range u.victims {
		e.trial.Take(v)
		e.release(v)
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
func (w *dryRun) giveBack(u unit) {
	e := w.evictor
	for _, v := range u.victims {
		e.trial.Return(v)
		e.retain(v)
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

func (w *dryRun) nodeOf(r removed) fwk.NodeInfo {
	if r.node == w.node {
		return w.info
	}
	return w.evictor.attempt.overlay.at(r.node)
}

func (w *dryRun) note(err error) {
	if w.failed == nil {
		w.failed = err
	}
}

// enough reports whether the idle resources of the node, and what the queue may hold, allow the task.
func (w *dryRun) enough() bool {
	return room(w.info, w.task.Request) > 0 && w.evictor.withinBudget(w.task)
}

// fits reports whether the filters allow the task.
func (w *dryRun) fits(ctx context.Context) bool {
	return w.failed == nil && w.class.filterIn(ctx, w.state, w.info).IsSuccess()
}

// more takes the remaining units one by one until the filters allow the task.
func (w *dryRun) more(ctx context.Context, units iter.Seq[unit]) bool {
	for u := range units {
		if w.has(u.victims[0]) || w.evictor.trial.Evaluate(u.victims...) != "" {
			continue
		}
		if w.take(u); w.fits(ctx) {
			return true
		}
	}
	return false
}

// empties reports whether a job that starts whole or not at all has nothing left on nodes once the unit is gone, too.
func (w *dryRun) empties(u unit) bool {
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
func (w *dryRun) done() {
	for _, u := range w.units {
		for _, v := range u.victims {
			w.evictor.trial.Return(v)
			w.evictor.retain(v)
		}
	}
	w.units = nil
}

// unitsOf makes a unit of all that a job has left for each that has lapsed, then one of each candidate that may go by itself, then one of
// all that is left of a subgroup for each that goes as a whole only and, with wholes, after these one of all that a job has left for each of
// the others, in their order.
func (w *dryRun) unitsOf(candidates []model.Victim, wholes bool) iter.Seq[unit] {
	e := w.evictor
	lapsed, others := e.divide(candidates)
	return func(yield func(unit) bool) {
		if !w.wholesOf(lapsed, yield) {
			return
		}
		var parts, rest []model.Victim
		for _, v := range others {
			u := unit{victims: []model.Victim{v}, pods: e.podsOf(w.node, v)}
			_, inPart := v.Job.SubGroupOf(v.Task)
			stays := (inPart || wholes) && e.trial.Evaluate(v) != ""
			if e.trial.WholeJobs() && (w.empties(u) || wholes && stays) {
				rest = append(rest, v)
			} else if !stays && !yield(u) {
				return
			}
			if inPart && stays {
				parts = append(parts, v)
			}
		}
		if !w.partsOf(parts, yield) {
			return
		}
		if wholes {
			w.wholesOf(rest, yield)
		}
	}
}

// partsOf yields a unit of all that is left of each of the subgroups of victims, and reports whether more are wanted.
func (w *dryRun) partsOf(victims []model.Victim, yield func(unit) bool) bool {
	for i, v := range victims {
		known := slices.ContainsFunc(victims[:i], func(o model.Victim) bool { return o.Job.Key == v.Job.Key && sameSubGroup(o, v) })
		if known || w.has(v) {
			continue
		}
		u, ok := w.allOf(v, "subgroup", w.evictor.partOf(v))
		if u.part = true; ok && !yield(u) {
			return false
		}
	}
	return true
}

// divide keeps those of jobs that have lapsed apart from the others, both in their order.
func (e *evictor) divide(candidates []model.Victim) (lapsed, others []model.Victim) {
	if !slices.ContainsFunc(candidates, func(v model.Victim) bool { return e.trial.Lapsed(v.Job) }) {
		return nil, candidates
	}
	for _, v := range candidates {
		if e.trial.Lapsed(v.Job) {
			lapsed = append(lapsed, v)
		} else {
			others = append(others, v)
		}
	}
	return lapsed, others
}

// wholesOf yields a unit of all that a job has left for each of the jobs of victims, and reports whether more are wanted.
func (w *dryRun) wholesOf(victims []model.Victim, yield func(unit) bool) bool {
	done := map[model.JobKey]bool{}
	for _, v := range victims {
		if done[v.Job.Key] || w.has(v) {
			continue
		}
		done[v.Job.Key] = true
		if u, ok := w.wholeOf(v); ok && !yield(u) {
			return false
		}
	}
	return true
}

// has reports whether a victim is among those taken off.
func (w *dryRun) has(v model.Victim) bool {
	return slices.ContainsFunc(w.units, func(u unit) bool {
		return slices.ContainsFunc(u.victims, func(o model.Victim) bool { return o.Task == v.Task })
	})
}

// wholeOf is a unit of all tasks that a job has on nodes, if each of them could be a victim.
func (w *dryRun) wholeOf(v model.Victim) (unit, bool) {
	u, ok := w.allOf(v, "job", v.Job.Tasks)
	u.whole = true
	return u, ok
}

// allOf is a unit of those tasks of a victim's job that are on nodes and go with it, if each of them could be a victim.
func (w *dryRun) allOf(v model.Victim, what string, tasks []*model.Task) (u unit, ok bool) {
	e := w.evictor
	o := e.attempt.overlay
	for _, t := range tasks {
		one := model.Victim{Task: t, Job: v.Job}
		if e.gone[t.UID] || t.Status == model.Releasing || !t.Status.HoldsNode() || w.has(one) {
			continue
		}
		node := o.index(t.Node)
		if node >= 0 {
			one.Node = o.at(node).Node()
		}
		if why := e.trial.Candidate(one); why != "" {
			e.keep(v.Task.UID, "of its "+what+", which would go as a whole, another pod stays: "+why)
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
