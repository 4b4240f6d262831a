// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// ownerOf is the meta data of a controller that makes a gang of its pods, which run until they are deleted; "" says nothing of a minimum.
func ownerOf(name, least string) (metav1.ObjectMeta, *metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{env.GroupLabel: name}
	m := metav1.ObjectMeta{Name: name, Namespace: env.Namespace, Annotations: map[string]string{}}
	if least != "" {
		m.Annotations[model.MinMemberAnnotation] = least
	}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"localcluster.caldera.dev/run-for": "1h"}},
		Spec:       env.Pod(name, "1").Spec,
	}
	return m, &metav1.LabelSelector{MatchLabels: labels}, template
}

func setOf(name, least string, replicas int32) *appsv1.StatefulSet {
	m, selector, template := ownerOf(name, least)
	return &appsv1.StatefulSet{ObjectMeta: m, Spec: appsv1.StatefulSetSpec{
		Replicas: &replicas, Selector: selector, Template: template, PodManagementPolicy: appsv1.ParallelPodManagement,
	}}
}

// TestAStatefulSetThatIsAGang: created pod by pod, none is bound before as many exist as start together.
func TestAStatefulSetThatIsAGang(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=4,memory=64Gi"}})
	e.StartSchedulerWith(t, everyoneIsAdmitted)
	sets := e.Kube.AppsV1().StatefulSets(env.Namespace)
	const least = 5
	if _, err := sets.Create(t.Context(), setOf("train", "5", 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for replicas := 1; replicas < least; replicas++ {
		scale(t, e, "train", int32(replicas))
		env.Eventually(t, 30*time.Second, func() string {
			if pods := len(e.Members(t, "train")); pods != replicas {
				return fmt.Sprintf("there are %d pods, want %d", pods, replicas)
			}
			return ""
		})
		env.Consistently(t, 300*time.Millisecond, e.AllBound(t, "train", 0))
	}
	env.Eventually(t, 30*time.Second, podSays(t, e, "train", string(model.NotEnoughTasks),
		"of 5 pods exist: create the missing ones, or lower annotation "+model.MinMemberAnnotation))
	scale(t, e, "train", least+1)
	env.Eventually(t, 30*time.Second, e.AllBound(t, "train", least+1))
}

func scale(t *testing.T, e *env.Env, set string, replicas int32) {
	t.Helper()
	_, err := e.Kube.AppsV1().StatefulSets(env.Namespace).UpdateScale(t.Context(), set, &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: set, Namespace: env.Namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas},
	}, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestGangsOfControllersThatWereThereBefore: a scheduler that starts knows the controllers before it places one of their pods. Who has no
// room for all waits whole, and its controller has an event that says why.
func TestGangsOfControllersThatWereThereBefore(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=4,memory=64Gi"}})
	m, selector, template := ownerOf("big", "5")
	_, err := e.Kube.AppsV1().Deployments(env.Namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: m, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](5), Selector: selector, Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m, _, template = ownerOf("fits", "4")
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err = e.Kube.BatchV1().Jobs(env.Namespace).Create(t.Context(), &batchv1.Job{
		ObjectMeta: m, Spec: batchv1.JobSpec{Parallelism: ptr.To[int32](4), Completions: ptr.To[int32](4), Template: template},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, 30*time.Second, func() string {
		if pods := len(e.Members(t, "big")) + len(e.Members(t, "fits")); pods != 9 {
			return fmt.Sprintf("there are %d pods, want 9", pods)
		}
		return ""
	})
	e.StartSchedulerWith(t, everyoneIsAdmitted)
	env.Eventually(t, 30*time.Second, e.AllBound(t, "fits", 4))
	env.Consistently(t, time.Second, e.AllBound(t, "big", 0))
	env.Eventually(t, 30*time.Second, podSays(t, e, "big", corev1.PodReasonUnschedulable, "tasks in gang schedulable: insufficient cpu"))
	env.Eventually(t, 30*time.Second, event(t, e, "ReplicaSet", "Unschedulable", "insufficient cpu"))
	background := metav1.DeletePropagationBackground
	if err := e.Kube.BatchV1().Jobs(env.Namespace).Delete(t.Context(), "fits", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		t.Fatal(err)
	}
	env.Consistently(t, time.Second, e.AllBound(t, "big", 0))
}

// event returns a condition for Eventually: an event on an object of a kind has a reason and a part of its message.
func event(t *testing.T, e *env.Env, kind, reason, message string) func() string {
	return func() string {
		list, err := e.Kube.CoreV1().Events(env.Namespace).List(t.Context(), metav1.ListOptions{
			FieldSelector: fields.SelectorFromSet(fields.Set{"involvedObject.kind": kind, "reason": reason}).String(),
		})
		if err != nil {
			return err.Error()
		}
		var messages []string
		for i := range list.Items {
			if messages = append(messages, list.Items[i].Message); strings.Contains(list.Items[i].Message, message) {
				return ""
			}
		}
		return fmt.Sprintf("no event %s on a %s says %q; there are %q", reason, kind, message, messages)
	}
}

// TestAMinimumThatIsMistyped keeps the pods of its controller from starting, nobody else's, and they start when it is mended.
func TestAMinimumThatIsMistyped(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=4,memory=64Gi"}})
	e.StartSchedulerWith(t, everyoneIsAdmitted)
	sets := e.Kube.AppsV1().StatefulSets(env.Namespace)
	for name, least := range map[string]string{"typo": "two", "fits": "2", "plain": ""} {
		if _, err := sets.Create(t.Context(), setOf(name, least, 2), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	env.Eventually(t, 30*time.Second, e.AllBound(t, "fits", 2))
	env.Eventually(t, 30*time.Second, e.AllBound(t, "plain", 2))
	const problem = `group-min-member of StatefulSet default/typo is "two": write a whole number of at least 1`
	env.Eventually(t, 30*time.Second, podSays(t, e, "typo", string(model.InvalidPodGroup), problem))
	env.Eventually(t, 30*time.Second, event(t, e, "StatefulSet", "MalformedAnnotation", problem))
	env.Consistently(t, time.Second, e.AllBound(t, "typo", 0))
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"2"}}}`, model.MinMemberAnnotation)
	if _, err := sets.Patch(t.Context(), "typo", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, 30*time.Second, e.AllBound(t, "typo", 2))
}
