// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = apiresource.MustParse(pairs[i+1])
	}
	return l
}

func TestExceeding(t *testing.T) {
	for name, tc := range map[string]struct {
		need, has corev1.ResourceList
		want      string
	}{
		"everything fits":                          {list("cpu", "2"), list("cpu", "2"), ""},
		"a missing resource counts as zero":        {list("nvidia.com/gpu", "8"), list("cpu", "2"), "nvidia.com/gpu=8"},
		"only what is short is named":              {list("cpu", "3", "memory", "1Gi"), list("cpu", "2", "memory", "2Gi"), "cpu=1"},
		"asking for nothing never exceeds":         {list("cpu", "0"), list(), ""},
		"a negative remainder does not add to it":  {list("cpu", "1"), list("cpu", "-4"), "cpu=1"},
		"fractions of a core are kept in millis":   {list("cpu", "1500m"), list("cpu", "1"), "cpu=500m"},
		"memory is written with a binary suffix":   {list("memory", "3Gi"), list("memory", "1Gi"), "memory=2Gi"},
		"several short resources, in name order":   {list("memory", "2Gi", "cpu", "2"), list(), "cpu=2 memory=2Gi"},
		"resources that nobody asks for are quiet": {list(), list("cpu", "2"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := resource.FromList(tc.need).Exceeding(resource.FromList(tc.has)).String()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestOfPodCountsInitContainersSidecarsAndOverhead(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	container := func(name, cpu string) corev1.Container {
		return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: list("cpu", cpu)}}
	}
	sidecar := container("sidecar", "250m")
	sidecar.RestartPolicy = &always
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{sidecar, container("setup", "3")},
		Containers:     []corev1.Container{container("a", "1"), container("b", "1")},
		Overhead:       list("cpu", "100m"),
	}}
	if got, want := resource.OfPod(pod).String(), "cpu=3350m pods=1"; got != want {
		t.Errorf("OfPod = %s, want %s", got, want)
	}
	if empty := resource.OfPod(&corev1.Pod{}); !empty.BestEffort() || empty.Get(corev1.ResourcePods) != 1 {
		t.Errorf("a pod without requests = %s, want best-effort with one pod slot", empty)
	}
}

// TestOfPodHeedsTheStatus: leaving out the status where it cannot say anything changes no request.
func TestOfPodHeedsTheStatus(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		pod := &corev1.Pod{}
		var statuses []corev1.ContainerStatus
		for i := range rapid.IntRange(1, 3).Draw(r, "containers") {
			name := fmt.Sprintf("c%d", i)
			draw := func(label string) corev1.ResourceList {
				return list("cpu", fmt.Sprint(rapid.IntRange(1, 9).Draw(r, label)))
			}
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: draw("spec")}})
			status := corev1.ContainerStatus{Name: name}
			if rapid.Bool().Draw(r, "allocated") {
				status.AllocatedResources = draw("allocated cpu")
			}
			if rapid.Bool().Draw(r, "actuated") {
				status.Resources = &corev1.ResourceRequirements{Requests: draw("actuated cpu")}
			}
			statuses = append(statuses, status)
		}
		if rapid.Bool().Draw(r, "started") {
			pod.Status.ContainerStatuses = statuses
		}
		if rapid.Bool().Draw(r, "resize infeasible") {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible}}
		}
		upstream := podresource.PodRequests(pod, podresource.PodResourcesOptions{UseStatusResources: true})
		if got, want := resource.OfPod(pod).Get("cpu"), upstream.Cpu().MilliValue(); got != want {
			r.Errorf("the pod asks for %dm, upstream says %dm", got, want)
		}
	})
}

func BenchmarkOfPod(b *testing.B) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu", "1", "memory", "1Gi")}}}}}
	b.ReportAllocs()
	for b.Loop() {
		resource.OfPod(pod)
	}
}

func vectors() *rapid.Generator[resource.Vector] {
	return rapid.Custom(func(t *rapid.T) resource.Vector {
		var v resource.Vector
		for _, n := range rapid.SliceOfNDistinct(rapid.SampledFrom([]corev1.ResourceName{"cpu", "memory", "pods", "x/gpu", "y/fpga"}), 0, 5, rapid.ID).Draw(t, "names") {
			v.Add(resource.Vector{{Name: n, Value: rapid.Int64Range(-1000, 1000).Draw(t, "value")}})
		}
		return v
	})
}

func TestAddAndSubAreInverse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := vectors().Draw(t, "a"), vectors().Draw(t, "b")
		got := a.Clone()
		got.Add(b)
		for _, name := range []corev1.ResourceName{"cpu", "memory", "pods", "x/gpu", "y/fpga"} {
			if got.Get(name) != a.Get(name)+b.Get(name) {
				t.Fatalf("sum of %s = %d, want %d", name, got.Get(name), a.Get(name)+b.Get(name))
			}
		}
		got.Sub(b)
		for _, amount := range got {
			if amount.Value != a.Get(amount.Name) {
				t.Fatalf("(a+b)-b differs from a in %s", amount.Name)
			}
		}
	})
}

func TestNothingExceedsItsOwnMaximum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := vectors().Draw(t, "a"), vectors().Draw(t, "b")
		ceiling := a.Clone()
		ceiling.Max(b)
		if over := a.Exceeding(ceiling); over != nil {
			t.Fatalf("%s exceeds max(%s, %s) by %s", a, a, b, over)
		}
	})
}

// TestOfPodIsWhatTheSchedulerCounts: the short way for pods of one container leads where upstream's does.
func TestOfPodIsWhatTheSchedulerCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := func(what string) corev1.ResourceList {
			if rapid.Bool().Draw(t, "no "+what) {
				return nil
			}
			drawn := rapid.MapOfN(rapid.SampledFrom([]corev1.ResourceName{"cpu", "memory", "nvidia.com/gpu"}), rapid.SampledFrom([]string{"0", "1", "1500m", "2Gi", "5Ei"}), 0, 3)
			l := corev1.ResourceList{}
			for name, amount := range drawn.Draw(t, what) {
				l[name] = apiresource.MustParse(amount)
			}
			return l
		}
		containers := func(what string, most int) []corev1.Container {
			var drawn []corev1.Container
			for i := range rapid.IntRange(0, most).Draw(t, what) {
				drawn = append(drawn, corev1.Container{Name: fmt.Sprintf("%s-%d", what, i), Resources: corev1.ResourceRequirements{Requests: amounts("requests")}})
			}
			return drawn
		}
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: containers("work", 2), InitContainers: containers("init", 1), Overhead: amounts("overhead")}}
		if requests := amounts("pod's"); requests != nil {
			pod.Spec.Resources = &corev1.ResourceRequirements{Requests: requests}
		}
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			status := corev1.ContainerStatus{Name: c.Name, AllocatedResources: amounts("allocated"), Resources: &corev1.ResourceRequirements{Requests: amounts("actual")}}
			if rapid.Bool().Draw(t, "as asked for") {
				status.AllocatedResources, status.Resources.Requests = c.Resources.Requests, c.Resources.Requests
			}
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
		}
		if rapid.Bool().Draw(t, "infeasible") {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible}}
		}
		want := podresource.PodRequests(pod, podresource.PodResourcesOptions{UseStatusResources: true})
		want[corev1.ResourcePods] = apiresource.MustParse("1")
		if got := resource.OfPod(pod); !resource.FromList(want).AtMost(resource.MostOfPod).Equal(got) {
			t.Errorf("got %s, upstream counts %v", got, want)
		}
	})
}
