// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package prequeue

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
)

const batch = "volcano"

// gate is a PreEnqueue plugin that lets pods pass that are open, as BatchQueue does.
type gate struct{ open map[types.UID]bool }

func (*gate) Name() string { return "Gate" }

func (g *gate) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	if g.holds(pod) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
	}
	return nil
}

func (g *gate) holds(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName == batch && !g.open[pod.UID]
}

// queues returns upstream's queue behind a gate, and the same one behind a prequeue, too. Only listed pods can be nominated.
func (g *gate) queues(ctx context.Context, listed ...runtime.Object) (bare queue.SchedulingQueue, fronted *prequeue) {
	schedulermetrics.Register()
	first := func(a, b fwk.QueuedEntityInfo) bool {
		return a.(*framework.QueuedPodInfo).Pod.Name < b.(*framework.QueuedPodInfo).Pod.Name
	}
	// A plugin that wants to know of bound pods makes the queue look at what is unschedulable.
	helps := func(klog.Logger, *corev1.Pod, any, any) (fwk.QueueingHint, error) { return fwk.Queue, nil }
	hint := queue.QueueingHintMap{framework.EventAssignedPodAdd: {{PluginName: "Other", QueueingHintFn: helps}}}
	hints := queue.QueueingHintMapPerProfile{batch: hint, "default-scheduler": hint}
	newQueue := func() queue.SchedulingQueue {
		return queue.NewTestQueueWithObjects(ctx, first, listed, queue.WithQueueingHintMapPerProfile(hints),
			queue.WithPreEnqueuePluginMap(map[string]map[string]fwk.PreEnqueuePlugin{batch: {g.Name(): g}}))
	}
	return newQueue(), newPrequeue(newQueue(), g.holds)
}

func newPod(name, version, scheduler string) *corev1.Pod {
	return builders.Pod("ns", name).Label("version", version).SchedulerName(scheduler).Req(builders.CPU("1")).Obj()
}

// seen lists pods with their versions.
func seen(pods []*corev1.Pod) []string {
	var list []string
	for _, p := range pods {
		list = append(list, p.Name+" "+p.Labels["version"])
	}
	slices.Sort(list)
	return list
}

func TestPodsWaitOutsideOfTheQueue(t *testing.T) {
	g := &gate{open: map[types.UID]bool{}}
	nominated := newPod("nominated", "1", batch)
	nominated.Status.NominatedNodeName = "n"
	_, l := g.queues(t.Context(), nominated)
	l.Add(t.Context(), newPod("held", "1", batch))
	l.Add(t.Context(), newPod("plain", "1", "default-scheduler"))
	l.Add(t.Context(), nominated)
	inside, _ := l.SchedulingQueue.PendingPods()
	if diff := cmp.Diff([]string{"nominated 1", "plain 1"}, seen(inside)); diff != "" {
		t.Errorf("in the queue (-want +got):\n%s", diff)
	}
	all, summary := l.PendingPods()
	if diff := cmp.Diff([]string{"held 1", "nominated 1", "plain 1"}, seen(all)); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	if want := "activeQ:1; backoffQ:0; unschedulableEntities:1; 1 wait in the prequeue"; summary != want {
		t.Errorf("summary is %q, want %q", summary, want)
	}
	if len(l.NominatedPodsForNode("n")) != 1 {
		t.Error("the queue does not know the nominated pod")
	}
}

// TestANominationIsKnownToTheQueue: filters are told of nominated pods, whenever they were nominated.
func TestANominationIsKnownToTheQueue(t *testing.T) {
	g := &gate{open: map[types.UID]bool{}}
	before, after := newPod("p", "1", batch), newPod("p", "2", batch)
	after.Status.NominatedNodeName = "n"
	_, l := g.queues(t.Context(), after)
	l.Add(t.Context(), before)
	l.Update(t.Context(), before, after)
	if len(l.NominatedPodsForNode("n")) != 1 {
		t.Error("the queue does not know the nominated pod")
	}
	l.Delete(klog.Background(), after)
	if all, _ := l.PendingPods(); len(all) > 0 || len(l.NominatedPodsForNode("n")) > 0 {
		t.Errorf("after it was deleted %v are pending and %d are nominated", seen(all), len(l.NominatedPodsForNode("n")))
	}
}

