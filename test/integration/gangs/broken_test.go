// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestAHalfGangGivesBackWhatItHolds: the API server binds one member of a gang, and refuses to bind the other. The scheduler is restarted
// meanwhile, and another gang waits for the room. Once the first gang is released, the other starts; when its members can be bound, and
// have been created anew, it starts as well.
func TestAHalfGangGivesBackWhatItHolds(t *testing.T) {
	t.Parallel()
	const timeout = 5 * time.Second
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=2,memory=4Gi"}})
	denyBindings(t, e, env.Namespace, "half-1", `object.metadata.name != "half-1"`)
	quick := env.Queues(func(args *config.BatchQueueArgs) { args.HalfTimeout.Duration = timeout })
	stop := e.StartSchedulerWith(t, "", quick)
	half := env.Gang{Name: "half", Min: 2, Size: 2, CPU: "1"}
	e.Create(t, half)
	env.Eventually(t, soon, e.AllBound(t, half.Name, 1))
	stop()
	began := time.Now()
	e.StartSchedulerWith(t, "", quick)
	others := env.Gang{Name: "others", Min: 2, Size: 2, CPU: "1"}
	e.Create(t, others)
	env.Eventually(t, timeout+30*time.Second, e.AllBound(t, others.Name, 2))
	if waited := time.Since(began); waited < timeout {
		t.Errorf("it was released after %s, before %s", waited, timeout)
	}
	env.Eventually(t, soon, func() string {
		if members := e.Members(t, half.Name); len(members) != 1 || members[0].Name != "half-1" {
			return fmt.Sprintf("%d members of gang %s are there, want half-1 only", len(members), half.Name)
		}
		return ""
	})
	env.Eventually(t, soon, func() string {
		list, err := e.Kube.CoreV1().Events(env.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=half,reason=GangReleased"})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range list.Items {
			if strings.Contains(event.Message, "was never whole: 1 of 2 members have nodes") {
				return ""
			}
		}
		return fmt.Sprintf("%d events tell that the gang was released, none why", len(list.Items))
	})

	allowBindings(t, e, env.Namespace)
	e.Delete(t, others.Name)
	e.CreatePods(t, half.Member(0))
	env.Eventually(t, 30*time.Second, e.AllBound(t, half.Name, 2))
}

// TestAGangThatLostMembersYields: one of three members is deleted, and does not come back. A gang of higher priority needs the room of the
// two others. It gets that of both, once the gang has been broken for its time and not before. A gang that nobody takes room from is
// released if that is wanted.
func TestAGangThatLostMembersYields(t *testing.T) {
	t.Parallel()
	const timeout = 5 * time.Second
	const conf = "actions: \"enqueue, allocate, preempt\"\ntiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]}]\n"
	for name, release := range map[string]bool{"to who needs the room": false, "for nobody's sake": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=4,memory=4Gi"}})
			const urgent = "urgent"
			e.PriorityClass(t, urgent, 1000)
			e.StartSchedulerWith(t, conf, env.Queues(func(args *config.BatchQueueArgs) {
				args.BrokenTimeout.Duration, args.ReleaseLost = timeout, release
			}))
			lost := env.Gang{Name: "lost", Min: 3, Size: 3, CPU: "1"}
			e.Create(t, lost)
			env.Eventually(t, soon, e.AllBound(t, lost.Name, 3))
			env.Eventually(t, soon, func() string { return running(e.Members(t, lost.Name), 3) })
			if !release {
				e.Create(t, env.Gang{
					Name: "taker", Min: 3, Size: 3, CPU: "1",
					Pod:   func(_ int, p *corev1.Pod) { p.Spec.PriorityClassName = urgent },
					Group: func(g *volcano.PodGroup) { g.Spec.PriorityClassName = urgent },
				})
			}
			began := time.Now()
			e.DeletePods(t.Context(), t, lost.Member(2))
			env.Eventually(t, timeout+30*time.Second, func() string {
				if left := e.Members(t, lost.Name); len(left) > 0 {
					return fmt.Sprintf("%d members of gang lost are left", len(left))
				}
				return ""
			})
			if took := time.Since(began); took < timeout {
				t.Errorf("the last member went after %s, before %s", took, timeout)
			}
			if !release {
				env.Eventually(t, soon, e.AllBound(t, "taker", 3))
			}
			env.Eventually(t, soon, func() string {
				list, err := e.Kube.CoreV1().Events(env.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=lost,reason=GangBroken"})
				if err != nil {
					t.Fatal(err)
				}
				for _, event := range list.Items {
					if strings.Contains(event.Message, "2 of 3 have nodes") {
						return ""
					}
				}
				return fmt.Sprintf("%d events warn of the broken gang, none how", len(list.Items))
			})
		})
	}
}

