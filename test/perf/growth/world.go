// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	upstreammetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/internal/testing/placing"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/gang/room"
	"github.com/caldera-scheduler/caldera/pkg/metrics"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/volcano/schedulerconf"
)

const (
	// podsOnNode is how many pods each node has, and devicesOnNode how many of them hold one of as many devices.
	podsOnNode, devicesOnNode = 10, 8
	// gangSize is the size of the gangs that are placed, and evictingSize that of the one for which others are evicted.
	gangSize, evictingSize = 100, 500
	// roomy is how many nodes have room for a large pod: one fewer than the gang has that is one short.
	roomy     = 9
	namespace = "default"
	// The queue that holds the cluster, and one that is due half of it.
	holding, owed = "holding", "owed"
	device        = corev1.ResourceName("nvidia.com/gpu")
)

// conf is the configuration of the queues.
const conf = `
actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: proportion}]
`

// created is since when all objects are there.
var created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// size is how large a cluster is.
type size struct {
	// nodes, each with ten pods; queues with jobs that wait, of which the first of each is a gang of 100 and the others are single pods.
	nodes, queues, jobs int
}

// world is a cluster in memory: the scheduler's cache and snapshot, the model, the dispatcher that decides by it, and a planner.
type world struct {
	size
	logger   klog.Logger
	cache    cache.Cache
	snapshot *cache.Snapshot
	state    *model.State
	policies *policy.Set
	dispatch *dispatch.Dispatcher
	planner  *gang.Planner
	handlers handlers
	// full is the cluster that is explained; nil before it is asked for. Said is what an operation says besides its time.
	full *full
	said string
	// activated are the pods of the turn whose cycles are to come.
	activated []*corev1.Pod
	// bound and waiting are the pods that have nodes, and those of gangs and of single jobs that have none.
	bound          []*corev1.Pod
	gangs, singles []*corev1.Pod
	memory         memory
	// began is how long the dispatcher took to take in all that was there when it started.
	began time.Duration
}

// memory is what parts of the cluster take of the heap, in bytes.
type memory struct {
	// Objects are those that informers keep; upstream is kube-scheduler's cache and snapshot, model that of Caldera with the accounts of queues.
	Node    cost `json:"node"`
	Bound   cost `json:"boundPod"`
	Waiting cost `json:"waitingPod"`
	Queue   cost `json:"queue"`
	// Live is all that lives, those of this program included.
	Live float64 `json:"live"`
}

// cost is what one takes, in bytes.
type cost struct {
	Object   float64 `json:"object"`
	Upstream float64 `json:"upstream"`
	Caldera  float64 `json:"caldera"`
}

// live is how much of the heap is in use after it was collected, in bytes.
func live() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// grown returns by how much the heap has grown for each of so many while do ran.
func (w *world) grown(of int, do func()) float64 {
	before := w.memory.Live
	do()
	w.memory.Live = live()
	return (w.memory.Live - before) / float64(of)
}

// newWorld builds a cluster of a size. What it keeps in the background ends with the context. While it is built, the heap is collected when its parts
// are measured, and otherwise seldom.
func newWorld(ctx context.Context, s size, say func(string)) (*world, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	upstreammetrics.Register()
	w := &world{size: s, logger: klog.FromContext(ctx), state: model.NewState(), snapshot: cache.NewEmptySnapshot()}
	w.cache = cache.New(ctx, nil, false, false)
	w.state.AddScheduler("volcano")
	if err := w.newDispatcher(); err != nil {
		return nil, err
	}
	var failed error
	try := func(err error) { failed = errors.Join(failed, err) }
	say("nodes")
	w.memory.Live = live()
	w.addNodes()
	say("bound pods")
	w.addBound(try)
	say("queues and waiting pods")
	w.addQueues()
	w.addWaiting()
	say("start")
	began := time.Now()
	w.start(ctx)
	w.began = time.Since(began)
	try(w.cache.UpdateSnapshot(w.logger, w.snapshot))
	planner, err := placing.Default(ctx, w.snapshot)
	try(err)
	try(w.newHandlers(ctx))
	w.planner = planner
	w.memory.Live = live()
	if failed != nil {
		return nil, fmt.Errorf("building a cluster of %d nodes: %w", s.nodes, failed)
	}
	return w, nil
}