// TestAPodIsKnownToTheQueueOnceRoomIsKeptForIt: filters are told of it before the API server is, and until it says something else.
func TestAPodIsKnownToTheQueueOnceRoomIsKeptForIt(t *testing.T) {
	g := &gate{open: map[types.UID]bool{}}
	p := newPod("p", "1", batch)
	_, l := g.queues(t.Context(), p)
	l.Add(t.Context(), p)
	info, err := framework.NewPodInfo(p)
	if err != nil {
		t.Fatal(err)
	}
	keep := func() int64 {
		l.AddNominatedPod(klog.Background(), info, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: "n"})
		cpu := int64(0)
		for _, n := range l.NominatedPodsForNode("n") {
			cpu += n.CalculateResource().Resource.GetMilliCPU()
		}
		return cpu
	}
	if kept := keep(); kept != 0 {
		t.Errorf("the queue keeps %d milli-CPUs for a pod that it does not have", kept)
	}
	l.admit(klog.Background(), []*corev1.Pod{p, newPod("gone", "1", batch)})
	if kept := keep(); kept != 1000 {
		t.Errorf("the queue keeps %d milli-CPUs for the pod, want 1000", kept)
	}
	if active, _ := l.SchedulingQueue.PendingPods(); len(active) != 1 || len(l.waiting) != 0 {
		t.Errorf("the queue has %v, and %d wait before it", seen(active), len(l.waiting))
	}
	again := newPod("p", "2", batch)
	l.Update(t.Context(), p, again)
	if len(l.NominatedPodsForNode("n")) != 1 {
		t.Error("news of the pod has the queue forget the nomination")
	}
}

// TestThePrequeueChangesNothing: whatever happens, the same pods in the same versions are active and pending with a prequeue as without.
func TestThePrequeueChangesNothing(t *testing.T) {
	ctx, logger := t.Context(), klog.Background()
	rapid.Check(t, func(t *rapid.T) {
		g := &gate{open: map[types.UID]bool{}}
		bare, fronted := g.queues(ctx)
		known := map[string]*corev1.Pod{}
		both := func(fn func(queue.SchedulingQueue)) { fn(bare); fn(fronted) }
		refused := map[types.UID]bool{}
		version := 0
		fresh := func(name string) *corev1.Pod {
			version++
			return newPod(name, strconv.Itoa(version), map[bool]string{true: "default-scheduler", false: batch}[name == "plain"])
		}
		name := rapid.SampledFrom([]string{"a", "b", "c", "plain"})
		t.Repeat(map[string]func(*rapid.T){
			"add or update": func(t *rapid.T) {
				n := name.Draw(t, "pod")
				before, after := known[n], fresh(n)
				known[n] = after
				both(func(q queue.SchedulingQueue) {
					if before == nil {
						q.Add(ctx, after)
					} else {
						q.Update(ctx, before, after)
					}
				})
			},
			"delete": func(t *rapid.T) {
				n := name.Draw(t, "pod")
				if p := known[n]; p != nil {
					both(func(q queue.SchedulingQueue) { q.Delete(logger, p) })
					delete(known, n)
					delete(refused, p.UID)
				}
			},
			"open or shut": func(t *rapid.T) {
				n := name.Draw(t, "pod")
				uid := types.UID(n)
				if g.open[uid] = !g.open[uid]; g.open[uid] && refused[uid] {
					// Who was refused is let in by the dispatcher, and by no event.
					both(func(q queue.SchedulingQueue) { q.Activate(logger, map[string]*corev1.Pod{"ns/" + n: known[n]}) })
				}
			},
			"a cycle fails": func(t *rapid.T) {
				if len(bare.PodsInActiveQ()) == 0 {
					return
				}
				var tried []attempt
				shut, bound := rapid.Bool().Draw(t, "its turn is over"), rapid.Bool().Draw(t, "a pod is bound meanwhile")
				both(func(q queue.SchedulingQueue) { tried = append(tried, g.fail(t, q, shut, bound)) })
				refused[types.UID(tried[0].Pod)] = true
				if tried[0] != tried[1] {
					t.Fatalf("tried %+v without a prequeue, and %+v with one", tried[0], tried[1])
				}
			},
			"activate": func(t *rapid.T) {
				// Whoever activates a pod may have an older one than the informer.
				pods := map[string]*corev1.Pod{}
				for _, n := range rapid.SliceOfDistinct(name, rapid.ID[string]).Draw(t, "pods") {
					pods["ns/"+n] = newPod(n, "old", batch)
				}
				both(func(q queue.SchedulingQueue) { q.Activate(logger, maps.Clone(pods)) })
			},
			"a pod was bound": func(*rapid.T) {
				both(func(q queue.SchedulingQueue) {
					q.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodAdd, nil, newPod("bound", "1", batch), nil)
				})
			},
			"": func(t *rapid.T) {
				if diff := cmp.Diff(seen(bare.PodsInActiveQ()), seen(fronted.PodsInActiveQ())); diff != "" {
					t.Fatalf("active pods differ (-without +with a prequeue):\n%s", diff)
				}
				want, _ := bare.PendingPods()
				got, _ := fronted.PendingPods()
				if diff := cmp.Diff(seen(want), seen(got)); diff != "" {
					t.Fatalf("pending pods differ (-without +with a prequeue):\n%s", diff)
				}
			},
		})
	})
}

