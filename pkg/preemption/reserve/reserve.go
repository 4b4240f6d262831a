// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reserve keeps the room that evictions make: from the decision to evict until the job it is for has the room, or it is clear
// that it never will. The packages eviction and model carry the decision out and count the room.
package reserve

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// Profile is what a Keeper needs of a profile of the scheduler: nominations, which keep ordinary pods off the room, and the nodes as
// the scheduler's cache has them, and claims of devices.
type Profile interface {
	ClientSet() kubernetes.Interface
	SnapshotSharedLister() fwk.SharedLister
	SharedDRAManager() fwk.SharedDRAManager
	AddNominatedPod(logger klog.Logger, pod fwk.PodInfo, nominating *fwk.NominatingInfo)
	DeleteNominatedPodIfExists(pod *corev1.Pod)
}

// Config is what a Keeper is made of. All fields are required.
type Config struct {
	State   *model.State
	Writer  *status.Writer
	Profile Profile
	// Queue has the scheduling queue know pods, which tells filters of the nominations of those only. It is called in scheduling cycles.
	Queue func([]*corev1.Pod)
	Clock clock.WithTickerAndDelayedExecution
	// Args say how evictions are carried out.
	Args *config.ReclaimArgs
	// Leads is the Executor's.
	Leads func() bool
}

// Keeper has decisions to evict carried out and keeps the victims' room for the job that they are evicted for.
type Keeper struct {
	Ledger   *eviction.Ledger
	Executor *eviction.Executor
	Holds    Holds

	state   *model.State
	profile Profile
	queue   func([]*corev1.Pod)
	clock   clock.WithTicker
	timeout time.Duration
	waits   waits

	expectations expectations
}

// New returns a Keeper, which observes the model from now on and acts once it runs.
func New(c Config) *Keeper {
	k := &Keeper{
		Ledger: eviction.NewLedger(int(c.Args.LedgerSize), c.Args.QueueCooldown.Duration),
		state:  c.State, profile: c.Profile, queue: c.Queue, clock: c.Clock, timeout: c.Args.VictimTimeout.Duration,
		waits: waits{of: map[model.JobKey]wait{}},
	}
	k.Executor = eviction.NewExecutor(eviction.Config{
		Ledger: k.Ledger, Client: c.Profile.ClientSet(), Writer: c.Writer, Clock: c.Clock,
		Concurrency: int(c.Args.EvictionConcurrency), VictimTimeout: k.timeout,
		Leads: c.Leads, Stays: k.spare,
		Refused: func(d *eviction.Decision, _ *eviction.Victim, _ error) { k.Abandon(d.Beneficiary) },
	})
	k.Holds.k = k
	k.state.Observe(k.follow)
	return k
}

// Run carries decisions out and gives up room that nobody else gives up, until the context ends.
func (k *Keeper) Run(ctx context.Context) {
	go k.expire(ctx)
	k.Executor.Run(ctx)
}

// World is what the search for victims for a job of a queue looks at besides queues and jobs.
func (k *Keeper) World(queue string) policy.EvictionWorld {
	now := k.clock.Now()
	return policy.EvictionWorld{
		Now: now, Budgets: k.state.Budgets, Refused: k.Ledger.Refusal, Moves: &k.Ledger.Moves,
		BarredQueues: func(victims string) time.Time { return k.Ledger.Cooldown(victims, queue, now) },
	}
}

// Search is the search for victims for a refused turn.
func (k *Keeper) Search(r gang.Request, trial gang.Trial) gang.Search {
	return gang.Search{
		Request: r, Trial: trial, Victim: k.victims(), Leaving: k.state.Leaving(), Now: k.clock.Now(), Patience: k.timeout,
	}
}

// victims tells what is known of the pods on nodes, as of now.
func (k *Keeper) victims() func(types.UID) model.Victim {
	snapshot := k.state.Snapshot()
	return func(uid types.UID) model.Victim {
		task := k.state.Task(uid)
		if task == nil {
			return model.Victim{}
		}
		return model.Victim{Task: task, Job: snapshot.Job(task.Job)}
	}
}

// Abandon gives up the room that is kept for a job. Victims that nobody has been asked to evict stay.
func (k *Keeper) Abandon(key model.JobKey) {
	k.waits.lapse(key)
	k.spare(k.Ledger.Close(key, k.clock.Now()))
	job := k.state.Job(key)
	if job == nil {
		return
	}
	var uids []types.UID
	for _, t := range job.Tasks {
		if t.Nominated != "" {
			uids = append(uids, t.UID)
			k.profile.DeleteNominatedPodIfExists(t.Pod)
		}
	}
	if len(uids) > 0 {
		k.state.ClearNominations(uids...)
	}
}

func (k *Keeper) spare(victims []*eviction.Victim) {
	for _, v := range victims {
		k.unexpect(v.UID)
		k.state.Spare(v.UID)
	}
}

// follow observes the model: victims that are gone, jobs that have started or do not wait any more.
func (k *Keeper) follow(c model.Change) {
	k.welcome(c.Tasks)
	for _, uid := range c.Tasks {
		t := k.state.Task(uid)
		if t == nil || t.Completed() {
			k.Ledger.Gone(uid)
		}
		if t != nil && t.Status == model.Succeeded {
			k.unexpect(uid)
		}
	}
	for _, key := range c.Jobs {
		if w, ok := k.waits.get(key); ok {
			k.conclude(key, w)
		}
	}
}

// conclude ends the wait of a job that has what it waited for, or waits for nothing any more.
func (k *Keeper) conclude(key model.JobKey, w wait) {
	job := k.state.Summary(key)
	started := false
	switch {
	case job == nil:
	case job.Counts.Nominated > 0, w.lapsed && !job.Started() && job.Counts.Placeable() > 0:
		return
	case w.lapsed:
		started = job.Started()
	default:
		started = slices.ContainsFunc(w.members, k.placed)
	}
	k.waits.end(key)
	if now := k.clock.Now(); started {
		k.spare(k.Ledger.Started(key, now))
	} else {
		k.spare(k.Ledger.Cancel(key, now))
	}
}

// placed reports whether a task holds a node, or did. One that is deleted while it waits holds none, though it terminates.
func (k *Keeper) placed(uid types.UID) bool {
	t := k.state.Task(uid)
	return t != nil && t.Node != "" && (t.Status.HoldsNode() || t.Completed())
}

// expire gives up room that no turn gives up. Some time after the start that is what was kept for tasks when the scheduler came up, since
// the process that decided it is gone. Later it is what is kept for jobs that get no turns any more, because they lost a member for instance.
func (k *Keeper) expire(ctx context.Context) {
	for adopted := true; ; adopted = false {
		select {
		case <-ctx.Done():
			return
		case <-k.clock.After(k.timeout):
		}
		if adopted {
			k.expireAdopted()
		}
		k.expireExpected()
		for _, key := range k.waits.overdue(k.clock.Now().Add(-k.timeout)) {
			k.Abandon(key)
		}
	}
}

// expireAdopted gives up the room that is kept for tasks and not by any decision.
func (k *Keeper) expireAdopted() {
	for _, t := range k.state.Nominated() {
		if _, known := k.waits.get(t.Job); !known {
			k.profile.DeleteNominatedPodIfExists(t.Pod)
			k.state.ClearNominations(t.UID)
		}
	}
}