// newDispatcher builds the dispatcher, which begins turns in steps only.
func (w *world) newDispatcher() error {
	args, err := schedulerconf.Parse([]byte(conf))
	if err != nil {
		return fmt.Errorf("reading the configuration of the queues: %w", err)
	}
	if w.policies, err = policy.Compile(args); err != nil {
		return fmt.Errorf("compiling the policies: %w", err)
	}
	w.dispatch = dispatch.New(dispatch.Config{
		State: w.state, Rules: dispatch.Rules{Policies: w.policies, Evicts: true},
		MayFit: gang.MayFit, NeverFits: gang.NeverFits,
		Checks: func(string) room.Checks {
			return room.Checks{Resources: true, Affinity: true, Taints: true, Unschedulable: true}
		},
		Lead: gang.TaskOrder(func(_, _ *model.Task) int { return 0 }).Lead,
		Activate: func(pods []*corev1.Pod) []dispatch.Standing {
			w.activated = pods
			return nil
		},
		Settle: func([]types.UID, bool) {}, Ungate: func([]*model.Task) {},
		Report: func(model.JobKey, model.Reason, uint64) {}, Fault: func(*model.Queue, model.Reason) {},
		Release: func(dispatch.Trouble) {}, Abandon: func(model.JobKey) {}, Tell: func(dispatch.Trouble) {},
		Clock: clock.RealClock{}, Recorder: metrics.Recorder{},
	})
	w.dispatch.Hold()
	w.state.Observe(w.dispatch.Notify)
	return nil
}

// start has the dispatcher take in all that there is. It is stepped from then on, so that nothing of it runs in the background.
func (w *world) start(ctx context.Context) {
	ended, end := context.WithCancel(ctx)
	end()
	w.dispatch.Run(ended)
	for range 10 {
		// Jobs are let in first, and may have turns then.
		if w.dispatch.Step(); w.activated != nil {
			w.decline()
			return
		}
	}
}

// decline ends a turn whose plan was not asked for.
func (w *world) decline() {
	w.dispatch.Begins(w.activated[0].UID)
	w.dispatch.Between()
	w.activated = nil
}

func (w *world) addNodes() {
	nodes := make([]*corev1.Node, w.nodes)
	w.memory.Node = cost{
		Object: w.grown(w.nodes, func() {
			for i := range nodes {
				nodes[i] = newNode(i)
			}
		}),
		Upstream: w.grown(w.nodes, func() {
			for _, n := range nodes {
				w.cache.AddNode(w.logger, n)
			}
		}),
		Caldera: w.grown(w.nodes, func() {
			for _, n := range nodes {
				w.state.UpsertNode(n)
			}
		}),
	}
}

// newNode is a node whose devices are all held, and which has 24 of its cores idle. The first ones have more.
func newNode(i int) *corev1.Node {
	cpu := "64"
	if i < roomy {
		cpu = "96"
	}
	has := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("512Gi"), corev1.ResourcePods: resource.MustParse("110"),
		device: *resource.NewQuantity(devicesOnNode, resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), UID: types.UID(nodeName(i)), Labels: map[string]string{
			corev1.LabelHostname: nodeName(i), corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3), corev1.LabelArchStable: "amd64",
		}},
		Status: corev1.NodeStatus{Capacity: has, Allocatable: has},
	}
}

func nodeName(i int) string { return fmt.Sprintf("node-%06d", i) }

// addBound fills the nodes with elastic jobs of ten pods, two of which are to stay, each of them on another node.
func (w *world) addBound(try func(error)) {
	for i := range w.nodes {
		w.addGroup(fmt.Sprintf("bound-%06d", i), holding, 2)
	}
	n := w.nodes * podsOnNode
	w.memory.Bound = cost{
		Object: w.grown(n, func() {
			for i := range n {
				w.bound = append(w.bound, w.boundPod(i/podsOnNode, i%podsOnNode))
			}
		}),
		Upstream: w.grown(n, func() {
			for _, p := range w.bound {
				try(w.cache.AddPod(w.logger, p))
			}
			try(w.cache.UpdateSnapshot(w.logger, w.snapshot))
		}),
		Caldera: w.grown(n, func() {
			for _, p := range w.bound {
				w.state.UpsertPod(p)
			}
		}),
	}
}