// attempt is a pod and how many cycles it has had.
type attempt struct {
	Pod   string
	Count int
}

// fail has the cycle of the first active pod find no node.
func (g *gate) fail(t *rapid.T, q queue.SchedulingQueue, shut, bound bool) attempt {
	logger := klog.Background()
	entity, err := q.Pop(logger)
	if err != nil {
		t.Fatal(err)
	}
	info := entity.(*framework.QueuedPodInfo)
	fronted, isFronted := q.(*prequeue)
	if isFronted {
		fronted.resume(info)
	}
	if bound {
		q.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodAdd, nil, newPod("bound", "1", batch), nil)
	}
	if shut {
		g.open[info.Pod.UID] = false
	}
	tried := attempt{info.Pod.Name, info.Attempts}
	other := sets.New("Other")
	back := info.DeepCopy()
	back.UnschedulablePlugins = other
	if err := q.AddUnschedulablePodIfNotPresent(logger, back, q.SchedulingCycle()); err != nil {
		t.Fatal(err)
	}
	if isFronted {
		status := fwk.NewStatus(fwk.Unschedulable).WithError(&framework.FitError{Diagnosis: framework.Diagnosis{UnschedulablePlugins: other}})
		fronted.comeBack(logger, info, status, nil)
	}
	return tried
}

