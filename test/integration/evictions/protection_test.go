// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// annotated has pods carry an annotation.
func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

// labelled has pods carry a label.
func labelled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

// classed gives pods a priority class.
func classed(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.PriorityClassName = name }
}

// inNamespace moves a job into another namespace.
func inNamespace(namespace string, g env.Gang) env.Gang {
	pod := g.Pod
	g.Group = func(group *volcano.PodGroup) { group.Namespace = namespace }
	g.Pod = func(i int, p *corev1.Pod) {
		pod(i, p)
		p.Namespace = namespace
	}
	return g
}

// budget creates a disruption budget by which so many pods have to run, and waits until it has a status.
func (s *scene) budget(name string, selector *metav1.LabelSelector, least int) {
	s.t.Helper()
	budgets := s.Kube.PolicyV1().PodDisruptionBudgets(env.Namespace)
	_, err := budgets.Create(s.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(int32(least))), Selector: selector},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	env.Eventually(s.t, patience, func() string {
		b, err := budgets.Get(s.t.Context(), name, metav1.GetOptions{})
		if err != nil || b.Status.ObservedGeneration == 0 {
			return fmt.Sprintf("budget %s has no status (%v)", name, err)
		}
		return ""
	})
}

// TestProtectedPodsStay fills the cluster with pods that something protects, and lets a gang arrive that is due half of
// it: nobody is evicted, and the gang's PodGroup says what protects them.
func TestProtectedPodsStay(t *testing.T) {
	st := open(t, 2)
	standIn := job("held", "a", 1, 8)
	for _, c := range []struct {
		name string
		held env.Gang
		// kept: the queue may not be reclaimed from.
		kept bool
		then func(*scene)
		// says is what the gang's PodGroup tells.
		says []string
	}{
		{name: "of the system's namespace", held: inNamespace(metav1.NamespaceSystem, standIn), says: []string{"reclaim: ", "8 because it is critical to the cluster"}},
		{name: "system-cluster-critical", held: job("held", "a", 1, 8, classed("system-cluster-critical")), says: []string{"reclaim: ", "8 because it is critical to the cluster"}},
		{name: "system-node-critical", held: job("held", "a", 1, 8, classed("system-node-critical")), says: []string{"reclaim: ", "8 because it is critical to the cluster"}},
		{
			name: "by a budget that allows nothing", held: job("held", "a", 1, 8, labelled("app", "web")),
			then: func(s *scene) {
				s.budget("web", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, 8)
			},
			says: []string{"reclaim: ", "8 because protected by PodDisruptionBudget default/web"},
		},
		{
			name: "by a budget for everybody", held: standIn,
			then: func(s *scene) { s.budget("all", &metav1.LabelSelector{}, 8) },
			says: []string{"reclaim: ", "8 because protected by PodDisruptionBudget default/all"},
		},
		{name: "just scheduled", held: job("held", "a", 1, 8, labelled(model.CooldownKey, "10m")), says: []string{"reclaim: ", "8 because it was scheduled a short while ago"}},
		{name: "said to stay", held: job("held", "a", 1, 8, annotated(model.PreemptableKey, "false")), says: []string{"reclaim: ", "8 because it is not to be evicted (volcano.sh/preemptable)"}},
		{name: "by their queue", held: standIn, kept: true, says: []string{"reclaim: the queues that hold more than they deserve are not reclaimable"}},
		{name: "half of them", held: env.Gang{Name: "held", Queue: "a", Min: 1, Size: 8, CPU: "1", Pod: func(i int, p *corev1.Pod) {
			if i < 5 {
				p.Annotations[model.PreemptableKey] = "false"
			}
		}}, says: []string{"reclaim: ", "5 because it is not to be evicted (volcano.sh/preemptable)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := st.play(t, byShares)
			s.queues(map[string]queueSpec{"a": {weight: 1, kept: c.kept}, "b": {weight: 1}})
			s.fill(c.held)
			if c.then != nil {
				c.then(s)
			}
			s.Create(t, job("gang", "b", 4, 4))
			s.refused("gang", append(c.says, "NotEnoughResources")...)
		})
	}
}

