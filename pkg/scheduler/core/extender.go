// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender/protocol"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender/votes"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// PolicyFactory makes a policy of an entry in the tiers: something that has hooks of package policy. It reads the entry's
// arguments itself.
type PolicyFactory func(entry *config.TierPlugin) (any, error)

// PolicyNames are the names that tiers may have besides the built-in ones.
func (e *Engine) PolicyNames() []string { return slices.Sorted(maps.Keys(e.options.Policies)) }

// outside builds the policies from outside of package policy: that of an extender, if the tiers have one that is asked about
// queues and jobs, and those that the options tell how to make.
func (e *Engine) outside(ctx context.Context, handle fwk.Handle, args *config.BatchQueueArgs, r *Rules) ([]policy.Outside, error) {
	var all []policy.Outside
	for i := range args.Tiers {
		for k := range args.Tiers[i].Plugins {
			entry := &args.Tiers[i].Plugins[k]
			path := field.NewPath("tiers").Index(i).Child("plugins").Index(k)
			if factory := e.options.Policies[entry.Name]; factory != nil {
				p, err := factory(entry)
				if err != nil {
					return nil, fmt.Errorf("building the policy %s at %s: %w", entry.Name, path, err)
				}
				all = append(all, policy.Outside{Plugin: entry.Name, Policy: p})
			}
			if entry.Name != config.PluginExtender {
				continue
			}
			decoded, errs := arguments.DecodeExtender(entry, path)
			r.placesOutside = decoded.Places()
			if err := errs.ToAggregate(); err != nil {
				return nil, err
			}
			if decoded.Votes() {
				r.votes = e.voter(ctx, handle, decoded)
				all = append(all, policy.Outside{Plugin: entry.Name, Policy: r.votes})
			}
		}
	}
	return all, nil
}

// voter asks an extender about queues and jobs.
func (e *Engine) voter(ctx context.Context, handle fwk.Handle, args arguments.Extender) *votes.Voter {
	return votes.New(klog.NewContext(ctx, klog.FromContext(ctx).WithName("extender")), votes.Config{
		Args:    args,
		Job:     e.State.Job,
		Session: func() (protocol.Session, error) { return e.session(handle) },
		Changed: func() { e.State.Raise(model.OutsideAnswered) },
		Clock:   e.options.Clock,
	})
}

// session is all there is, for an extender that is told of it.
func (e *Engine) session(handle fwk.Handle) (protocol.Session, error) {
	s := protocol.Session{Jobs: map[string]*protocol.Job{}, Nodes: map[string]*protocol.Node{}, Queues: map[string]*protocol.Queue{}}
	core := handle.SharedInformerFactory().Core().V1()
	nodes, err := core.Nodes().Lister().List(labels.Everything())
	if err != nil {
		return s, err
	}
	pods, err := core.Pods().Lister().List(labels.Everything())
	if err != nil {
		return s, err
	}
	on := map[string][]*model.Task{}
	for _, pod := range pods {
		task := e.State.Task(pod.UID)
		if task == nil {
			task = model.NewTask(pod)
		}
		if task.Status.HoldsNode() {
			on[task.Node] = append(on[task.Node], task)
		}
	}
	for _, n := range nodes {
		s.Nodes[n.Name] = protocol.NodeOf(n, on[n.Name])
	}
	snapshot := e.State.Snapshot()
	for job := range snapshot.Jobs {
		s.Jobs[job.Key.String()] = protocol.JobOf(job)
	}
	for q := range snapshot.Queues {
		s.Queues[q.Name] = protocol.QueueOf(q)
	}
	return s, nil
}

// PlacesOutside reports whether the extender of the tiers is asked about nodes, which is the plugin Extender's to do.
func (e *Engine) PlacesOutside() bool {
	return e.rules.Load().placesOutside
}

// Asking reports whether an extender is being asked for its vote.
func (e *Engine) Asking() bool {
	v := e.voting()
	return v != nil && v.Asking()
}

// voting is who asks an extender about queues and jobs; nil when nobody does.
func (e *Engine) voting() *votes.Voter { return e.rules.Load().votes }

// Shut says why nothing may start, and when to try again; the zero Reason when something may.
func (e *Engine) Shut() (reason model.Reason, again time.Time) {
	v := e.voting()
	if v == nil {
		return reason, again
	}
	return v.Shut()
}

// Ready says why a job is not ready with these placements, and when to try again; the zero Reason when it is.
func (e *Engine) Ready(ctx context.Context, job *model.Job, placements []gang.Placement) (reason model.Reason, again time.Time) {
	v := e.voting()
	if v == nil || !v.AloneInTurns() {
		return reason, again
	}
	tasks, nodes := make([]*model.Task, len(placements)), map[types.UID]string{}
	for i, p := range placements {
		tasks[i], nodes[p.Task.UID] = p.Task, p.Node
	}
	then := job.Supposing(model.Allocated, tasks...)
	for i, t := range then.Tasks {
		if node, ok := nodes[t.UID]; ok {
			placed := *t
			placed.Node = node
			then.Tasks[i] = &placed
		}
	}
	return v.Ready(ctx, then)
}

// Choose has an extender choose among the candidates of a trial for the job whose turn the pod leads, if the tiers say so.
func (e *Engine) Choose(ctx context.Context, action config.Action, lead *corev1.Pod, trial *policy.Trial) {
	evictor := e.State.Task(lead.UID)
	v := e.voting()
	if v == nil || evictor == nil || !trial.AsksOutside() {
		return
	}
	var candidates []*model.Task
	for job := range e.State.Snapshot().Jobs {
		for _, t := range job.Tasks {
			if t.Status.HoldsNode() && trial.Candidate(model.Victim{Task: t, Job: job}) == "" {
				candidates = append(candidates, t)
			}
		}
	}
	slices.SortFunc(candidates, func(a, b *model.Task) int { return cmp.Compare(a.UID, b.UID) })
	inside := action == config.Preempt || action == config.GangPreempt
	trial.Answer(v.Choose(ctx, inside, evictor, candidates))
}