// boundPod is a pod of a job that runs on a node.
func (w *world) boundPod(job, member int) *corev1.Pod {
	const apart = 7919 // A prime, so that each node gets one pod of each number.
	group := fmt.Sprintf("bound-%06d", job)
	asks := map[corev1.ResourceName]string{corev1.ResourceCPU: "4", corev1.ResourceMemory: "8Gi"}
	if member < devicesOnNode {
		asks[device] = "1"
	}
	p := newPod(group, fmt.Sprintf("%s-%d", group, member), asks).Node(nodeName((job + member*apart) % w.nodes)).Phase(corev1.PodRunning).Obj()
	p.Status.StartTime = &metav1.Time{Time: created}
	return p
}

func newPod(group, name string, asks map[corev1.ResourceName]string) *st.PodWrapper {
	p := builders.Pod(namespace, name).CreationTimestamp(metav1.NewTime(created)).Req(asks)
	p.Pod.Labels["job"] = group
	p.Pod.Annotations[model.GroupNameAnnotation] = group
	return p
}

func keyOf(group string) model.JobKey {
	return model.JobKey{Source: model.FromVolcano, Namespace: namespace, Name: group}
}

func (w *world) addGroup(name, queue string, least int) {
	w.state.UpsertGroup(keyOf(name), &model.Group{UID: types.UID(name), Queue: queue, MinMember: least, Created: created, Phase: model.PhaseInqueue})
}

// addQueues adds the queues in which jobs wait, and the two others.
func (w *world) addQueues() {
	queue := func(name string, weight int32) {
		w.state.UpsertQueue(&model.Queue{Name: name, UID: types.UID(name), Weight: weight, Reclaimable: true, State: model.QueueOpen})
	}
	queue(holding, 1)
	queue(owed, int32(w.queues)) //nolint:gosec // some thousands
	w.memory.Queue.Caldera = w.grown(w.queues, func() {
		for i := range w.queues {
			queue(queueName(i), 1)
		}
	})
}

func queueName(i int) string { return fmt.Sprintf("queue-%04d", i) }

// addWaiting adds the jobs that wait: a gang in each queue, and behind the gangs jobs of single pods.
func (w *world) addWaiting() {
	n := w.queues*gangSize + w.jobs - w.queues
	w.memory.Waiting = cost{
		Object: w.grown(n, func() {
			asks := map[corev1.ResourceName]string{corev1.ResourceCPU: "100m", corev1.ResourceMemory: "100Mi"}
			for i := range w.queues * gangSize {
				group := fmt.Sprintf("gang-%d", i/gangSize)
				w.gangs = append(w.gangs, newPod(group, fmt.Sprintf("%s-%d", group, i%gangSize), asks).Obj())
			}
			asks = map[corev1.ResourceName]string{corev1.ResourceCPU: "200m", corev1.ResourceMemory: "200Mi"}
			for i := range w.jobs - w.queues {
				p := builders.Pod(namespace, fmt.Sprintf("single-%d", i)).CreationTimestamp(metav1.NewTime(created.Add(time.Hour))).Req(asks).Obj()
				p.Annotations[model.QueueAnnotation] = queueName(i % w.queues)
				w.singles = append(w.singles, p)
			}
		}),
		Caldera: w.grown(n, func() {
			for i := range w.queues {
				w.addGroup(fmt.Sprintf("gang-%d", i), queueName(i), gangSize)
			}
			for _, p := range w.gangs {
				w.state.UpsertPod(p)
			}
			for _, p := range w.singles {
				w.state.UpsertPod(p)
			}
		}),
	}
}

// gang adds a gang of equal pods to the model and returns its job.
func (w *world) gang(name, queue string, n int, asks map[corev1.ResourceName]string) *model.Job {
	w.addGroup(name, queue, n)
	for i := range n {
		w.state.UpsertPod(newPod(name, fmt.Sprintf("%s-%d", name, i), asks).Obj())
	}
	return w.state.Job(keyOf(name))
}
