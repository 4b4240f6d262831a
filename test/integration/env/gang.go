// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	native "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// GroupLabel carries a pod's gang as a label, for selectors in tests; the scheduler does not read it.
const GroupLabel = "gang"

// Gang describes a PodGroup and its pods.
type Gang struct {
	Name string
	// Min is minMember; Size the number of pods.
	Min, Size int
	// CPU is what each pod asks for; empty: nothing at all.
	CPU string
	// Queue is left out when empty.
	Queue string
	// Native: the PodGroup is one of Kubernetes' own, which the control plane must serve.
	Native bool
	// Roles is minTaskMember.
	Roles map[string]int32
	// Pod changes each pod before it is created.
	Pod func(i int, p *corev1.Pod)
	// Group changes the PodGroup before it is created.
	Group func(g *volcano.PodGroup)
}

// PodGroup returns the gang's PodGroup.
func (g Gang) PodGroup() *volcano.PodGroup {
	group := &volcano.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: g.Name, Namespace: Namespace},
		Spec:       volcano.PodGroupSpec{MinMember: int32(g.Min), Queue: g.Queue, MinTaskMember: g.Roles},
	}
	if g.Group != nil {
		g.Group(group)
	}
	return group
}

// NativeGroup returns the gang's PodGroup as Kubernetes' own, with its queue.
func (g Gang) NativeGroup() *native.PodGroup {
	group := &native.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: g.Name, Namespace: Namespace},
		Spec:       native.PodGroupSpec{SchedulingPolicy: native.PodGroupSchedulingPolicy{Gang: &native.GangSchedulingPolicy{MinCount: int32(g.Min)}}},
	}
	if g.Queue != "" {
		group.Annotations = map[string]string{model.QueueAnnotation: g.Queue}
	}
	return group
}

// Member returns the gang's pod number i.
func (g Gang) Member(i int) *corev1.Pod {
	p := Pod(fmt.Sprintf("%s-%d", g.Name, i), g.CPU)
	p.Labels = map[string]string{GroupLabel: g.Name}
	if g.Native {
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &g.Name}
	} else {
		p.Annotations = map[string]string{model.GroupNameAnnotation: g.Name}
	}
	if g.Pod != nil {
		g.Pod(i, p)
	}
	return p
}

// Members returns all of the gang's pods.
func (g Gang) Members() []*corev1.Pod {
	pods := make([]*corev1.Pod, g.Size)
	for i := range pods {
		pods[i] = g.Member(i)
	}
	return pods
}

// Pod returns a pod for the batch profile that asks for so much CPU.
func Pod(name, cpu string) *corev1.Pod {
	requests := corev1.ResourceList{}
	if cpu != "" {
		requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace},
		Spec: corev1.PodSpec{
			SchedulerName: "volcano",
			Containers: []corev1.Container{{
				Name: "work", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Requests: requests},
			}},
		},
	}
}

// CreateGroup creates the gang's PodGroup.
func (e *Env) CreateGroup(t *testing.T, g Gang) {
	t.Helper()
	if g.Native {
		group := g.NativeGroup()
		if _, err := e.Kube.SchedulingV1beta1().PodGroups(group.Namespace).Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return
	}
	group := g.PodGroup()
	_, err := e.Volcano.SchedulingV1beta1().PodGroups(group.Namespace).Create(t.Context(), group, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// CreatePods creates pods, many at a time.
func (e *Env) CreatePods(t *testing.T, pods ...*corev1.Pod) {
	t.Helper()
	errs := make([]error, len(pods))
	workqueue.ParallelizeUntil(t.Context(), 16, len(pods), func(i int) {
		_, errs[i] = e.Kube.CoreV1().Pods(pods[i].Namespace).Create(t.Context(), pods[i], metav1.CreateOptions{})
	})
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Create creates the gang's PodGroup and pods.
func (e *Env) Create(t *testing.T, g Gang) {
	t.Helper()
	e.CreateGroup(t, g)
	e.CreatePods(t, g.Members()...)
}

// CreateLetIn creates the gang's PodGroup, waits until it is let in, and creates the pods: what pods ask for that are there before counts.
func (e *Env) CreateLetIn(t *testing.T, g Gang) {
	t.Helper()
	e.CreateGroup(t, g)
	Eventually(t, time.Minute, func() string {
		if phase := e.PodGroup(t, g.Name).Status.Phase; phase != volcano.PodGroupInqueue {
			return fmt.Sprintf("PodGroup %s is %s", g.Name, phase)
		}
		return ""
	})
	e.CreatePods(t, g.Members()...)
}

// Delete deletes the gang's PodGroup and pods.
func (e *Env) Delete(t *testing.T, name string) {
	t.Helper()
	err := e.Volcano.SchedulingV1beta1().PodGroups(Namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	err = e.Kube.CoreV1().Pods(Namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: GroupLabel + "=" + name})
	if err != nil {
		t.Fatal(err)
	}
}

// Members returns the gang's live pods by name.
func (e *Env) Members(t *testing.T, name string) []*corev1.Pod {
	t.Helper()
	pods, err := e.Pods.Pods(Namespace).List(labels.SelectorFromSet(labels.Set{GroupLabel: name}))
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods
}

// AllBound returns a condition for Eventually: so many pods of the gang have nodes.
func (e *Env) AllBound(t *testing.T, name string, want int) func() string {
	says := e.says(t, name)
	return func() string {
		bound, all := e.Bound(t, name)
		if bound == want {
			return ""
		}
		return fmt.Sprintf("%d of %d pods of gang %s have nodes, want %d%s", bound, all, name, want, says())
	}
}

// says tells what the conditions of a gang's PodGroup say, and who is on nodes. Asked again and again it looks once a second.
func (e *Env) says(t *testing.T, name string) func() string {
	last := time.Now()
	var says string
	return func() string {
		if time.Since(last) > time.Second {
			last, says = time.Now(), e.now(t, name)
		}
		return says
	}
}

func (e *Env) now(t *testing.T, name string) string {
	t.Helper()
	var says strings.Builder
	if group, err := e.Volcano.SchedulingV1beta1().PodGroups(Namespace).Get(t.Context(), name, metav1.GetOptions{}); err == nil {
		for _, c := range group.Status.Conditions {
			fmt.Fprintf(&says, "; %s is %s since %s: %s: %s", c.Type, c.Status, c.LastTransitionTime.UTC().Format(time.TimeOnly), c.Reason, c.Message)
		}
	}
	pods, err := e.Kube.CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		fmt.Fprintf(&says, "; %s/%s is %s on %s", p.Namespace, p.Name, p.Status.Phase, p.Spec.NodeName)
		if p.DeletionTimestamp != nil {
			says.WriteString(" and leaves")
		}
	}
	return says.String()
}

// Waits returns a condition for Eventually: no pod of the gang has a node, and its PodGroup says why.
func (e *Env) Waits(t *testing.T, name string, reason model.ReasonKind) func() string {
	says := e.says(t, name)
	return func() string {
		if bound, _ := e.Bound(t, name); bound > 0 {
			return fmt.Sprintf("%d pods of gang %s have nodes, want none", bound, name)
		}
		for _, c := range e.PodGroup(t, name).Status.Conditions {
			if c.Type == volcano.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue && c.Reason == string(reason) {
				return ""
			}
		}
		return fmt.Sprintf("PodGroup %s has no condition Unschedulable with reason %s%s", name, reason, says())
	}
}
