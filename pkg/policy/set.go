// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/queue/hdrf"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

type resourceName = corev1.ResourceName

// Set is the policies of a scheduler, compiled from its tiers, with the accounts that they look at. It is not safe for
// concurrent use.
type Set struct {
	// Enqueue: jobs are let into their queues by vote. Backfill: pods that ask for nothing are placed. Gangs: a job
	// starts whole or not at all. Quotas: the resource quotas of namespaces are looked at.
	Enqueue, Backfill, Gangs, Quotas bool

	orders
	evictions
	outsiders

	book *account.Book
	// usage is what jobs hold, by queue and priority; nil when no action evicts.
	usage *usageByPriority
	// byClaim: admission goes by queue and claim alone. ByAccounts: the order of queues goes by their accounts alone.
	byClaim, byAccounts bool
	// tree is that of hierarchical drf; nil without it.
	tree *hdrf.Tree

	overusers []Overuser
	limiters  []Limiter
	admitters [][]Admitter
	followers []Follower
	// whole: also what no job can use is divided among queues.
	whole bool
	// uncounted are devices that do not count whatever queues say.
	uncounted uncounted
	// reservation says for whom room is reserved; nil: for nobody.
	reservation *Reservation
}

// Compile builds the policies of the tiers. The arguments must have passed validation; what is wrong with them all the
// same is returned.
func Compile(args *config.BatchQueueArgs, outside ...Extension) (*Set, error) {
	s := &Set{}
	for _, action := range args.Actions {
		switch action {
		case config.Enqueue:
			s.Enqueue = true
		case config.Backfill:
			s.Backfill = true
		}
	}
	errs := s.evictions.configure(args)
	mode := account.Undivided
	var recency account.Recency
	var explicit *arguments.Reservation
	var pipelined pipelining
	for i, tier := range args.Tiers {
		path := field.NewPath("tiers").Index(i).Child("plugins")
		s.admitters = append(s.admitters, nil)
		s.evictions.open()
		for k := range tier.Plugins {
			p := &tier.Plugins[k]
			policy, wants, err := build(p, path.Index(k))
			errs = append(errs, err...)
			if by, ok := policy.(byRecency); ok {
				recency = by.recentUse()
			}
			if wants != account.Undivided {
				mode = wants
			}
			for _, o := range outside {
				if o.Plugin == p.Name {
					policy, s.any = o.Policy, true
				}
			}
			if decoded, ok := policy.(arguments.Reservation); ok {
				explicit = &decoded
			}
			pipelined.vote(p, i+1)
			if policy != nil {
				s.register(p, policy)
			}
		}
	}
	s.reservation = reserving(explicit, pipelined)
	s.book = account.NewBook(mode)
	s.book.Count(recency)
	if len(s.evictions.actions) > 0 {
		s.usage = newUsageByPriority()
	}
	s.byClaim, s.byAccounts = s.goesByClaim(), s.goesByAccounts()
	return s, errs.ToAggregate()
}

// plain are the policies that take no arguments, hold nothing, and want no accounts.
var plain = map[string]any{
	config.PluginPriority:     priority{},
	config.PluginGang:         gang{},
	config.PluginConformance:  conformance{},
	config.PluginPDB:          pdb{},
	config.PluginCDP:          cdp{},
	config.PluginTaskTopology: taskTopology{},
}

