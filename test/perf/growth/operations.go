// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// operation is something that the scheduler does again and again.
type operation struct {
	// name is for tables and plots.
	name string
	// limit is how long it may take on 50,000 nodes with 500,000 pods; zero where nobody set one.
	limit time.Duration
	// once does it once, and returns how long that took without what it takes to prepare it. It fails if it comes out otherwise than it has to.
	once func(ctx context.Context, w *world) (time.Duration, error)
}

// readersMayTake is how long who reads may keep a lock from others: less than a turn takes.
const readersMayTake = 3 * time.Millisecond

// operations are those that are measured, in an order in which none spoils another.
func operations() []operation {
	return []operation{
		{"next of 100,000 jobs", 50 * time.Microsecond, choose},
		{"turn of a gang of 100, known class", 3 * time.Millisecond, turn},
		{"plan of a gang of 100, known class", 0, planKnown},
		{"plan of a gang of 100, new class", 0, planNew},
		{"refusal, all nodes full", 5 * time.Millisecond, refuseFull},
		{"refusal, one place short", 5 * time.Millisecond, refuseShort},
		{"reclaim for a gang of 500", time.Second, reclaim},
		{"model's snapshot, 1 % of the pods, whole gangs", 0, snapshotGangs},
		{"model's snapshot, 1 % of the pods, single jobs", 0, snapshotSingles},
		{"kube-scheduler's snapshot, gang of 100 placed", 0, updateSnapshot(func(*world) int { return gangSize })},
		{"kube-scheduler's snapshot, 1 % of the pods", 0, updateSnapshot((*world).hundredth)},
		{"a queue's weight changes, all dues anew", 0, divide},
		{"pod event that changes nothing", 0, podNews},
		{"pod event, a pod leaves or comes, taken in", 0, podsLeave},
		{"node event that changes nothing", 0, heartbeats},
		{"turn of a gang of 100 after such an event", 3 * time.Millisecond, afterHeartbeat},
		{"node event, a core more or less, taken in", 0, nodeGrows},
		{"explain: view of a job that waits", 0, answer(explained)},
		{"views of all jobs", 0, answer(jobViews)},
		{"views of all queues", 0, answer(queueViews)},
		{"view of the cluster, queues included", 0, answer(clusterView)},
		{"/metrics of jobs, queues and nodes", 0, answer(scraped)},
		{"dispatcher kept waiting, views of all jobs", readersMayTake, keeps(dispatchers, jobViews)},
		{"dispatcher kept waiting, view of the cluster", readersMayTake, keeps(dispatchers, clusterView)},
		{"dispatcher kept waiting, /metrics", readersMayTake, keeps(dispatchers, scraped)},
		{"model kept waiting, views of all jobs", readersMayTake, keeps(models, jobViews)},
		{"model kept waiting, view of the cluster", readersMayTake, keeps(models, clusterView)},
		{"model kept waiting, /metrics", readersMayTake, keeps(models, scraped)},
	}
}

// hundredth is one in a hundred of the bound pods.
func (w *world) hundredth() int { return max(1, len(w.bound)/100) }

// choose has the next job chosen.
func choose(_ context.Context, w *world) (time.Duration, error) {
	began := time.Now()
	w.dispatch.Step()
	took := time.Since(began)
	if len(w.activated) == 0 {
		return 0, fmt.Errorf("nobody of %d jobs gets a turn", w.jobs)
	}
	w.decline()
	return took, nil
}

// turn has the next job chosen, which is a gang, and planned, and its members placed, as far as that is ours. What was placed is taken back.
func turn(ctx context.Context, w *world) (time.Duration, error) {
	began := time.Now()
	w.dispatch.Step()
	if len(w.activated) == 0 {
		return 0, fmt.Errorf("nobody of %d jobs gets a turn", w.jobs)
	}
	lead := w.activated[0].UID
	w.dispatch.Begins(lead)
	entry := w.dispatch.Enter(lead)
	if entry.Verdict != dispatch.Lead || entry.Limit != (model.Reason{}) {
		return 0, fmt.Errorf("pod %s is to lead a turn: it has the verdict %d and the limit %q", lead, entry.Verdict, entry.Limit.Message)
	}
	plan, err := w.planner.Plan(ctx, gang.Request{
		Job: entry.Job, Budget: func() gang.Budget { return entry.Budget.Clone() }, NodesFirst: entry.NodesFirst, Followers: entry.Followers,
	})
	if err != nil {
		return 0, fmt.Errorf("planning job %s: %w", entry.Job.Key, err)
	}
	if len(plan.Placements) != gangSize {
		return 0, fmt.Errorf("%d of %d pods of job %s have nodes: %s", len(plan.Placements), gangSize, entry.Job.Key, plan.Reason.Text())
	}
	if err := w.place(lead, plan); err != nil {
		return 0, err
	}
	for _, p := range plan.Placements {
		w.state.Forget(p.Task.UID)
	}
	took := time.Since(began)
	w.activated = nil
	return took, nil
}

