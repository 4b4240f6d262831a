// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// usageByPriority is what jobs have on nodes, by queue and priority: what a first look at whom to evict needs.
type usageByPriority struct {
	jobs map[model.JobKey]holding
	// queues are the levels of each queue, the lowest priority first.
	queues map[string][]level
}

// holding is a job that has something on nodes.
type holding struct {
	queue         string
	priority      int32
	held, minimum resource.Vector
}

// level is the jobs of one priority in a queue.
type level struct {
	priority int32
	jobs     int
	// held is what they hold, minimum that without what is placed beyond their minimums.
	held, minimum resource.Vector
}

func newUsageByPriority() *usageByPriority {
	return &usageByPriority{jobs: map[model.JobKey]holding{}, queues: map[string][]level{}}
}

// set records what a job holds; nil when it is gone. It reports whether there is more to be evicted since, for somebody.
func (h *usageByPriority) set(key model.JobKey, job *model.Job) (more bool) {
	before, held := h.jobs[key]
	if job == nil || !onNodes(job) {
		if held {
			h.count(before, -1)
			delete(h.jobs, key)
		}
		return false
	}
	after := holding{queue: job.Queue, priority: job.Priority, held: job.Usage.Allocated, minimum: job.Usage.Allocated.Clone()}
	after.minimum.Sub(job.Elastic())
	h.count(after, 1)
	if held {
		h.count(before, -1)
	}
	h.jobs[key] = after
	return before.queue != after.queue || before.priority != after.priority || after.held.Exceeding(before.held) != nil
}

// onNodes reports whether the job has tasks that could be evicted.
func onNodes(job *model.Job) bool {
	return job.Counts.ByStatus[model.Bound]+job.Counts.ByStatus[model.Running] > 0
}

func (h *usageByPriority) count(of holding, n int) {
	levels := h.queues[of.queue]
	i, ok := slices.BinarySearchFunc(levels, of.priority, func(l level, priority int32) int { return cmp.Compare(l.priority, priority) })
	if !ok {
		levels = slices.Insert(levels, i, level{priority: of.priority})
	}
	l := &levels[i]
	l.jobs += n
	l.held.AddTimes(of.held, int64(n))
	l.minimum.AddTimes(of.minimum, int64(n))
	if l.jobs == 0 {
		levels = slices.Delete(levels, i, i+1)
	}
	if len(levels) == 0 {
		delete(h.queues, of.queue)
	} else {
		h.queues[of.queue] = levels
	}
}

// others counts the jobs of a queue besides one that hold something: those below a priority, or all.
func (h *usageByPriority) others(job *model.Job, lower bool) int {
	jobs := 0
	for _, l := range h.queues[job.Queue] {
		if !lower || l.priority < job.Priority {
			jobs += l.jobs
		}
	}
	if own, held := h.jobs[job.Key]; held && own.queue == job.Queue && (!lower || own.priority < job.Priority) {
		jobs--
	}
	return jobs
}

// MayEvict returns the configured actions, in order, by which the job might find a victim as far as a look at the queues
// tells. It does not tell whether the job starves.
func (s *Set) MayEvict(job *model.Job) []config.Action {
	var may []config.Action
	for _, action := range s.actions {
		c := s.ruleSet(action)
		if c.offers() && s.finds(c, job) {
			may = append(may, action)
		}
	}
	return may
}

// finds reports whether the job might find a victim by the rules of an action.
func (s *Set) finds(c *ruleSet, job *model.Job) bool {
	switch {
	case c.moves != nil:
		return s.findsMoves(job)
	case c.inside():
		return s.findsInside(c, job)
	}
	return s.findsAcross(c, job)
}

// findsInside reports whether jobs of the queue have something on nodes that the job could take: where priorities decide,
// jobs of a lower one. Tasks of the job itself may make room for others of it.
func (s *Set) findsInside(c *ruleSet, job *model.Job) bool {
	return s.usage.others(job, c.byPriority) > 0 || !c.ofGangs() && onNodes(job)
}

// findsAcross reports whether the job's queue may take what the job needs next, and some other holds more than its due; or anything, where
// dues may not matter.
func (s *Set) findsAcross(c *ruleSet, job *model.Job) bool {
	q := s.book.Queue(job.Queue)
	if !s.entitledToNext(q, job) {
		return false
	}
	return slices.ContainsFunc(s.book.Queues(), func(other *account.Queue) bool {
		return other != q && mayLose(other) && (s.ahead(other) || c.freely && !other.Own.Allocated.BestEffort())
	})
}

// entitledToNext reports whether the job's queue may take what the job needs next or, if its tasks have no resource in
// common, what one of them asks for.
func (s *Set) entitledToNext(q *account.Queue, job *model.Job) bool {
	need := job.Need()
	if !need.BestEffort() {
		return s.mayTake(q, job, need) == (model.Reason{})
	}
	return slices.ContainsFunc(job.Pending, func(d model.Demand) bool { return s.mayTake(q, job, d.Charge) == (model.Reason{}) })
}

// mayLose reports whether anything may be reclaimed from a queue.
func mayLose(q *account.Queue) bool {
	return q.Spec != nil && q.Spec.Reclaimable && q.Fault == (model.Reason{})
}

// ahead reports whether jobs of a queue hold more than it is due of something; where queues are due nothing, whether they
// hold anything.
func (s *Set) ahead(q *account.Queue) bool {
	for _, a := range q.Own.Allocated.Counted() {
		if a.Name != corev1.ResourcePods && a.Value > 0 && float64(a.Value) > q.Deserved.Get(a.Name) && !s.undivided(a.Name) {
			return true
		}
	}
	return false
}

// undivided reports whether a resource is not divided by weight, as others are: devices, which nodes do not count.
func (s *Set) undivided(name corev1.ResourceName) bool {
	return s.book.Mode() == account.Proportion && resource.IsDevices(name)
}

// lower is what jobs of the queue hold that have a lower priority than a job; if asked, without what is placed beyond
// their minimums.
func (h *usageByPriority) lower(job *model.Job, minimum bool) (sum resource.Vector) {
	for i := range h.queues[job.Queue] {
		switch l := &h.queues[job.Queue][i]; {
		case l.priority >= job.Priority:
			return sum
		case minimum:
			sum.Add(l.minimum)
		default:
			sum.Add(l.held)
		}
	}
	return sum
}
