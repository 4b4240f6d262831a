// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package lobby

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulermetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
	"pgregory.net/rapid"
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

// queues returns upstream's queue behind a gate, and the same one behind a lobby, too. Only listed pods can be nominated.
func (g *gate) queues(ctx context.Context, listed ...runtime.Object) (bare queue.SchedulingQueue, fronted *lobby) {
	schedulermetrics.Register()
	first := func(a, b fwk.QueuedEntityInfo) bool { return a.GetTimestamp().Before(b.GetTimestamp()) }
	// A plugin that wants to know of bound pods makes the queue look at what is unschedulable.
	hints := queue.QueueingHintMapPerProfile{batch: {framework.EventAssignedPodAdd: {{PluginName: "Other"}}}}
	newQueue := func() queue.SchedulingQueue {
		return queue.NewTestQueueWithObjects(ctx, first, listed, queue.WithQueueingHintMapPerProfile(hints),
			queue.WithPreEnqueuePluginMap(map[string]map[string]fwk.PreEnqueuePlugin{batch: {g.Name(): g}}))
	}
	return newQueue(), newLobby(newQueue(), g.holds, schedulermetrics.NewGatedEntitiesRecorder())
}

func newPod(name, version, scheduler string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name), Labels: map[string]string{"version": version}},
		Spec:       corev1.PodSpec{SchedulerName: scheduler},
	}
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
	if want := "activeQ:1; backoffQ:0; unschedulableEntities:1; 1 wait in the lobby"; summary != want {
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

// TestTheLobbyChangesNothing: whatever happens, the same pods in the same versions are active and pending with a lobby as without.
func TestTheLobbyChangesNothing(t *testing.T) {
	ctx, logger := t.Context(), klog.Background()
	rapid.Check(t, func(t *rapid.T) {
		g := &gate{open: map[types.UID]bool{}}
		bare, fronted := g.queues(ctx)
		known := map[string]*corev1.Pod{}
		both := func(fn func(queue.SchedulingQueue)) { fn(bare); fn(fronted) }
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
				}
			},
			"open or shut": func(t *rapid.T) {
				uid := types.UID(name.Draw(t, "pod"))
				g.open[uid] = !g.open[uid]
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
					t.Fatalf("active pods differ (-without +with a lobby):\n%s", diff)
				}
				want, _ := bare.PendingPods()
				got, _ := fronted.PendingPods()
				if diff := cmp.Diff(seen(want), seen(got)); diff != "" {
					t.Fatalf("pending pods differ (-without +with a lobby):\n%s", diff)
				}
			},
		})
	})
}

// BenchmarkBound is what a bound pod costs while others wait: upstream's queue behind a gate, and behind a lobby.
func BenchmarkBound(b *testing.B) {
	for _, waiting := range []int{1000, 100000} {
		g := &gate{open: map[types.UID]bool{}}
		bare, fronted := g.queues(b.Context())
		for name, q := range map[string]queue.SchedulingQueue{"gate": bare, "lobby": fronted} {
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