// place has the dispatcher and the model told that all members of a plan have their nodes, as the scheduling cycles of the pods do.
func (w *world) place(lead types.UID, plan gang.Plan) error {
	pods, nodes := make([]*corev1.Pod, len(plan.Placements)), make([]string, len(plan.Placements))
	for i, p := range plan.Placements {
		pods[i], nodes[i] = p.Task.Pod, p.Node
	}
	if w.dispatch.Planned(lead, pods, nodes, plan.Fragile) == "" {
		return fmt.Errorf("pod %s leads a turn and gets no node", lead)
	}
	w.cycle(lead, nodes[0])
	for i, p := range pods {
		if p.UID == lead {
			continue
		}
		if !w.dispatch.Begins(p.UID) || w.dispatch.Enter(p.UID).Verdict != dispatch.Member {
			return fmt.Errorf("pod %s is no member of the turn that placed it", p.UID)
		}
		w.cycle(p.UID, nodes[i])
	}
	if phase := w.dispatch.View().Phase(); phase != dispatch.Idle {
		return fmt.Errorf("all pods have nodes, and the turn is %s", phase)
	}
	return nil
}

// cycle ends the scheduling cycle of a pod that gets a node.
func (w *world) cycle(pod types.UID, node string) {
	w.state.Assume(pod, node)
	w.dispatch.Reserved(pod)
	w.dispatch.Between()
}

// unbounded asks for a job whose queue has room for all of it.
func unbounded(job *model.Job) gang.Request {
	return gang.Request{Job: job, Budget: func() gang.Budget { return &policy.Budget{} }}
}

// plan plans a job, and fails if it does not place so many pods.
func (w *world) plan(ctx context.Context, job *model.Job, want int) (time.Duration, error) {
	request := unbounded(job)
	began := time.Now()
	plan, err := w.planner.Plan(ctx, request)
	took := time.Since(began)
	switch {
	case err != nil:
		return 0, fmt.Errorf("planning job %s: %w", job.Key, err)
	case len(plan.Placements) != want:
		return 0, fmt.Errorf("%d pods of job %s have nodes, want %d: %s", len(plan.Placements), job.Key, want, plan.Reason.Text())
	case want == 0 && plan.Reason.Kind != model.NotEnoughResources:
		return 0, fmt.Errorf("job %s is refused by %q, want that there is no room", job.Key, plan.Reason.Kind)
	}
	return took, nil
}

// planKnown plans one of the gangs after another of its class.
func planKnown(ctx context.Context, w *world) (time.Duration, error) {
	if _, err := w.plan(ctx, w.state.Job(keyOf("gang-1")), gangSize); err != nil {
		return 0, err
	}
	return w.plan(ctx, w.state.Job(keyOf("gang-0")), gangSize)
}

// planNew plans one of the gangs by a planner that has planned nothing yet.
func planNew(ctx context.Context, w *world) (time.Duration, error) {
	planned := w.planner
	defer func() { w.planner = planned }()
	w.planner = planned.Anew()
	return w.plan(ctx, w.state.Job(keyOf("gang-0")), gangSize)
}

// apart is a gang that is in the model for one operation only, so that it never waits for turns.
func (w *world) apart(name string, n int, asks map[corev1.ResourceName]string, do func(*model.Job) (time.Duration, error)) (time.Duration, error) {
	defer func() {
		for i := range n {
			w.state.DeletePod(types.UID(fmt.Sprintf("%s-%d", name, i)))
		}
		w.state.DeleteGroup(keyOf(name))
	}()
	return do(w.gang(name, owed, n, asks))
}

// refuseFull plans a gang that asks for devices, all of which are held.
func refuseFull(ctx context.Context, w *world) (time.Duration, error) {
	asks := map[corev1.ResourceName]string{corev1.ResourceCPU: "4", device: "1"}
	return w.apart("full", gangSize, asks, func(job *model.Job) (time.Duration, error) { return w.plan(ctx, job, 0) })
}

// refuseShort plans a gang of pods for which there is room on all nodes but one.
func refuseShort(ctx context.Context, w *world) (time.Duration, error) {
	asks := map[corev1.ResourceName]string{corev1.ResourceCPU: "40"}
	return w.apart("short", roomy+1, asks, func(job *model.Job) (time.Duration, error) { return w.plan(ctx, job, 0) })
}

