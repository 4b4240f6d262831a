// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	configv1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// Evictions carries decisions to evict out and follows what becomes of them: it keeps the victims' room for the
// beneficiary until that has it, or until it is clear that it never will.
type Evictions struct {
	Ledger   *eviction.Ledger
	Executor *eviction.Executor

	state   *model.State
	writer  *status.Writer
	handle  framework.Framework
	clock   clock.WithTicker
	timeout time.Duration
	// mu guards awaits; it is never held while calling out.
	mu     sync.Mutex
	awaits map[model.JobKey]await
}

// await is what a job for which room is kept waits for.
type await struct {
	members []types.UID
	// pods are those that have to leave, by UID, with the nodes they are on.
	pods map[types.UID]string
	// until is when they should all be gone.
	until time.Time
	// lapsed: the room is not kept any more; whether it was in vain shows when the job starts, or does not wait any more.
	lapsed bool
}

// ConfigureEvictions gives the engine what evictions are carried out by; the first call decides.
func (e *Engine) ConfigureEvictions(args *config.ReclaimArgs) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.evictionArgs == nil {
		e.evictionArgs = args
	}
}

// newEvictions builds what carries out evictions.
func (e *Engine) newEvictions(handle framework.Framework, writer *status.Writer) *Evictions {
	args := e.evictionArgs
	if args == nil {
		args = defaultEvictionArgs()
	}
	ev := &Evictions{
		Ledger: eviction.NewLedger(int(args.LedgerSize), args.QueueCooldown.Duration),
		state:  e.State, writer: writer, handle: handle, clock: e.options.Clock, timeout: args.VictimTimeout.Duration,
		awaits: map[model.JobKey]await{},
	}
	ev.Executor = eviction.NewExecutor(eviction.Config{
		Ledger: ev.Ledger, Client: handle.ClientSet(), Writer: writer, Clock: e.options.Clock,
		Concurrency: int(args.EvictionConcurrency), VictimTimeout: args.VictimTimeout.Duration,
		Stays:   ev.spare,
		Refused: func(d *eviction.Decision, _ *eviction.Victim, _ error) { ev.Abandon(d.Beneficiary) },
	})
	e.State.Observe(ev.follow)
	return ev
}

// defaultEvictionArgs are those of a profile that does not say how to evict.
func defaultEvictionArgs() *config.ReclaimArgs {
	args := &configv1.ReclaimArgs{}
	configv1.SetDefaults_ReclaimArgs(args)
	return &config.ReclaimArgs{
		LedgerSize: *args.LedgerSize, EvictionConcurrency: *args.EvictionConcurrency, VictimTimeout: *args.VictimTimeout,
		QueueCooldown: *args.QueueCooldown,
	}
}

// World is what the search for victims for a job of a queue looks at besides queues and jobs.
func (ev *Evictions) World(queue string) policy.EvictionWorld {
	now := ev.clock.Now()
	return policy.EvictionWorld{
		Now: now, Budgets: ev.state.Budgets, Refused: ev.Ledger.Refusal,
		BarredQueues: func(victims string) time.Time { return ev.Ledger.Cooldown(victims, queue, now) },
	}
}

// Victims returns what is known of the pods on nodes, as of now.
func (ev *Evictions) Victims() func(types.UID) model.Victim {
	snapshot := ev.state.Snapshot()
	return func(uid types.UID) model.Victim {
		task := ev.state.Task(uid)
		if task == nil {
			return model.Victim{}
		}
		return model.Victim{Task: task, Job: snapshot.Job(task.Job)}
	}
}

// Search is the search for victims for a refused turn.
func (ev *Evictions) Search(r gang.Request, trial gang.Trial) gang.Search {
	return gang.Search{
		Request: r, Trial: trial, Victim: ev.Victims(), Leaving: ev.state.Leaving(), Now: ev.clock.Now(), Patience: ev.timeout,
	}
}

