// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// alike says whether two pods are of one class, and of one shape.
type alike struct{ Class, Shape bool }

var (
	same     = alike{Class: true, Shape: true}
	distinct = alike{}
	// shapeOnly: alike for plugins that look at no other pods.
	shapeOnly = alike{Shape: true}
)

func TestClassAndShape(t *testing.T) {
	type options = []func(*corev1.Pod)
	spec := func(change func(*corev1.PodSpec)) func(*corev1.Pod) { return func(p *corev1.Pod) { change(&p.Spec) } }
	container := func(change func(*corev1.Container)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { change(&p.Spec.Containers[0]) }
	}
	spreadBy := func(key string) func(*corev1.Pod) {
		return spec(func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
				LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpExists}}},
			}}
		})
	}
	spreadByKey := func(key string) func(*corev1.Pod) {
		return spec(func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", MatchLabelKeys: []string{key}}}
		})
	}
	term := func(key string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: "1"}}}
	}
	apartFrom := func(key string) func(*corev1.Pod) {
		return spec(func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term(key)},
			}}
		})
	}
	ratherNear := func(key string) func(*corev1.Pod) {
		return spec(func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1, PodAffinityTerm: term(key)}},
			}}
		})
	}
	claimed := func(name string) func(*corev1.Pod) {
		return spec(func(s *corev1.PodSpec) {
			s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
		})
	}
	templated := spec(func(s *corev1.PodSpec) {
		s.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("gpu")}}
	})
	ephemeral := withVolume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}})
	index := "batch.kubernetes.io/job-completion-index"

	for name, tc := range map[string]struct {
		a, b options
		want alike
	}{
		"replicas differ in name and UID": {nil, nil, same},
		"index labels are the identity of a replica": {
			options{labelled(index, "0"), labelled("apps.kubernetes.io/pod-index", "0")},
			options{labelled(index, "1"), labelled("apps.kubernetes.io/pod-index", "1")},
			same,
		},
		"unless a spread constraint selects on one": {
			options{labelled(index, "0"), spreadBy(index)}, options{labelled(index, "1"), spreadBy(index)}, shapeOnly,
		},
		"or names one as a key to match": {
			options{labelled(index, "0"), spreadByKey(index)}, options{labelled(index, "1"), spreadByKey(index)}, shapeOnly,
		},
		"or required anti-affinity does": {
			options{labelled(index, "0"), apartFrom(index)}, options{labelled(index, "1"), apartFrom(index)}, shapeOnly,
		},
		"or preferred affinity does": {
			options{labelled(index, "0"), ratherNear(index)}, options{labelled(index, "1"), ratherNear(index)}, shapeOnly,
		},
		"terms on other labels leave index labels out": {
			options{labelled(index, "0"), apartFrom("app")}, options{labelled(index, "1"), apartFrom("app")}, same,
		},
		"other labels decide what other pods' terms select": {
			options{labelled("app", "x")}, options{labelled("app", "y")}, shapeOnly,
		},
		"a label more": {options{labelled("app", "x")}, nil, shapeOnly},
		"the namespace decides what other pods' terms select": {
			nil, options{func(p *corev1.Pod) { p.Namespace = "other" }}, shapeOnly,
		},
		"annotations are not looked at by nodes": {options{annotated("note", "a")}, options{annotated("note", "b")}, same},
		"nor are roles":                          {options{role("ps")}, options{role("worker")}, same},
		"environment, command and names of containers": {
			options{container(func(c *corev1.Container) {
				c.Name, c.Command, c.Env = "a", []string{"run"}, []corev1.EnvVar{{Name: "RANK", Value: "0"}}
			})},
			options{container(func(c *corev1.Container) {
				c.Name, c.Args, c.Env = "b", []string{"-v"}, []corev1.EnvVar{{Name: "RANK", Value: "1"}}
			})},
			same,
		},
		"hostname and ConfigMaps of a replica": {
			options{spec(func(s *corev1.PodSpec) { s.Hostname = "a-0" }), withVolume(configMap("a-0"))},
			options{spec(func(s *corev1.PodSpec) { s.Hostname = "a-1" }), withVolume(configMap("a-1"))},
			same,
		},
		"requests":                   {options{asking("cpu", "1")}, options{asking("cpu", "2")}, distinct},
		"requests written otherwise": {options{asking("cpu", "1")}, options{asking("cpu", "1000m")}, same},
		"requests of init containers": {
			nil, options{spec(func(s *corev1.PodSpec) {
				s.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amounts("cpu", "1")}}}
			})}, distinct,
		},
		"an init container that goes on running": {
			options{spec(func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{{}} })},
			options{spec(func(s *corev1.PodSpec) {
				s.InitContainers = []corev1.Container{{RestartPolicy: new(corev1.ContainerRestartPolicyAlways)}}
			})},
			distinct,
		},
		"overhead": {nil, options{spec(func(s *corev1.PodSpec) { s.Overhead = amounts("cpu", "1") })}, distinct},
		"requests of the pod as a whole": {
			nil, options{spec(func(s *corev1.PodSpec) { s.Resources = &corev1.ResourceRequirements{Requests: amounts("cpu", "4")} })}, distinct,
		},
		"host ports": {
			nil, options{container(func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{HostPort: 80}} })}, distinct,
		},
		"images, which nodes may have already": {
			nil, options{container(func(c *corev1.Container) { c.Image = "train:2" })}, distinct,
		},
		"node selectors": {
			options{spec(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"disk": "ssd"} })},
			options{spec(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"disk": "hdd"} })},
			distinct,
		},
		"affinity": {options{apartFrom("app")}, options{ratherNear("app")}, distinct},
		"tolerations": {
			nil, options{spec(func(s *corev1.PodSpec) { s.Tolerations = []corev1.Toleration{{Key: "spot"}} })}, distinct,
		},
		"topology spread":         {nil, options{spreadBy("app")}, distinct},
		"resource claims by name": {options{claimed("a")}, options{claimed("b")}, distinct},
		"runtime classes": {
			nil, options{spec(func(s *corev1.PodSpec) { s.RuntimeClassName = new("kata") })}, distinct,
		},
		"operating systems":       {nil, options{spec(func(s *corev1.PodSpec) { s.OS = &corev1.PodOS{Name: corev1.Windows} })}, distinct},
		"the network of the host": {nil, options{spec(func(s *corev1.PodSpec) { s.HostNetwork = true })}, distinct},
		"profiles":                {nil, options{of("other")}, distinct},
		"whether it preempts": {
			nil, options{spec(func(s *corev1.PodSpec) { s.PreemptionPolicy = new(corev1.PreemptNever) })}, distinct,
		},
		"priority, which decides whose nominations count": {
			nil, options{spec(func(s *corev1.PodSpec) { s.Priority = new(int32(9)) })}, distinct,
		},
		"claims of their own":                         {options{claiming("data-0")}, options{claiming("data-1")}, distinct},
		"one claim shared":                            {options{claiming("data")}, options{claiming("data")}, same},
		"volumes made for each pod carry its name":    {options{ephemeral}, options{ephemeral}, distinct},
		"devices claimed for each pod carry its name": {options{templated}, options{templated}, distinct},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := model.NewTask(newPod("a", tc.a...)), model.NewTask(newPod("b", tc.b...))
			got := alike{Class: a.Class == b.Class, Shape: a.Shape == b.Shape}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func configMap(name string) corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

func TestAPodWithANodeHasNoClass(t *testing.T) {
	if task := model.NewTask(newPod("a", running)); task.Class != (model.Class{}) || task.Shape != (model.Class{}) {
		t.Errorf("class %x, shape %x; want none: nothing is left to choose", task.Class, task.Shape)
	}
}

func TestPendingTasksAreCountedByClass(t *testing.T) {
	large := newPod("large", in("train"), asking("cpu", "4"))
	job := jobOf(&model.Group{MinMember: 2}, append(members("small", 3), large, newPod("run", in("train"), running), newPod("held", in("train"), gated)), "small-2")
	got := map[string]int{}
	for _, demand := range job.Pending {
		got[demand.Request.String()] += demand.Count
	}
	if diff := cmp.Diff(map[string]int{"cpu=1 pods=1": 2, "cpu=4 pods=1": 1}, got); diff != "" {
		t.Errorf("tasks waiting for a node, by what they ask (-want,+got)\n%s", diff)
	}
}