// reclaim looks for those who are evicted for a gang that asks for devices.
func reclaim(ctx context.Context, w *world) (time.Duration, error) {
	n := min(evictingSize, w.nodes)
	asks := map[corev1.ResourceName]string{corev1.ResourceCPU: "1", device: "1"}
	return w.apart("evicting", n, asks, func(job *model.Job) (time.Duration, error) {
		// The accounts are to know of it.
		w.dispatch.Step()
		w.decline()
		now := time.Now()
		snapshot := w.state.Snapshot()
		trial := w.policies.Trial(config.Reclaim, job, policy.EvictionWorld{Now: now, Budgets: w.state.Budgets})
		if reason := trial.Seek(job.Need()); reason != (model.Reason{}) {
			return 0, fmt.Errorf("nobody is to be evicted for job %s: %s", job.Key, reason.Message)
		}
		st, err := w.planner.Evict(ctx, gang.Search{
			Request: gang.Request{
				Job: job, Budget: func() gang.Budget { return w.policies.Budget(w.policies.Book().Queue(job.Queue), job.OwnHalf(), false) },
				Nominated: w.state.Nominated(),
			},
			Trial: trial, Leaving: w.state.Leaving(), Now: now, Patience: time.Minute,
			Victim: func(uid types.UID) model.Victim {
				if t := w.state.Task(uid); t != nil {
					return model.Victim{Task: t, Job: snapshot.Job(t.Job)}
				}
				return model.Victim{}
			},
		})
		took := time.Since(now)
		switch {
		case err != nil:
			return 0, fmt.Errorf("looking for victims for job %s: %w", job.Key, err)
		case len(st.Victims) != n:
			return 0, fmt.Errorf("%d pods are evicted for job %s, want %d: %s", len(st.Victims), job.Key, n, st.Why)
		}
		return took, nil
	})
}

// snapshotGangs takes a snapshot of the model when one pod in a hundred got a node since the last: those of whole gangs.
func snapshotGangs(_ context.Context, w *world) (time.Duration, error) { return w.snap(w.gangs) }

// snapshotSingles does so when each was another job.
func snapshotSingles(_ context.Context, w *world) (time.Duration, error) { return w.snap(w.singles) }

func (w *world) snap(pods []*corev1.Pod) (time.Duration, error) {
	changed := pods[:min(w.hundredth(), len(pods))]
	w.state.Snapshot()
	for i, p := range changed {
		w.state.Assume(p.UID, nodeName(i%w.nodes))
	}
	began := time.Now()
	snapshot := w.state.Snapshot()
	took := time.Since(began)
	placed := 0
	for _, p := range changed {
		for _, t := range snapshot.JobOf(p).Tasks {
			if t.UID == p.UID && t.Node != "" {
				placed++
			}
		}
		w.state.Forget(p.UID)
	}
	if placed != len(changed) {
		return 0, fmt.Errorf("%d of %d pods have nodes in the model's snapshot", placed, len(changed))
	}
	return took, nil
}

// updateSnapshot brings kube-scheduler's snapshot up to date when so many pods got nodes since the last.
func updateSnapshot(pods func(*world) int) func(context.Context, *world) (time.Duration, error) {
	return func(_ context.Context, w *world) (time.Duration, error) {
		n := min(pods(w), len(w.singles))
		var there []*corev1.Pod
		defer func() {
			for _, p := range there {
				w.cache.ForgetPod(w.logger, p) //nolint:errcheck // It was just assumed.
			}
		}()
		for i, p := range w.singles[:n] {
			assumed := *p
			assumed.Spec.NodeName = nodeName(i % w.nodes)
			if err := w.cache.AssumePod(w.logger, &assumed); err != nil {
				return 0, fmt.Errorf("assuming pod %s: %w", p.Name, err)
			}
			there = append(there, &assumed)
		}
		began := time.Now()
		if err := w.cache.UpdateSnapshot(w.logger, w.snapshot); err != nil {
			return 0, fmt.Errorf("updating kube-scheduler's snapshot: %w", err)
		}
		took := time.Since(began)
		info, err := w.snapshot.NodeInfos().Get(nodeName(0))
		if err != nil || len(info.GetPods()) <= podsOnNode {
			return 0, fmt.Errorf("node %s has %d pods in kube-scheduler's snapshot, want more: %w", nodeName(0), len(info.GetPods()), err)
		}
		return took, nil
	}
}

// divide has the dispatcher take in that the weight of a queue is another one.
func divide(ctx context.Context, w *world) (time.Duration, error) {
	q := *w.state.Queue(queueName(0))
	q.Weight = 3 - q.Weight
	w.state.UpsertQueue(&q)
	return choose(ctx, w)
}