// build makes the policy of one plugin, nil for plugins that have no say here, and tells which accounts it wants.
func build(p *config.TierPlugin, path *field.Path) (policy any, wants account.Mode, errs field.ErrorList) {
	if policy, ok := plain[p.Name]; ok {
		return policy, account.Undivided, nil
	}
	switch p.Name {
	case config.PluginDRF:
		if p.Enabled(config.EnableHierarchy) {
			return newHierarchical(), account.Undivided, nil
		}
		return drf{}, account.Undivided, nil
	case config.PluginProportion:
		decoded, errs := arguments.DecodeProportion(p, path)
		return proportion{
			whole: decoded.Total == arguments.Allocatable, recency: account.Recency{HalfLife: decoded.UsageHalfLife, Pull: decoded.UsageWeight},
		}, account.Proportion, errs
	case config.PluginCapacity:
		decoded, errs := arguments.DecodeCapacity(p, path)
		policy := capacity{uncounted: uncountedBy(decoded), recency: account.Recency{HalfLife: decoded.UsageHalfLife}}
		if p.Enabled(config.EnableHierarchy) {
			policy.tree, policy.levels, policy.flow = true, ptr.Deref(decoded.AncestorReclaimLevel, 0), decoded.AncestorReclaimLevel == nil
			return policy, account.Hierarchy, errs
		}
		return policy, account.Capacity, errs
	case config.PluginOvercommit:
		decoded, errs := arguments.DecodeOvercommit(p, path)
		return &overcommit{factor: decoded.Factor, limit: resource.Limit{Unnamed: resource.OnlyDevices}}, account.Undivided, errs
	case config.PluginSLA:
		decoded, errs := arguments.DecodeSLA(p, path)
		return &sla{limit: decoded.WaitingTime}, account.Undivided, errs
	case config.PluginReservation:
		decoded, errs := arguments.DecodeReservation(p, path)
		return decoded, account.Undivided, errs
	case config.PluginResourceQuota:
		return newQuota(), account.Undivided, nil
	case config.PluginTDM:
		_, errs := arguments.DecodeTDM(p, path)
		return tdm{}, account.Undivided, errs
	}
	return nil, account.Undivided, nil
}

