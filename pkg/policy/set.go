// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/arguments"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

type resourceName = corev1.ResourceName

// Set is the policies of a scheduler, compiled from its tiers, with the accounts that they look at. It is not safe for
// concurrent use.
type Set struct {
	// Enqueue: jobs are let into their queues by vote. Backfill: pods that ask for nothing are placed. Gangs: a job
	// starts whole or not at all. Quotas: the resource quotas of namespaces are looked at.
	Enqueue, Backfill, Gangs, Quotas bool

	book *account.Book
	// jobSharing: jobs are ordered by their share of the cluster.
	jobSharing bool
	deadlines  *sla

	jobOrder   []JobOrderer
	queueOrder []QueueOrderer
	taskOrder  []TaskOrderer
	overusers  []Overuser
	limiters   []Limiter
	admitters  [][]Admitter
	followers  []Follower
}

// Compile builds the policies of the tiers. The arguments must have passed validation; what is wrong with them all the
// same is returned.
func Compile(args *config.BatchQueueArgs) (*Set, error) {
	s := &Set{}
	for _, action := range args.Actions {
		switch action {
		case config.Enqueue:
			s.Enqueue = true
		case config.Backfill:
			s.Backfill = true
		}
	}
	var errs field.ErrorList
	mode := account.Undivided
	for i, tier := range args.Tiers {
		path := field.NewPath("tiers").Index(i).Child("plugins")
		s.admitters = append(s.admitters, nil)
		for k := range tier.Plugins {
			p := &tier.Plugins[k]
			policy, wants, err := build(p, path.Index(k))
			errs = append(errs, err...)
			if wants != account.Undivided {
				mode = wants
			}
			if policy != nil {
				s.register(p, policy)
			}
		}
	}
	s.book = account.NewBook(mode)
	return s, errs.ToAggregate()
}

// build makes the policy of one plugin, nil for plugins that have no say here, and tells which accounts it wants.
func build(p *config.TierPlugin, path *field.Path) (policy any, wants account.Mode, errs field.ErrorList) {
	switch p.Name {
	case config.PluginPriority:
		return priority{}, account.Undivided, nil
	case config.PluginGang:
		return gang{}, account.Undivided, nil
	case config.PluginDRF:
		if p.Enabled(config.EnableHierarchy) {
			return newHierarchical(), account.Undivided, nil
		}
		return drf{}, account.Undivided, nil
	case config.PluginProportion:
		return proportion{}, account.Proportion, nil
	case config.PluginCapacity:
		_, errs := arguments.DecodeCapacity(p, path)
		if p.Enabled(config.EnableHierarchy) {
			return capacity{tree: true}, account.Hierarchy, errs
		}
		return capacity{}, account.Capacity, errs
	case config.PluginOvercommit:
		decoded, errs := arguments.DecodeOvercommit(p, path)
		return overcommit{factor: decoded.Factor}, account.Undivided, errs
	case config.PluginSLA:
		decoded, errs := arguments.DecodeSLA(p, path)
		return &sla{limit: decoded.WaitingTime}, account.Undivided, errs
	case config.PluginResourceQuota:
		return newQuota(), account.Undivided, nil
	}
	return nil, account.Undivided, nil
}

// register enters a policy for the hooks that it has and that are not switched off.
func (s *Set) register(p *config.TierPlugin, policy any) {
	enter(&s.jobOrder, policy, p.Enabled(config.EnableJobOrder))
	enter(&s.queueOrder, policy, p.Enabled(config.EnableQueueOrder))
	enter(&s.taskOrder, policy, p.Enabled(config.EnableTaskOrder))
	enter(&s.overusers, policy, p.Enabled(config.EnableOverused))
	enter(&s.limiters, policy, p.Enabled(config.EnableAllocatable))
	enter(&s.admitters[len(s.admitters)-1], policy, p.Enabled(config.EnableJobEnqueued))
	enter(&s.followers, policy, true)
	switch h := policy.(type) {
	case drf, *hierarchical:
		s.jobSharing = p.Enabled(config.EnableJobOrder)
	case *sla:
		s.deadlines = h
	case *quota:
		s.Quotas = true
		h.freed = func() { s.book.Free() }
	case gang:
		s.Gangs = p.Enabled(config.EnableJobReady)
	}
}

// enter adds a policy to those that are asked a question, if it answers that and is to.
func enter[H any](asked *[]H, policy any, on bool) {
	if h, ok := policy.(H); ok && on {
		*asked = append(*asked, h)
	}
}

// Book returns the accounts of the queues.
func (s *Set) Book() *account.Book { return s.book }

// SetJob records what a job uses; nil when it is gone.
func (s *Set) SetJob(key model.JobKey, job *model.Job) {
	s.book.SetJob(key, job)
	for _, f := range s.followers {
		f.FollowJob(key, job)
	}
}

// SetQueue records a queue; nil when it is gone.
func (s *Set) SetQueue(name string, queue *model.Queue) { s.book.SetQueue(name, queue) }

// SetCluster records what all nodes have, and reports whether jobs have to be ranked again.
func (s *Set) SetCluster(total resource.Vector) bool {
	if !s.book.SetCluster(total) {
		return false
	}
	for _, f := range s.followers {
		f.FollowCluster(total)
	}
	return s.jobSharing
}

// Update brings the accounts up to date with what was recorded.
func (s *Set) Update() {
	if s.book.Update() {
		for _, f := range s.followers {
			f.FollowQueues(s.book.Queues())
		}
	}
}

// Rank returns a job with what its order depends on.
func (s *Set) Rank(job *model.Job) *Ranked {
	r := &Ranked{Job: job}
	if s.jobSharing {
		r.Share = job.Usage.Allocated.Dominant(s.book.ClusterPortion())
	}
	if s.deadlines != nil {
		r.Deadline = s.deadlines.deadline(job)
	}
	return r
}