// Commit carries a statement out: from now on its victims, chosen by a rule, are leaving and their room is the job's.
func (ev *Evictions) Commit(ctx context.Context, action config.Action, rule string, job *model.Job, st gang.Statement) error {
	now := ev.clock.Now()
	nominations := make([]model.Nomination, len(st.Placements))
	d := eviction.Decision{Action: string(action), Beneficiary: job.Key, Queue: job.Queue}
	for i, p := range st.Placements {
		nominations[i] = model.Nomination{UID: p.Task.UID, Node: p.Node}
		d.Members = append(d.Members, eviction.Member{
			UID: p.Task.UID, Namespace: p.Task.Pod.Namespace, Name: p.Task.Pod.Name, Node: p.Node, Request: p.Task.Request,
		})
	}
	uids := make([]types.UID, len(st.Victims))
	for i, v := range st.Victims {
		uids[i] = v.Task.UID
		d.Victims = append(d.Victims, ev.victim(v, rule))
	}
	for reason, n := range st.Kept {
		d.Kept = append(d.Kept, eviction.Kept{Reason: reason, Pods: n})
	}
	slices.SortFunc(d.Kept, func(a, b eviction.Kept) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Reason, b.Reason))
	})

	// The model first: whoever follows the job from now on finds room kept for it. What happened to it meanwhile is
	// looked at in the end.
	ev.state.Pipeline(nominations, uids)
	var decision *eviction.Decision
	if len(d.Victims) > 0 {
		decision = ev.Ledger.Begin(now, d)
	}
	ev.await(job.Key, st, now)
	defer ev.follow(model.Change{Jobs: []model.JobKey{job.Key}, Tasks: uids})
	logger := klog.FromContext(ctx)
	for _, p := range st.Placements {
		info, err := framework.NewPodInfo(p.Task.Pod)
		if err != nil {
			return fmt.Errorf("reading pod %s/%s: %w", p.Task.Pod.Namespace, p.Task.Pod.Name, err)
		}
		ev.handle.AddNominatedPod(logger, info, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: p.Node})
	}
	if decision != nil {
		logger.V(2).Info("Evicting", "job", job.Key, "queue", job.Queue, "action", action, "pods", len(uids), "decision", decision.ID)
		ev.Executor.Execute(decision)
	}
	return nil
}

func (ev *Evictions) victim(v model.Victim, rule string) *eviction.Victim {
	victim := &eviction.Victim{
		Pod: v.Task.Pod, UID: v.Task.UID, Job: v.Job.Key, Queue: v.Job.Queue, Node: v.Task.Node, Request: v.Task.Request,
		Why: rule,
	}
	for _, b := range ev.state.Budgets(v.Task.Pod.Namespace) {
		victim.Budgeted = victim.Budgeted || b.Selector.Matches(labels.Set(v.Task.Pod.Labels))
	}
	return victim
}

