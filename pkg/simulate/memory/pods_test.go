// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory/fakes"
)

func binding(name, node string) *corev1.Binding {
	return &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
}

func TestABindingGivesAPodItsNodeAndTheWatchTellsIt(t *testing.T) {
	api := newAPI(t, pod("a").Obj())
	w := watchPods(t, api, metav1.ListOptions{FieldSelector: "spec.nodeName=n1"})
	check(t, fakes.Kube(api).CoreV1().Pods("team").Bind(t.Context(), binding("a", "n1"), metav1.CreateOptions{}))
	if got := next(t, w); got != "ADDED a" {
		t.Errorf("got %s", got)
	}
	p, err := fakes.Kube(api).CoreV1().Pods("team").Get(t.Context(), "a", metav1.GetOptions{})
	check(t, err)
	want := []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon)}}
	if diff := cmp.Diff(want, p.Status.Conditions); diff != "" {
		t.Errorf("conditions (-want,+got)\n%s", diff)
	}
	if diff := cmp.Diff([]types.UID{p.UID}, api.Bound(0)); diff != "" {
		t.Errorf("bound pods (-want,+got)\n%s", diff)
	}
}

func TestSomeBindingsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		pod     *corev1.Pod
		binding *corev1.Binding
		refused func(error) bool
	}{
		"of a pod that has a node":       {pod("a").Node("n2").Obj(), binding("a", "n1"), apierrors.IsConflict},
		"of a pod that terminates":       {pod("a").Terminating().Obj(), binding("a", "n1"), apierrors.IsConflict},
		"of a pod with scheduling gates": {pod("a").SchedulingGates([]string{"wait"}).Obj(), binding("a", "n1"), apierrors.IsConflict},
		"of a pod that is not there":     {pod("a").Obj(), binding("b", "n1"), apierrors.IsNotFound},
		"of a pod with another UID": {pod("a").Obj(), func() *corev1.Binding {
			b := binding("a", "n1")
			b.UID = "other"
			return b
		}(), apierrors.IsConflict},
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPI(t, tc.pod)
			err := fakes.Kube(api).CoreV1().Pods("team").Bind(t.Context(), tc.binding, metav1.CreateOptions{})
			if !tc.refused(err) || len(api.Bound(0)) > 0 {
				t.Errorf("got %v, bound are %v", err, api.Bound(0))
			}
		})
	}
}

// state describes what became of a pod: gone, terminating or there.
func state(t *testing.T, api *memory.API, name string) string {
	t.Helper()
	p, err := fakes.Kube(api).CoreV1().Pods("team").Get(t.Context(), name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "gone"
	case err != nil:
		t.Fatal(err)
	case p.DeletionTimestamp != nil:
		return "terminating"
	}
	return "there"
}

func TestPodsOnNodesTerminateBeforeTheyAreGone(t *testing.T) {
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		grace *int64
		want  string
	}{
		"a pod that waits is gone at once":           {pod: pod("a").Obj(), want: "gone"},
		"a pod on a node terminates":                 {pod: pod("a").Node("n1").Phase(corev1.PodRunning).Obj(), want: "terminating"},
		"a pod that has finished is gone at once":    {pod: pod("a").Node("n1").Phase(corev1.PodFailed).Obj(), want: "gone"},
		"a pod without a grace period is gone, too":  {pod: pod("a").Node("n1").Phase(corev1.PodRunning).Obj(), grace: new(int64(0)), want: "gone"},
		"a pod that terminates goes on terminating":  {pod: pod("a").Node("n1").Phase(corev1.PodRunning).Terminating().Obj(), want: "terminating"},
		"a terminating pod can be deleted with none": {pod: pod("a").Node("n1").Phase(corev1.PodRunning).Terminating().Obj(), grace: new(int64(0)), want: "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPI(t, tc.pod)
			check(t, fakes.Kube(api).CoreV1().Pods("team").Delete(t.Context(), "a", metav1.DeleteOptions{GracePeriodSeconds: tc.grace}))
			if got := state(t, api, "a"); got != tc.want {
				t.Errorf("the pod is %s, want %s", got, tc.want)
			}
			if got := len(api.Disruptions(0)); got != 1 {
				t.Errorf("%d disruptions, want 1", got)
			}
		})
	}
}

func TestAKubeletRemovesWhatTerminates(t *testing.T) {
	api := newAPI(t, pod("a").Node("n1").Phase(corev1.PodRunning).Obj())
	client := fakes.Kube(api).CoreV1().Pods("team")
	check(t, client.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	check(t, client.Delete(t.Context(), "a", metav1.DeleteOptions{}))
	check(t, api.Remove(memory.Pods, "team", "a"))
	if got := state(t, api, "a"); got != "gone" {
		t.Errorf("the pod is %s, want gone", got)
	}
	if got := api.Disruptions(0); len(got) != 1 || got[0].DeletionTimestamp != nil {
		t.Errorf("disruptions are %v, want the pod once, as it was before", got)
	}
	if err := api.Remove(memory.Pods, "team", "a"); !apierrors.IsNotFound(err) {
		t.Errorf("removing it again: %v", err)
	}
}

func budget(allowed int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "budget"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed},
	}
}

func TestEvictionsAreBoundByBudgets(t *testing.T) {
	for name, tc := range map[string]struct {
		pod     *corev1.Pod
		allowed int32
		want    string
	}{
		"a pod without a budget terminates":                 {pod("a").Node("n1").Phase(corev1.PodRunning).Obj(), 0, "terminating"},
		"a pod whose budget allows it terminates":           {pod("a").Node("n1").Label("app", "web").Phase(corev1.PodRunning).Obj(), 1, "terminating"},
		"a pod whose budget is used up stays":               {pod("a").Node("n1").Label("app", "web").Phase(corev1.PodRunning).Obj(), 0, "there"},
		"a pod that does not run yet may always be evicted": {pod("a").Label("app", "web").Phase(corev1.PodPending).Obj(), 0, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPI(t, tc.pod, budget(tc.allowed))
			err := fakes.Kube(api).PolicyV1().Evictions("team").Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a"}})
			if (err != nil) != (tc.want == "there") || err != nil && !apierrors.IsTooManyRequests(err) {
				t.Errorf("got %v", err)
			}
			if got := state(t, api, "a"); got != tc.want {
				t.Errorf("the pod is %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAnEvictedPodSaysSo(t *testing.T) {
	api := newAPI(t, pod("a").Node("n1").Phase(corev1.PodRunning).Obj())
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a"}}
	check(t, fakes.Kube(api).CoreV1().Pods("team").EvictV1(t.Context(), eviction))
	p, err := fakes.Kube(api).CoreV1().Pods("team").Get(t.Context(), "a", metav1.GetOptions{})
	check(t, err)
	if len(p.Status.Conditions) != 1 || p.Status.Conditions[0].Type != corev1.DisruptionTarget {
		t.Errorf("conditions are %v, want DisruptionTarget", p.Status.Conditions)
	}
	eviction.DeleteOptions = metav1.NewPreconditionDeleteOptions("other")
	if err := fakes.Kube(api).CoreV1().Pods("team").EvictV1(t.Context(), eviction); !apierrors.IsConflict(err) {
		t.Errorf("evicting another UID: %v, want a conflict", err)
	}
	eviction.Name = "b"
	if err := fakes.Kube(api).CoreV1().Pods("team").EvictV1(t.Context(), eviction); !apierrors.IsNotFound(err) {
		t.Errorf("evicting a pod that is not there: %v", err)
	}
}