// CompareJobs is the whole order of the jobs of a queue, negative when a goes first: the first policy with an opinion
// decides; then the older job, then the smaller UID.
func (s *Set) CompareJobs(a, b *Ranked) int {
	if c := firstNonZero(s.jobOrder, func(p JobOrderer) int { return p.CompareJobs(a, b) }); c != 0 {
		return c
	}
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

// CompareQueues is the whole order of queues, negative when a goes first: the first policy with an opinion decides;
// then the older queue, then the name.
func (s *Set) CompareQueues(a, b *account.Queue) int {
	if c := firstNonZero(s.queueOrder, func(p QueueOrderer) int { return p.CompareQueues(a, b) }); c != 0 {
		return c
	}
	return compareAge(a, b)
}

// CompareTasks is the order that policies give to the tasks of a job; zero without an opinion.
func (s *Set) CompareTasks(a, b *model.Task) int {
	return firstNonZero(s.taskOrder, func(p TaskOrderer) int { return p.CompareTasks(a, b) })
}

// Bars says why a queue gives a job no turns whatever it holds; the zero Reason when it does.
func (s *Set) Bars(job *model.Job) model.Reason {
	q := s.book.Queue(job.Queue)
	if q == nil {
		return model.QueueRefuses(nil, job)
	}
	if q.Fault != (model.Reason{}) {
		return q.Fault
	}
	if s.book.Mode() == account.Hierarchy && !q.Leaf() && q.Spec != nil {
		return model.Reason{Kind: model.QueueNotLeaf, Subject: q.Name, Message: fmt.Sprintf(
			"queue %q has queues below it, such as %q, and takes no jobs of its own: name one of those", q.Name, q.Children[0].Name)}
	}
	return model.QueueRefuses(q.Spec, job)
}

// Outgrows reports whether the job's minimum alone is more than its queue is due, so that it could never start within
// that.
func (s *Set) Outgrows(q *account.Queue, job *model.Job) bool {
	if s.book.Mode() != account.Proportion || !job.Requirement().Gang {
		return false
	}
	due := Bound{Queue: q, Limit: resource.Limit{Amounts: q.Deserved}, Held: job.Usage.Allocated}
	return due.refuses(job.Need()) != (model.Reason{})
}

// Overused says that the queue holds all it is due; the zero Reason when it does not.
func (s *Set) Overused(q *account.Queue) model.Reason {
	if slices.ContainsFunc(s.overusers, func(p Overuser) bool { return p.Overused(q) }) {
		return model.Reason{Kind: model.QueueFull, Subject: q.Name, Message: fmt.Sprintf("queue %q holds all it deserves", q.Name)}
	}
	return model.Reason{}
}

// Budget is what a queue may take, as of when it was made.
type Budget struct{ bounds []Bound }

// Budget returns what a queue may take on top of what it holds.
func (s *Set) Budget(q *account.Queue, borrowing bool) *Budget {
	b := &Budget{}
	for _, p := range s.limiters {
		p.Limits(q, borrowing, func(bound Bound) bool {
			bound.Held = bound.Held.Clone()
			b.bounds = append(b.bounds, bound)
			return true
		})
	}
	return b
}

// Clone returns a budget of its own with what was taken so far.
func (b *Budget) Clone() *Budget {
	c := &Budget{bounds: slices.Clone(b.bounds)}
	for i := range c.bounds {
		c.bounds[i].Held = c.bounds[i].Held.Clone()
	}
	return c
}

// Refuses says which limit keeps the queue from taking so much more; the zero Reason when none does.
func (b *Budget) Refuses(ask resource.Vector) model.Reason {
	for i := range b.bounds {
		if reason := b.bounds[i].refuses(ask); reason != (model.Reason{}) {
			return reason
		}
	}
	return model.Reason{}
}

// Take counts so much more as held.
func (b *Budget) Take(ask resource.Vector) {
	for i := range b.bounds {
		b.bounds[i].Held.Add(ask)
	}
}

// Refuses says which limit keeps a queue from taking so much more than it holds; the zero Reason when none does.
func (s *Set) Refuses(q *account.Queue, ask resource.Vector, borrowing bool) (why model.Reason) {
	for _, p := range s.limiters {
		p.Limits(q, borrowing, func(bound Bound) bool {
			why = bound.refuses(ask)
			return why == (model.Reason{})
		})
		if why != (model.Reason{}) {
			return why
		}
	}
	return model.Reason{}
}

func (b *Bound) refuses(ask resource.Vector) model.Reason {
	over := b.Limit.Refuses(ask, b.Held.Get)
	if len(over) == 0 {
		return model.Reason{}
	}
	details := make([]string, len(over))
	for i, name := range over {
		bound, _ := b.Limit.Of(name)
		details[i] = fmt.Sprintf("%s: %s held, %s asked for, limit %s", name,
			format(name, b.Held.Get(name)), format(name, ask.Get(name)), format(name, int64(bound)))
	}
	return model.Reason{
		Kind: model.QueueFull, Subject: b.Queue.Name,
		Message: fmt.Sprintf("queue %q has no room: %s", b.Queue.Name, strings.Join(details, "; ")),
	}
}

// Admit says why a job is not let into its queue; the zero Reason when it is.
func (s *Set) Admit(w World, j *Ranked) model.Reason {
	w.Queue, w.Cluster, w.Inqueue = s.book.Queue(j.Queue), s.book.Cluster(), s.book.Inqueue()
	if w.Queue == nil {
		return model.QueueRefuses(nil, j.Job)
	}
	_, why := tierVote(s.admitters, func(p Admitter) (Vote, model.Reason) { return p.Admit(w, j) })
	return why
}