// register enters a policy for the hooks that it has and that are not switched off.
func (s *Set) register(p *config.TierPlugin, policy any) {
	enterOrdering(&s.orders.jobs, p, policy, config.EnableJobOrder)
	enterOrdering(&s.orders.queues, p, policy, config.EnableQueueOrder)
	s.orders.registerTasks(p, policy)
	s.evictions.register(p, policy)
	s.outsiders.register(p, policy)
	enter(&s.overusers, policy, p.Enabled(config.EnableOverused))
	enter(&s.limiters, policy, p.Enabled(config.EnableAllocatable))
	enter(&s.admitters[len(s.admitters)-1], policy, p.Enabled(config.EnableJobEnqueued))
	enter(&s.followers, policy, true)
	switch h := policy.(type) {
	case proportion:
		s.whole = h.whole
	case drf:
		s.jobSharing = p.Enabled(config.EnableJobOrder)
	case *hierarchical:
		s.jobSharing, s.tree = p.Enabled(config.EnableJobOrder), h.tree
	case capacity:
		s.uncounted = h.uncounted
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
	if s.usage != nil && s.usage.set(key, job) {
		// A job can be let in for what it could have evicted.
		s.book.Free()
	}
	for _, f := range s.followers {
		f.FollowJob(key, job)
	}
}

// SetQueue records a queue; nil when it is gone.
func (s *Set) SetQueue(name string, queue *model.Queue) {
	s.book.SetQueue(name, s.uncounted.without(queue))
}

// SetCluster records what all nodes have, and reports whether jobs have to be ranked again.
func (s *Set) SetCluster(total resource.Vector) bool {
	if !s.book.SetCluster(total) {
		return false
	}
	s.portion = s.book.ClusterPortion()
	for _, f := range s.followers {
		f.FollowCluster(total)
	}
	return s.jobSharing
}

// SetUsable records what of the cluster jobs can use.
func (s *Set) SetUsable(usable resource.Vector) {
	if !s.whole {
		s.book.SetUsable(usable)
	}
}

// Cooldown is how long a queue may take nothing back, at least. Where what queues have held counts, dues move all the time: as soon as one has held a
// little less than another, it could take from that one, and the other way round.
func (s *Set) Cooldown() time.Duration { return min(s.book.Recency().HalfLife/10, time.Hour) }

// Succeed has what queues have held by other policies count by these.
func (s *Set) Succeed(before *Set) { s.book.Inherit(before.book) }

// Pass tells the time: what is recorded from now on happens then.
func (s *Set) Pass(now time.Time) { s.book.Pass(now) }

// Again is when the policies are to be looked at again though nothing happens; zero: never.
func (s *Set) Again() time.Time {
	first := s.outsiders.Again()
	if at := s.book.Moves(); first.IsZero() || !at.IsZero() && at.Before(first) {
		first = at
	}
	return first
}

// Update brings the accounts up to date with what was recorded.
func (s *Set) Update() {
	if s.book.Update() {
		for _, f := range s.followers {
			f.FollowQueues(s.book.Queues())
		}
	}
}

// QueueBlocked says why a queue gives a job no turns whatever it holds; the zero Reason when it does.
func (s *Set) QueueBlocked(job *model.Job) model.Reason {
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
	due := Bound{Queue: q, Limit: resource.Limit{Amounts: q.Deserved, Unnamed: resource.OnlyDevices}, Held: without(job.Usage.Allocated, job.OwnHalf())}
	return due.refuses(job.Need()) != (model.Reason{})
}

// Overused says that the queue holds all it is due, besides what does not count of a job's own; the zero Reason when it does not.
func (s *Set) Overused(q *account.Queue, own resource.Vector) model.Reason {
	q = besides(q, own)
	if slices.ContainsFunc(s.overusers, func(p Overuser) bool { return p.Overused(q) }) {
		return model.Reason{Kind: model.QueueFull, Subject: q.Name, Message: fmt.Sprintf("queue %q holds all it deserves", q.Name)}
	}
	return model.Reason{}
}

// Refuses says which limit keeps a queue from taking so much more than it holds, besides what does not count of a job's own; the zero Reason
// when none does.
func (s *Set) Refuses(q *account.Queue, own, ask resource.Vector, borrowing bool) (why model.Reason) {
	for _, p := range s.limiters {
		limits(p, q, own, borrowing, func(bound Bound) bool {
			why = bound.refuses(ask)
			return why == (model.Reason{})
		})
		if why != (model.Reason{}) {
			return why
		}
	}
	return model.Reason{}
}

// Allows reports whether Refuses would give no reason, for less.
func (s *Set) Allows(q *account.Queue, own, ask resource.Vector, borrowing bool) bool {
	allowed := true
	for _, p := range s.limiters {
		limits(p, q, own, borrowing, func(bound Bound) bool {
			allowed = len(bound.Limit.Refuses(ask, bound.Held)) == 0
			return allowed
		})
		if !allowed {
			break
		}
	}
	return allowed
}

// Admit says why a job is not let into its queue; the zero Reason when it is.
func (s *Set) Admit(w World, j *Ranked) model.Reason {
	w.Inqueue = s.book.Inqueue()
	return s.admit(w, j)
}

// AdmitsByClaim reports whether admission goes by the queue and the claim of a job alone. If so, who claims no less than a job of the
// queue that was rejected is rejected, too.
func (s *Set) AdmitsByClaim() bool { return s.byClaim }

// goesByClaim reports whether all policies with a vote on admission go by the queue and the claim of a job alone.
func (s *Set) goesByClaim() bool {
	for _, tier := range s.admitters {
		for _, p := range tier {
			switch p.(type) {
			case *overcommit, proportion, capacity:
			default:
				return false
			}
		}
	}
	return s.usage == nil
}

// AdmitGuest is Admit as if nothing were promised to jobs that are stalled.
func (s *Set) AdmitGuest(w World, j *Ranked) model.Reason {
	w.guest, w.Inqueue = true, s.book.Inqueue().Clone()
	w.Inqueue.Sub(s.book.Stalled())
	return s.admit(w, j)
}

// RoomBeside reports whether what is idle, all nodes together, covers a job's claim besides what was promised to jobs that are not
// stalled, and what is kept of it for others.
func (s *Set) RoomBeside(w World, j *Ranked, kept resource.Vector) bool {
	all := resource.Limit{Amounts: s.book.Cluster().Portion(), Unnamed: resource.OnlyDevices}
	taken := w.Used.Clone()
	taken.Add(s.book.Inqueue())
	taken.Sub(s.book.Stalled())
	taken.Add(kept)
	return len(all.Refuses(j.Claim(), taken)) == 0
}

func (s *Set) admit(w World, j *Ranked) model.Reason {
	w.Queue, w.Cluster = s.book.Queue(j.Queue), s.book.Cluster()
	if w.Queue == nil {
		return model.QueueRefuses(nil, j.Job)
	}
	w.set, w.job = s, j.Job
	_, why := tierVote(s.admitters, func(p Admitter) (Vote, model.Reason) { return p.Admit(w, j) })
	return why
}