// TestAPodWhoseCycleFailedWaitsOutsideOfTheQueue: as often as that happens, and counted as the queue counts it. One that is nominated,
// that is another's by now, or that a turn asks for, stays.
func TestAPodWhoseCycleFailedWaitsOutsideOfTheQueue(t *testing.T) {
	schedulermetrics.Register()
	ctx, logger := t.Context(), klog.Background()
	rejected := schedulermetrics.UnschedulableReason("Other", batch)
	value := func() float64 {
		v, err := testutil.GetGaugeMetricValue(rejected)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	refuse := func(t *testing.T, q *prequeue, g *gate, nominating *fwk.NominatingInfo, meanwhile func(*corev1.Pod)) {
		t.Helper()
		entity, err := q.Pop(logger)
		if err != nil {
			t.Fatal(err)
		}
		info := entity.(*framework.QueuedPodInfo)
		q.resume(info)
		g.open[info.Pod.UID] = false
		back := info.DeepCopy()
		back.UnschedulablePlugins = sets.New("Other")
		if err := q.AddUnschedulablePodIfNotPresent(logger, back, q.SchedulingCycle()); err != nil {
			t.Fatal(err)
		}
		meanwhile(info.Pod)
		status := fwk.NewStatus(fwk.Unschedulable).WithError(&framework.FitError{Diagnosis: framework.Diagnosis{UnschedulablePlugins: back.UnschedulablePlugins}})
		q.comeBack(logger, info, status, nominating)
	}
	for name, tc := range map[string]struct {
		nominating *fwk.NominatingInfo
		meanwhile  func(*prequeue, *gate, *corev1.Pod)
		outside    bool
	}{
		"it waits outside":   {outside: true},
		"it is nominated":    {nominating: &fwk.NominatingInfo{NominatedNodeName: "n", NominatingMode: fwk.ModeOverride}},
		"a turn asks for it": {meanwhile: func(_ *prequeue, g *gate, p *corev1.Pod) { g.open[p.UID] = true }},
		"it is gone":         {meanwhile: func(l *prequeue, _ *gate, p *corev1.Pod) { l.Delete(logger, p) }},
		"it was replaced": {meanwhile: func(l *prequeue, g *gate, p *corev1.Pod) {
			l.Delete(logger, p)
			other := p.DeepCopy()
			other.UID = "other"
			g.open[other.UID] = true
			l.Add(ctx, other)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := &gate{open: map[types.UID]bool{"p": true}}
			_, l := g.queues(ctx)
			none := value()
			var first *time.Time
			l.Add(ctx, newPod("p", "1", batch))
			for round := range 2 {
				refuse(t, l, g, tc.nominating, func(p *corev1.Pod) {
					if tc.meanwhile != nil {
						tc.meanwhile(l, g, p)
					}
				})
				if got := len(l.waiting) == 1; got != tc.outside {
					t.Fatalf("it waits outside: %t, want %t", got, tc.outside)
				}
				if !tc.outside {
					return
				}
				if got := value() - none; got != 1 {
					t.Errorf("%g pods more are counted as refused, want 1", got)
				}
				tried := l.tried["p"]
				if round == 0 {
					first = tried.first
				}
				if tried.count != round+1 || tried.first == nil || tried.first != first {
					t.Errorf("after round %d %d attempts are known, the first at %v, which was at %v", round, tried.count, tried.first, first)
				}
				g.open["p"] = true
				l.Activate(logger, map[string]*corev1.Pod{"ns/p": newPod("p", "1", batch)})
				if got := value() - none; got != 0 || len(l.PodsInActiveQ()) != 1 {
					t.Errorf("once it is activated %g pods more are counted as refused, and %d are active", got, len(l.PodsInActiveQ()))
				}
			}
			l.Delete(logger, newPod("p", "1", batch))
			if len(l.tried)+len(l.waiting) > 0 {
				t.Errorf("of a deleted pod %v and %v are left", l.tried, l.waiting)
			}
		})
	}
}

// BenchmarkBound is what a bound pod costs while others wait: upstream's queue behind a gate, and behind a prequeue.
func BenchmarkBound(b *testing.B) {
	for _, waiting := range []int{1000, 100000} {
		g := &gate{open: map[types.UID]bool{}}
		bare, fronted := g.queues(b.Context())
		for name, q := range map[string]queue.SchedulingQueue{"gate": bare, "prequeue": fronted} {
			for i := range waiting {
				q.Add(b.Context(), newPod(strconv.Itoa(i), "1", batch))
			}
			b.Run(fmt.Sprintf("%s/%d", name, waiting), func(b *testing.B) {
				bound := newPod("bound", "1", batch)
				for b.Loop() {
					q.MoveAllToActiveOrBackoffQueue(klog.Background(), framework.EventAssignedPodAdd, nil, bound, nil)
				}
			})
		}
	}
}