// await records what a job waits for: the victims, and what leaves its nodes anyway.
func (ev *Evictions) await(key model.JobKey, st gang.Statement, now time.Time) {
	a := await{pods: map[types.UID]string{}, until: now}
	nodes := map[string]bool{}
	for _, p := range st.Placements {
		a.members = append(a.members, p.Task.UID)
		nodes[p.Node] = true
	}
	for _, v := range st.Victims {
		a.pods[v.Task.UID] = v.Task.Node
		a.until = later(a.until, now.Add(model.GracePeriod(v.Task.Pod)))
	}
	for _, l := range ev.state.Leaving() {
		if nodes[l.Node] {
			a.pods[l.UID] = l.Node
			a.until = later(a.until, l.Until)
		}
	}
	a.until = a.until.Add(ev.timeout)
	ev.mu.Lock()
	defer ev.mu.Unlock()
	if before, ok := ev.awaits[key]; ok {
		a.members = append(a.members, before.members...)
		maps.Copy(a.pods, before.pods)
		a.until = later(a.until, before.until)
	}
	ev.awaits[key] = a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Awaited says how many pods have yet to leave for a job for which room is kept, and until when that is believed. When
// none is left, or the time is over, and the job still does not fit, the room does not help.
func (ev *Evictions) Awaited(job *model.Job) (left int, until time.Time) {
	now := ev.clock.Now()
	a, ok := ev.awaited(job.Key)
	if !ok {
		ev.adopt(job, now)
		a, _ = ev.awaited(job.Key)
	}
	if now.Before(a.until) {
		nodes := ev.handle.SnapshotSharedLister().NodeInfos()
		for uid, node := range a.toLeave(job, ev.state.Leaving(), ev.state.Task) {
			if info, err := nodes.Get(node); err == nil && onNode(info, uid) {
				left++
			}
		}
	}
	return left, a.until
}

func (ev *Evictions) awaited(key model.JobKey) (a await, ok bool) {
	ev.mu.Lock()
	defer ev.mu.Unlock()
	a, ok = ev.awaits[key]
	return a, ok
}

// adopt has a job for which a process before this kept room wait for what leaves that room. Whom that process evicted would have gone for
// nothing otherwise.
func (ev *Evictions) adopt(job *model.Job, now time.Time) {
	var st gang.Statement
	for _, t := range job.Tasks {
		if t.Nominated != "" {
			st.Placements = append(st.Placements, gang.Placement{Task: t, Node: t.Nominated})
		}
	}
	ev.await(job.Key, st, now)
}

// toLeave are the pods that have to leave for a job, by UID, with their nodes, unless they have left since. Besides those
// that it waited for from the beginning these are all that leave the nodes where room is kept for it: room on the same
// nodes may have been made for others since, and until their victims have left both those and the others count there.
// Who was spared stays, and is not waited for.
func (a await) toLeave(job *model.Job, leaving []model.Leaving, task func(types.UID) *model.Task) map[types.UID]string {
	kept := map[string]bool{}
	for _, t := range job.Tasks {
		if t.Nominated != "" {
			kept[t.Nominated] = true
		}
	}
	pods := map[types.UID]string{}
	for uid, node := range a.pods {
		if t := task(uid); t == nil || t.Completed() || t.Status == model.Releasing {
			pods[uid] = node
		}
	}
	for _, l := range leaving {
		if kept[l.Node] {
			pods[l.UID] = l.Node
		}
	}
	return pods
}

func onNode(info fwk.NodeInfo, uid types.UID) bool {
	return slices.ContainsFunc(info.GetPods(), func(p fwk.PodInfo) bool { return p.GetPod().UID == uid })
}

// Abandon gives up the room that is kept for a job. Victims that nobody has been asked to evict stay.
func (ev *Evictions) Abandon(key model.JobKey) {
	ev.mu.Lock()
	if a, ok := ev.awaits[key]; ok {
		a.pods, a.until, a.lapsed = nil, time.Time{}, true
		ev.awaits[key] = a
	}
	ev.mu.Unlock()
	ev.spare(ev.Ledger.Close(key, ev.clock.Now()))
	job := ev.state.Job(key)
	if job == nil {
		return
	}
	var uids []types.UID
	for _, t := range job.Tasks {
		if t.Nominated != "" {
			uids = append(uids, t.UID)
			ev.handle.DeleteNominatedPodIfExists(t.Pod)
		}
	}
	if len(uids) > 0 {
		ev.state.Denominate(uids...)
	}
}

func (ev *Evictions) spare(victims []*eviction.Victim) {
	for _, v := range victims {
		ev.state.Spare(v.UID)
	}
}

// follow observes the model: victims that are gone, jobs that have started or do not wait any more.
func (ev *Evictions) follow(c model.Change) {
	for _, uid := range c.Tasks {
		if t := ev.state.Task(uid); t == nil || t.Completed() {
			ev.Ledger.Gone(uid)
		}
	}
	for _, key := range c.Jobs {
		if a, ok := ev.awaited(key); ok {
			ev.conclude(key, a)
		}
	}
}

// conclude ends the wait of a job that has what it waited for, or waits for nothing any more.
func (ev *Evictions) conclude(key model.JobKey, a await) {
	job := ev.state.Head(key)
	started := false
	switch {
	case job == nil:
	case job.Counts.Nominated > 0, a.lapsed && !job.Started() && job.Counts.Placeable() > 0:
		return
	case a.lapsed:
		started = job.Started()
	default:
		started = slices.ContainsFunc(a.members, ev.placed)
	}
	ev.mu.Lock()
	delete(ev.awaits, key)
	ev.mu.Unlock()
	if now := ev.clock.Now(); started {
		ev.spare(ev.Ledger.Started(key, now))
	} else {
		ev.spare(ev.Ledger.Cancel(key, now))
	}
}

// placed reports whether a task holds a node, or did. One that is deleted while it waits holds none, though it terminates.
func (ev *Evictions) placed(uid types.UID) bool {
	t := ev.state.Task(uid)
	return t != nil && t.Node != "" && (t.Status.HoldsNode() || t.Completed())
}

// expire gives up room that no turn gives up: some time after the start what was kept for tasks when the scheduler came
// up, for who decided that is gone; and what is kept for jobs that get no turns any more, because they lost a member for
// instance.
func (ev *Evictions) expire(ctx context.Context) {
	for adopted := true; ; adopted = false {
		select {
		case <-ctx.Done():
			return
		case <-ev.clock.After(ev.timeout):
		}
		if adopted {
			ev.expireAdopted()
		}
		for _, key := range ev.overdue() {
			ev.Abandon(key)
		}
	}
}

// overdue returns the jobs whose victims should have been gone some time ago. A job that gets turns has found out by then.
func (ev *Evictions) overdue() []model.JobKey {
	now := ev.clock.Now()
	ev.mu.Lock()
	defer ev.mu.Unlock()
	var keys []model.JobKey
	for key, a := range ev.awaits {
		if now.Sub(a.until) >= ev.timeout {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, model.JobKey.Compare)
	return keys
}

// expireAdopted gives up the room that is kept for tasks and not by any decision.
func (ev *Evictions) expireAdopted() {
	for _, t := range ev.state.Nominated() {
		if _, known := ev.awaited(t.Job); !known {
			ev.handle.DeleteNominatedPodIfExists(t.Pod)
			ev.state.Denominate(t.UID)
		}
	}
}