// giveTime has a queue give its pods a time before they may be evicted.
func (s *scene) giveTime(queue, least string) {
	s.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %q}}}`, model.MinRuntimeAnnotation, least)
	if _, err := s.Volcano.SchedulingV1beta1().Queues().Patch(s.t.Context(), queue, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// TestTimeIsGiven: by a queue to its pods, until it gives less, and by a job that is patient to all others, until it is old enough.
func TestTimeIsGiven(t *testing.T) {
	st := open(t, 2)
	patient := job("gang", "b", 4, 4)
	patient.Group = func(group *volcano.PodGroup) {
		group.Annotations = map[string]string{model.PreemptionDelayAnnotation: "30s"}
	}
	for _, c := range []struct {
		name  string
		given string
		gang  env.Gang
		says  string
		then  func(*scene)
	}{
		{
			"by a queue", "10m", job("gang", "b", 4, 4), "8 because it has not run for as long as its queue gives it (caldera.dev/min-runtime)",
			func(s *scene) { s.giveTime("a", "1s") },
		},
		{"by a patient job", "0s", patient, "others are evicted for it from ", func(*scene) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := st.play(t, byShares)
			s.queues(map[string]queueSpec{"a": {weight: 1}, "b": {weight: 1}})
			s.giveTime("a", c.given)
			s.fill(job("held", "a", 1, 8))
			s.Create(t, c.gang)
			s.refused("gang", c.says)
			c.then(s)
			s.holds(map[string]int{"gang": 4, "held": 4})
			s.evicted(map[string]int{"held": 4}, calm)
		})
	}
}

// TestWhatWasHeldCounts: a queue that holds no more than the other one, and no less, has to give up most once it is told to have held all of the cluster
// for long. The scheduler writes down itself what it held. Its successor is told more, as if much time had passed.
func TestWhatWasHeldCounts(t *testing.T) {
	s := single(t, 2, strings.Replace(byShares, "{name: proportion}", "{name: proportion, arguments: {usageHalfLife: 1m, usageWeight: 2}}", 1))
	s.queues(map[string]queueSpec{"a": {weight: 1}, "b": {weight: 1}})
	s.fill(job("held", "a", 1, 8))
	s.Create(t, job("gang", "b", 6, 6))
	s.refused("gang", "cpu: 0 held, 6 asked for, 4 deserved")
	queues := s.Volcano.SchedulingV1beta1().Queues()
	env.Eventually(t, patience, func() string {
		queue, err := queues.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if recent, err := model.RecentOf(queue.Annotations); err != nil || recent.Average.Get(corev1.ResourceCPU) <= 0 {
			return fmt.Sprintf("queue a is said to have held %v: %v", recent, err)
		}
		return ""
	})
	s.stop()
	long, err := model.Recent{At: time.Now(), Average: resource.Portion{{Name: corev1.ResourceCPU, Value: 8000}}}.Annotation()
	if err != nil {
		t.Fatal(err)
	}
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %q}}}`, model.RecentUseAnnotation, long)
	if _, err := queues.Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.holds(map[string]int{"gang": 6, "held": 2})
	s.evicted(map[string]int{"held": 6}, calm)
}

// TestWhatDoesNotProtect checks that pods go that something seems to protect and does not.
func TestWhatDoesNotProtect(t *testing.T) {
	st := open(t, 2)
	for _, c := range []struct {
		name string
		held env.Gang
		then func(*scene)
	}{
		{
			name: "a budget for nobody", held: job("held", "a", 1, 8),
			then: func(s *scene) {
				s.budget("nobody", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "nobody"}}, 8)
			},
		},
		{name: "a cooldown that cannot be read", held: job("held", "a", 1, 8, annotated(model.CooldownKey, "soon"))},
		{name: "a cooldown that is over", held: job("held", "a", 1, 8, labelled(model.CooldownKey, "1s"))},
		{
			name: "a budget that allows what is needed", held: job("held", "a", 1, 8),
			then: func(s *scene) { s.budget("four", &metav1.LabelSelector{}, 4) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := st.play(t, byShares)
			s.queues(map[string]queueSpec{"a": {weight: 1}, "b": {weight: 1}})
			s.fill(c.held)
			if c.then != nil {
				c.then(s)
			}
			s.Create(t, job("gang", "b", 4, 4))
			s.holds(map[string]int{"gang": 4, "held": 4})
			s.evicted(map[string]int{"held": 4}, calm)
		})
	}
}