// running says that not all of so many pods run; empty when they do.
func running(pods []*corev1.Pod, want int) string {
	n := 0
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning {
			n++
		}
	}
	if n == want {
		return ""
	}
	return fmt.Sprintf("%d pods run, want %d", n, want)
}

// said says that no event of a reason on a PodGroup has a text; empty when one has.
func said(t *testing.T, e *env.Env, group, reason, text string) string {
	t.Helper()
	list, err := e.Kube.CoreV1().Events(env.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + group + ",reason=" + reason})
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range list.Items {
		if strings.Contains(event.Message, text) {
			return ""
		}
	}
	return fmt.Sprintf("%d events %s on PodGroup %s, none says %q", len(list.Items), reason, group, text)
}

// annotate sets an annotation of a PodGroup.
func annotate(t *testing.T, e *env.Env, group, key, value string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	if _, err := e.Volcano.SchedulingV1beta1().PodGroups(env.Namespace).Patch(t.Context(), group, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestAPodGroupSaysHowLongItsGangMayBeBroken: the scheduler's times are long. What an annotation says that cannot be used is told; once it is
// mended it counts at once.
func TestAPodGroupSaysHowLongItsGangMayBeBroken(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=4,memory=4Gi"}})
	e.StartScheduler(t)
	lost := env.Gang{Name: "lost", Min: 3, Size: 3, CPU: "1", Group: func(g *volcano.PodGroup) {
		g.Annotations = map[string]string{model.BrokenTimeoutAnnotation: "soon", model.ReleaseLostAnnotation: "true"}
	}}
	e.Create(t, lost)
	env.Eventually(t, soon, e.AllBound(t, lost.Name, 3))
	env.Eventually(t, soon, func() string { return running(e.Members(t, lost.Name), 3) })
	env.Eventually(t, soon, func() string {
		return said(t, e, lost.Name, "MalformedAnnotation", `annotation caldera.dev/broken-timeout of PodGroup `)
	})
	e.DeletePods(t.Context(), t, lost.Member(2))
	env.Eventually(t, soon, func() string { return running(e.Members(t, lost.Name), 2) })
	env.Consistently(t, 3*time.Second, func() string { return running(e.Members(t, lost.Name), 2) })
	annotate(t, e, lost.Name, model.BrokenTimeoutAnnotation, "4s")
	env.Eventually(t, soon, func() string {
		if left := e.Members(t, lost.Name); len(left) > 0 {
			return fmt.Sprintf("%d members of gang lost are left", len(left))
		}
		return ""
	})
	env.Eventually(t, soon, func() string { return said(t, e, lost.Name, "GangReleased", "2 of 3 have nodes") })
}

// TestBrokenGangsAreCompletedOneAtATime: two gangs have lost two members each, and there is room for one. The older one grows by it, the
// younger one not; once the older one is whole again it says for how long it was broken.
func TestBrokenGangsAreCompletedOneAtATime(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=6,memory=4Gi"}})
	e.StartScheduler(t)
	gangs := []env.Gang{{Name: "older", Min: 3, Size: 3, CPU: "1"}, {Name: "younger", Min: 3, Size: 3, CPU: "1"}}
	for i, gang := range gangs {
		if i > 0 {
			env.NextSecond()
		}
		e.Create(t, gang)
		env.Eventually(t, soon, e.AllBound(t, gang.Name, 3))
		env.Eventually(t, soon, func() string { return running(e.Members(t, gang.Name), 3) })
	}
	for _, gang := range gangs {
		e.DeletePods(t.Context(), t, gang.Member(1), gang.Member(2))
	}
	for _, gang := range gangs {
		env.Eventually(t, soon, func() string { return running(e.Members(t, gang.Name), 1) })
	}
	// Others hold the four cores that are idle.
	others := env.Gang{Name: "others", Min: 4, Size: 4, CPU: "1"}
	e.Create(t, others)
	env.Eventually(t, soon, e.AllBound(t, others.Name, 4))
	// The younger one's pods are there first.
	for _, gang := range []env.Gang{gangs[1], gangs[0]} {
		e.CreatePods(t, gang.Member(1), gang.Member(2))
	}
	for _, gang := range gangs {
		env.Consistently(t, time.Second, e.AllBound(t, gang.Name, 1))
	}
	e.DeletePods(t.Context(), t, others.Member(3))
	env.Eventually(t, soon, e.AllBound(t, "older", 2))
	env.Consistently(t, 2*time.Second, e.AllBound(t, "younger", 1))
	e.DeletePods(t.Context(), t, others.Member(2))
	env.Eventually(t, soon, e.AllBound(t, "older", 3))
	env.Eventually(t, soon, func() string { return said(t, e, "older", "GangWhole", "it was broken for") })
	env.Consistently(t, time.Second, e.AllBound(t, "younger", 1))
	e.DeletePods(t.Context(), t, others.Member(0), others.Member(1))
	env.Eventually(t, soon, e.AllBound(t, "younger", 3))
}

// TestABrokenGangIsCompletedBeyondWhatItsQueueDeserves: its queue is due half of the cluster and holds that, its two members included. The
// third one starts all the same when it is created anew; a pod of another job of the queue does not.
func TestABrokenGangIsCompletedBeyondWhatItsQueueDeserves(t *testing.T) {
	t.Parallel()
	const conf = "actions: \"enqueue, allocate\"\ntiers: [{plugins: [{name: priority}, {name: gang}, {name: proportion}, {name: predicates}, {name: nodeorder}]}]\n"
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=8,memory=8Gi"}})
	e.StartSchedulerWith(t, conf)
	for _, name := range []string{"ours", "theirs"} {
		queue := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: volcano.QueueSpec{Weight: 1}}
		if _, err := e.Volcano.SchedulingV1beta1().Queues().Create(t.Context(), queue, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	lost := env.Gang{Name: "lost", Queue: "ours", Min: 3, Size: 3, CPU: "1"}
	e.Create(t, lost)
	env.Eventually(t, soon, e.AllBound(t, lost.Name, 3))
	env.Eventually(t, soon, func() string { return running(e.Members(t, lost.Name), 3) })
	e.DeletePods(t.Context(), t, lost.Member(2))
	env.Eventually(t, soon, func() string { return running(e.Members(t, lost.Name), 2) })
	// Another job takes what its queue is due besides, the other queue three of its four cores. Both ask for more.
	beside := env.Gang{Name: "beside", Queue: "ours", Min: 1, Size: 2, CPU: "1"}
	e.Create(t, beside)
	env.Eventually(t, soon, e.AllBound(t, beside.Name, 2))
	e.Create(t, env.Gang{Name: "theirs", Queue: "theirs", Min: 1, Size: 2, CPU: "3"})
	env.Eventually(t, soon, e.AllBound(t, "theirs", 1))
	e.CreatePods(t, beside.Member(2))
	env.Consistently(t, time.Second, e.AllBound(t, "beside", 2))
	e.CreatePods(t, lost.Member(2))
	env.Eventually(t, soon, e.AllBound(t, lost.Name, 3))
	env.Consistently(t, time.Second, e.AllBound(t, "beside", 2))
}

// TestOneOfTwoHalfGangsGivesWay: somebody has bound two members of each of two gangs of four, and the cluster is full. The younger one goes as
// a whole, though no policy of the tiers would choose it, and the older one starts long before either would be released. Where no action evicts
// both stay.
func TestOneOfTwoHalfGangsGivesWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		actions string
		older   int
	}{
		"an action evicts": {actions: "enqueue, allocate, preempt", older: 4},
		"none does":        {actions: "enqueue, allocate", older: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := fmt.Sprintf("actions: %q\ntiers: [{plugins: [{name: priority}, {name: gang}, {name: predicates}, {name: nodeorder}]}]\n", c.actions)
			e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=4,memory=4Gi"}})
			nodes, err := e.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for i, gang := range []env.Gang{{Name: "older", Min: 4, Size: 4, CPU: "1"}, {Name: "younger", Min: 4, Size: 4, CPU: "1"}} {
				if i > 0 {
					env.NextSecond()
				}
				e.Create(t, gang)
				for k := range 2 {
					bind(t, e, gang.Member(k), nodes.Items[0].Name)
				}
				env.Eventually(t, soon, func() string { return running(e.Members(t, gang.Name), 2) })
			}
			e.StartSchedulerWith(t, conf, env.Queues(func(args *config.BatchQueueArgs) { args.HalfTimeout.Duration = time.Hour }))
			env.Eventually(t, soon, e.AllBound(t, "older", c.older))
			if c.older == 4 {
				env.Eventually(t, soon, func() string {
					return said(t, e, "younger", "Evict", "because of complete: its gang is broken, and so is PodGroup default/older in queue default")
				})
				env.Eventually(t, soon, e.AllBound(t, "younger", 0))
			}
			env.Consistently(t, 2*time.Second, e.AllBound(t, "older", c.older))
		})
	}
}

// bind places a pod as another scheduler would.
func bind(t *testing.T, e *env.Env, pod *corev1.Pod, node string) {
	t.Helper()
	err := e.Kube.CoreV1().Pods(pod.Namespace).Bind(t.Context(), &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
