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
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// podSays returns a condition for Eventually: every pod of the gang waits and says why.
func podSays(t *testing.T, e *env.Env, gang, reason, text string) func() string {
	return func() string {
		for _, p := range e.Members(t, gang) {
			said := false
			for _, c := range p.Status.Conditions {
				said = said || c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == reason && strings.Contains(c.Message, text)
			}
			if !said {
				return fmt.Sprintf("pod %s does not say %s: %q, its conditions are %v", p.Name, reason, text, p.Status.Conditions)
			}
		}
		return ""
	}
}

func phaseIs(t *testing.T, e *env.Env, gang string, want volcano.PodGroupPhase) func() string {
	return func() string {
		if got := e.PodGroup(t, gang).Status.Phase; got != want {
			return fmt.Sprintf("PodGroup %s is %s, want %s", gang, got, want)
		}
		return ""
	}
}

// TestBadInputHurtsNobodyElse submits every kind of bad input at once, and beside it a good gang, which starts.
func TestBadInputHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 10, Shapes: []string{"cpu=32,memory=64Gi"}})
	e.StartScheduler(t)
	role := func(name string) func(int, *corev1.Pod) {
		return func(_ int, p *corev1.Pod) { p.Annotations[model.RoleKey] = name }
	}
	e.Create(t, env.Gang{Name: "above", Min: 5, Size: 3, CPU: "1"})
	e.Create(t, env.Gang{Name: "negative", Min: -1, Size: 2, CPU: "1"})
	e.Create(t, env.Gang{Name: "negrole", Min: 2, Size: 2, CPU: "1", Roles: map[string]int32{"worker": -2}, Pod: role("worker")})
	e.Create(t, env.Gang{Name: "mistyped", Min: 2, Size: 2, CPU: "1", Group: func(g *volcano.PodGroup) {
		near := metav1.LabelSelectorRequirement{Key: "part", Operator: "Near"}
		g.Spec.SubGroupPolicy = []volcano.SubGroupPolicySpec{{
			Name: "parts", SubGroupSize: new(int32(1)), LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{near}},
		}}
	}})
	e.Create(t, env.Gang{Name: "zero", Min: 0, Size: 3, CPU: "1"})
	e.Create(t, env.Gang{Name: "noqueue", Min: 2, Size: 2, CPU: "1", Queue: "missing"})
	e.Create(t, env.Gang{Name: "norole", Min: 3, Size: 3, CPU: "1", Roles: map[string]int32{"master": 1, "worker": 2}, Pod: role("worker")})
	e.Create(t, env.Gang{Name: "malformed", Min: 2, Size: 2, CPU: "1", Pod: func(_ int, p *corev1.Pod) {
		p.Annotations[model.TaskPriorityAnnotation] = "very high"
		p.Annotations[model.RoleKey] = "\x7f not a role"
		p.Annotations["volcano.sh/preemptable"] = "perhaps"
	}})
	orphan := env.Gang{Name: "orphan", Min: 2, Size: 2, CPU: "1"}
	e.CreatePods(t, orphan.Member(0), orphan.Member(1))
	if _, err := e.Volcano.SchedulingV1beta1().PodGroups(env.Namespace).Create(t.Context(), env.Gang{Name: "empty"}.PodGroup(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.Create(t, env.Gang{Name: "good", Min: 4, Size: 4, CPU: "1"})

	within := 30 * time.Second
	env.Eventually(t, within, e.AllBound(t, "good", 4))
	env.Eventually(t, within, e.Waits(t, "above", model.NotEnoughTasks))
	env.Eventually(t, within, e.Waits(t, "negative", model.InvalidPodGroup))
	env.Eventually(t, within, e.Waits(t, "noqueue", model.QueueNotFound))
	env.Eventually(t, within, e.Waits(t, "norole", model.NotEnoughPodsOfTask))
	env.Eventually(t, within, podSays(t, e, "orphan", string(model.PodGroupNotFound), "create it"))
	env.Eventually(t, within, e.AllBound(t, "zero", 3))
	env.Eventually(t, within, e.AllBound(t, "malformed", 2))
	env.Eventually(t, within, e.Waits(t, "negrole", model.InvalidPodGroup))
	env.Eventually(t, within, e.Waits(t, "mistyped", model.InvalidPodGroup))
	env.Eventually(t, within, func() string {
		events, err := e.Kube.CoreV1().Events(env.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=MalformedAnnotation"})
		if err != nil || len(events.Items) != 2 {
			return fmt.Sprintf("%d events about malformed annotations, want one a pod (%v)", len(events.Items), err)
		}
		return ""
	})
	env.Eventually(t, within, phaseIs(t, e, "empty", volcano.PodGroupCompleted))
	env.Eventually(t, within, phaseIs(t, e, "noqueue", volcano.PodGroupPending))

	// What was wrong is put right, and each gang starts.
	e.CreatePods(t, env.Gang{Name: "above", CPU: "1"}.Member(3), env.Gang{Name: "above", CPU: "1"}.Member(4))
	e.CreateGroup(t, orphan)
	e.CreatePods(t, env.Gang{Name: "norole", CPU: "1", Pod: role("master")}.Member(3))
	if _, err := e.Volcano.SchedulingV1beta1().Queues().Create(t.Context(), &volcano.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: "missing"}, Spec: volcano.QueueSpec{Weight: 1},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, within, e.AllBound(t, "above", 5))
	env.Eventually(t, within, e.AllBound(t, "orphan", 2))
	env.Eventually(t, within, e.AllBound(t, "noqueue", 2))
	// The minimum is 3 of now 4 pods; the fourth follows by itself.
	env.Eventually(t, within, e.AllBound(t, "norole", 4))
	env.Eventually(t, within, phaseIs(t, e, "above", volcano.PodGroupRunning))
}

// TestAPodGroupDeletedMidwayLeavesItsPodsAlone deletes a PodGroup with members on nodes and members waiting.
func TestAPodGroupDeletedMidwayLeavesItsPodsAlone(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=4,memory=64Gi"}})
	e.StartScheduler(t)
	e.Create(t, env.Gang{Name: "elastic", Min: 2, Size: 6, CPU: "1"})
	env.Eventually(t, 30*time.Second, e.AllBound(t, "elastic", 4))
	if err := e.Volcano.SchedulingV1beta1().PodGroups(env.Namespace).Delete(t.Context(), "elastic", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	members := e.Members(t, "elastic")
	for _, p := range members {
		if p.Spec.NodeName != "" {
			e.DeletePods(t.Context(), t, p)
			break
		}
	}
	env.Consistently(t, 2*time.Second, func() string {
		if bound, _ := e.Bound(t, "elastic"); bound > 4 {
			return fmt.Sprintf("%d pods have nodes, want no new ones", bound)
		}
		return ""
	})
	env.Eventually(t, 30*time.Second, e.AllBound(t, "elastic", 3))
	e.CreateGroup(t, env.Gang{Name: "elastic", Min: 2})
	env.Eventually(t, 30*time.Second, e.AllBound(t, "elastic", 4))
}
