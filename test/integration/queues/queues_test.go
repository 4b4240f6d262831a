// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package queues tests fair queues on a real control plane.
package queues

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// queueLabel carries a pod's queue as a label, for selectors in tests.
const queueLabel = "queue"

// queueSpec describes a queue by what tests change of it.
type queueSpec struct {
	weight               int32
	parent               string
	deserved, capability string
}

func cpu(amount string) corev1.ResourceList {
	if amount == "" {
		return nil
	}
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

func (s queueSpec) object(name string) *volcano.Queue {
	return &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: volcano.QueueSpec{
		Weight: s.weight, Parent: s.parent, Deserved: cpu(s.deserved), Capability: cpu(s.capability),
	}}
}

func createQueues(t *testing.T, e *env.Env, queues map[string]queueSpec) {
	t.Helper()
	for name, spec := range queues {
		if _, err := e.Volcano.SchedulingV1beta1().Queues().Create(t.Context(), spec.object(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// single returns a job of one pod that asks for one core.
func single(queue string, i int) *corev1.Pod {
	p := env.Pod(fmt.Sprintf("%s-%d", queue, i), "1")
	p.Labels = map[string]string{queueLabel: queue}
	p.Annotations = map[string]string{model.QueueAnnotation: queue}
	return p
}

// placed returns the queue's pods that have a node and are not being deleted.
func placed(t *testing.T, e *env.Env, queue string) []*corev1.Pod {
	t.Helper()
	pods, err := e.Pods.List(labels.SelectorFromSet(labels.Set{queueLabel: queue}))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == "" || p.DeletionTimestamp != nil })
}

// TestSaturatedQueuesHoldTheCluster by their weights, not only in the end: while pods of all queues come and go, no queue
// ever holds a pod more than its due, and whenever the cluster is full each holds its due within one pod.
func TestSaturatedQueuesHoldTheClusterByTheirWeights(t *testing.T) {
	t.Parallel()
	const cores, jobs, rounds = 60, 80, 60
	due := map[string]int{"one": 10, "two": 20, "three": 30}
	w := newWatch(due, cores)
	e := env.New(t, localcluster.Options{Nodes: 6, Shapes: []string{"cpu=10,memory=64Gi"}}, w.see)
	createQueues(t, e, map[string]queueSpec{"one": {weight: 1}, "two": {weight: 2}, "three": {weight: 3}})
	var pods []*corev1.Pod
	for i := range jobs {
		for _, queue := range []string{"one", "two", "three"} {
			pods = append(pods, single(queue, i))
		}
	}
	e.CreatePods(t, pods...)
	w.begin()
	e.StartSchedulerWith(t, "actions: \"allocate, backfill\"")
	full := func() string { return w.full() }
	env.Eventually(t, time.Minute, full)

	next := jobs
	for round := range rounds {
		// A pod of each queue in turn ends, and a new one comes for it.
		queue := []string{"one", "two", "three", "three"}[round%4]
		victims := placed(t, e, queue)
		e.DeletePods(t.Context(), t, victims[round%len(victims)])
		e.CreatePods(t, single(queue, next))
		next++
		env.Eventually(t, time.Minute, func() string {
			for queue, want := range due {
				if n := len(placed(t, e, queue)); n != want {
					return fmt.Sprintf("round %d: queue %s holds %d pods, want %d", round, queue, n, want)
				}
			}
			return ""
		})
	}
	if problems := w.problems(); len(problems) > 0 {
		t.Error(strings.Join(problems, "\n"))
	}
	samples, fullSamples := w.taken()
	t.Logf("%d samples, %d of them of a full cluster", samples, fullSamples)
}

// TestJobsOfAQueueAlternate checks that elastic jobs of one queue grow side by side by their dominant shares: after every
// single pod no job is more than one ahead of another. Pods are counted as they get their nodes: binds are made beside each other.
func TestJobsOfAQueueAlternate(t *testing.T) {
	t.Parallel()
	const cores = 12
	names := []string{"a", "b", "c"}
	e := env.New(t, localcluster.Options{Nodes: 3, Shapes: []string{"cpu=4,memory=64Gi"}})
	var before []*corev1.Pod
	for i := range 3 {
		p := env.Pod(fmt.Sprint("before-", i), "4")
		p.Spec.NodeName = fmt.Sprintf("node-%04d", i)
		before = append(before, p)
	}
	e.CreatePods(t, before...)
	e.StartSchedulerWith(t, "actions: \"allocate, backfill\"")
	var mu sync.Mutex
	held, total := map[string]int{}, 0
	e.Core.State.Observe(func(c model.Change) {
		if !c.Own || c.Events&model.PodPlaced == 0 {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, job := range c.Jobs {
			held[job.Name]++
			total++
		}
		if ahead := max(held["a"], held["b"], held["c"]) - min(held["a"], held["b"], held["c"]); ahead > 1 {
			t.Errorf("after %d pods the jobs hold %v", total, held)
		}
	})
	for _, name := range names {
		e.Create(t, env.Gang{Name: name, Min: 1, Size: cores, CPU: "1"})
		env.Eventually(t, time.Minute, e.Waits(t, name, model.NotEnoughResources))
	}
	e.DeletePods(t.Context(), t, before...)
	for _, name := range names {
		env.Eventually(t, time.Minute, e.AllBound(t, name, cores/len(names)))
	}
	mu.Lock()
	defer mu.Unlock()
	if total != cores {
		t.Errorf("%d pods were given nodes, want %d", total, cores)
	}
}

const byTree = `
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]
`

// TestASiblingBorrowsUntilItsOwnerComes checks hierarchical capacity: a queue borrows what its sibling leaves idle, up to
// what their parent may hold; of the room that comes free the sibling gets what it deserves first.
func TestASiblingBorrowsUntilItsOwnerComes(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 3, Shapes: []string{"cpu=4,memory=64Gi"}})
	createQueues(t, e, map[string]queueSpec{
		"eng": {weight: 1, deserved: "8", capability: "8"}, "sci": {weight: 1, deserved: "4"},
		"dev": {weight: 1, parent: "eng", deserved: "4"}, "prod": {weight: 1, parent: "eng", deserved: "4"},
	})
	e.StartSchedulerWith(t, byTree)
	for i := range 14 {
		e.CreatePods(t, single("dev", i))
	}
	holds := func(want map[string]int) func() string {
		return func() string {
			for queue, n := range want {
				if got := len(placed(t, e, queue)); got != n {
					return fmt.Sprintf("queue %s holds %d cores, want %d", queue, got, n)
				}
			}
			return ""
		}
	}
	env.Eventually(t, time.Minute, holds(map[string]int{"dev": 8}))
	env.Consistently(t, 2*time.Second, holds(map[string]int{"dev": 8}))
	for i := range 6 {
		e.CreatePods(t, single("prod", i))
	}
	for owned := range 4 {
		env.Consistently(t, time.Second, holds(map[string]int{"dev": 8 - owned, "prod": owned}))
		e.DeletePods(t.Context(), t, placed(t, e, "dev")[0])
		env.Eventually(t, time.Minute, holds(map[string]int{"dev": 7 - owned, "prod": owned + 1}))
	}
	// Both hold what they deserve; the next core goes to the one that gave it up.
	// They hold as much before, until the informer has heard that the pod is gone.
	given := placed(t, e, "dev")[0]
	e.DeletePods(t.Context(), t, given)
	env.Eventually(t, time.Minute, func() string {
		if slices.ContainsFunc(placed(t, e, "dev"), func(p *corev1.Pod) bool { return p.Name == given.Name }) {
			return given.Name + " is not gone"
		}
		return holds(map[string]int{"dev": 4, "prod": 4})()
	})
	env.Consistently(t, 2*time.Second, holds(map[string]int{"dev": 4, "prod": 4}))
	env.Eventually(t, time.Minute, func() string {
		q, err := e.Volcano.SchedulingV1beta1().Queues().Get(t.Context(), "eng", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := q.Status.Allocated.Cpu().String(); got != "8" || q.Status.State != volcano.QueueStateOpen {
			return fmt.Sprintf("the status of eng says %s cpu and %q, want 8 and Open", got, q.Status.State)
		}
		return ""
	})
}

// TestABrokenTreeIsLeftOut checks that a broken part of the tree waits and says why, that the rest runs, and that mending
// it is all it takes.
func TestABrokenTreeIsLeftOut(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=8,memory=64Gi"}})
	createQueues(t, e, map[string]queueSpec{
		"well":   {weight: 1, deserved: "4"},
		"orphan": {weight: 1, parent: "nowhere", deserved: "2"},
		"small":  {weight: 1, deserved: "2", capability: "2"}, "child": {weight: 1, parent: "small", deserved: "2", capability: "5"},
		"ring-a": {weight: 1, parent: "ring-b"}, "ring-b": {weight: 1, parent: "ring-a"},
	})
	e.StartSchedulerWith(t, byTree)
	broken := []string{"orphan", "child", "ring-a"}
	for _, queue := range append([]string{"well"}, broken...) {
		e.Create(t, env.Gang{Name: "of-" + queue, Min: 2, Size: 2, CPU: "1", Queue: queue})
	}
	env.Eventually(t, time.Minute, e.AllBound(t, "of-well", 2))
	for _, queue := range broken {
		env.Eventually(t, time.Minute, e.Waits(t, "of-"+queue, model.QueueMisconfigured))
		env.Eventually(t, time.Minute, func() string { return saysWhy(t, e, queue) })
	}
	e.ChangeQueue(t, "orphan", func(s *volcano.QueueSpec) { s.Parent = "root" })
	e.ChangeQueue(t, "child", func(s *volcano.QueueSpec) { s.Capability = cpu("2") })
	// ring-b stays the child of ring-a, which is no place for jobs then.
	e.ChangeQueue(t, "ring-a", func(s *volcano.QueueSpec) { s.Parent = "" })
	env.Eventually(t, time.Minute, e.AllBound(t, "of-orphan", 2))
	env.Eventually(t, time.Minute, e.AllBound(t, "of-child", 2))
	env.Eventually(t, time.Minute, e.Waits(t, "of-ring-a", model.QueueNotLeaf))
	if err := e.Volcano.SchedulingV1beta1().Queues().Delete(t.Context(), "ring-b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, time.Minute, e.AllBound(t, "of-ring-a", 2))
}

// saysWhy reports whether an event on the queue says that it is left out.
func saysWhy(t *testing.T, e *env.Env, queue string) string {
	t.Helper()
	list, err := e.Kube.CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + queue})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range list.Items {
		if event.Reason == string(model.QueueMisconfigured) && strings.Contains(event.Message, "is left out") {
			return ""
		}
	}
	return fmt.Sprintf("no event on queue %s says why it is left out", queue)
}

// TestJobsOfAStrictQueue start one after the other: while the first has no room the next one waits, and says for whom; once the first is gone,
// it starts.
func TestJobsOfAStrictQueue(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=4,memory=64Gi"}})
	strict := queueSpec{weight: 1}.object("strict")
	strict.Spec.DequeueStrategy = volcano.DequeueStrategyFIFO
	if _, err := e.Volcano.SchedulingV1beta1().Queues().Create(t.Context(), strict, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.StartScheduler(t)
	e.Create(t, env.Gang{Name: "first", Min: 3, Size: 3, CPU: "2500m", Queue: "strict"})
	env.Eventually(t, 20*time.Second, e.Waits(t, "first", model.NotEnoughResources))
	env.NextSecond()
	e.CreateLetIn(t, env.Gang{Name: "next", Min: 2, Size: 2, CPU: "1", Queue: "strict"})
	env.Eventually(t, 20*time.Second, e.Waits(t, "next", model.NotFirst))
	e.Create(t, env.Gang{Name: "elsewhere", Min: 2, Size: 2, CPU: "1"})
	env.Eventually(t, 20*time.Second, e.AllBound(t, "elsewhere", 2))
	env.Consistently(t, 2*time.Second, e.AllBound(t, "next", 0))
	e.Delete(t, "first")
	env.Eventually(t, 20*time.Second, e.AllBound(t, "next", 2))
}

// TestWhoLosesAllItsPodsIsLetInAnew: a gang loses its pods, and the room of its queue goes to one of higher priority that waits to be let in. Its PodGroup
// is Pending until that one is gone, as Volcano's controllers know it.
func TestWhoLosesAllItsPodsIsLetInAnew(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=16,memory=64Gi"}})
	createQueues(t, e, map[string]queueSpec{"q": {weight: 1, capability: "4"}})
	e.PriorityClass(t, "high", 1000)
	e.StartSchedulerWith(t, `actions: "enqueue, allocate, backfill"`)
	gang := func(name, class string) env.Gang {
		four := cpu("4")
		return env.Gang{Name: name, Min: 2, Size: 2, CPU: "2", Queue: "q", Group: func(g *volcano.PodGroup) {
			g.Spec.MinResources, g.Spec.PriorityClassName = &four, class
		}}
	}
	phase := func(name string, want volcano.PodGroupPhase) func() string {
		return func() string {
			if is := e.PodGroup(t, name).Status.Phase; is != want {
				return fmt.Sprintf("PodGroup %s is %s, want %s", name, is, want)
			}
			return ""
		}
	}
	first := gang("first", "")
	e.Create(t, first)
	env.Eventually(t, time.Minute, phase("first", volcano.PodGroupRunning))
	e.Create(t, gang("second", "high"))
	env.Eventually(t, time.Minute, e.Waits(t, "second", model.NotAdmitted))

	e.DeletePods(t.Context(), t, e.Members(t, "first")...)
	env.Eventually(t, time.Minute, e.AllBound(t, "second", 2))
	env.Eventually(t, time.Minute, phase("first", volcano.PodGroupPending))
	e.CreatePods(t, first.Members()...)
	env.Eventually(t, time.Minute, e.Waits(t, "first", model.NotAdmitted))
	e.Delete(t, "second")
	env.Eventually(t, time.Minute, e.AllBound(t, "first", 2))
	env.Eventually(t, time.Minute, phase("first", volcano.PodGroupRunning))
}
