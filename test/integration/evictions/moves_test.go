// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// deploy has a Deployment of one pod of one core on a node of a queue. It is gone at the end of the scene.
func (s *scene) deploy(name, queue, node string) {
	s.t.Helper()
	pod := job(name, queue, 1, 1).Member(0)
	delete(pod.Annotations, model.GroupNameAnnotation)
	pod.Annotations[model.QueueAnnotation] = queue
	labels := map[string]string{env.GroupLabel: name}
	deployments := s.Kube.AppsV1().Deployments(env.Namespace)
	_, err := deployments.Create(s.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: pod.Annotations}, Spec: pod.Spec},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		// Its pods are erased once nobody creates them again.
		ctx := context.WithoutCancel(s.t.Context())
		foreground := metav1.DeletePropagationForeground
		if err := deployments.Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
			s.t.Error(err)
		}
		env.Eventually(s.t, patience, func() string {
			if _, err := deployments.Get(ctx, name, metav1.GetOptions{}); err == nil {
				return fmt.Sprintf("Deployment %s is still there", name)
			}
			return ""
		})
	})
	s.holds(map[string]int{name: 1})
	s.on(name, node)
}

// on waits until the pods of a job run on a node.
func (s *scene) on(name, node string) {
	s.t.Helper()
	env.Eventually(s.t, patience, func() string {
		members := s.Members(s.t, name)
		for _, p := range members {
			if p.DeletionTimestamp == nil && p.Spec.NodeName != node {
				return fmt.Sprintf("pod %s is on node %q, want %s\n%s", p.Name, p.Spec.NodeName, node, s.reasons())
			}
		}
		return ""
	})
}

// only leaves one node to schedule to; none: all of them.
func (s *scene) only(node string) {
	s.t.Helper()
	for i := range 2 {
		name := fmt.Sprintf("node-%04d", i)
		s.patch(s.t, name, fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, node != "" && node != name))
	}
}

// byMoves is a configuration in which pods are moved, and nobody takes anything from others.
var byMoves = in(byShares, "enqueue, allocate, consolidate, backfill") + "configurations: [{name: consolidate, arguments: {cooldown: 0s}}]\n"

// TestPodsMoveForAGang has four cores of which a queue is due all idle on two nodes. A real Deployment's pod is moved, and its next pod finds the room that was
// found for it, whoever else asks for it.
func TestPodsMoveForAGang(t *testing.T) {
	const first, second = "node-0000", "node-0001"
	st := open(t, 2)
	// crumbs has one core held on the first node, by whom says the caller, and some on the second.
	crumbs := func(t *testing.T, held int, one func(*scene)) *scene {
		t.Helper()
		s := st.play(t, byMoves, func(a *config.ReclaimArgs) { a.VictimTimeout.Duration = 5 * time.Second })
		s.queues(map[string]queueSpec{"a": {weight: 1}, "b": {weight: 1}})
		s.only(first)
		one(s)
		s.only(second)
		s.fill(job("others", "a", 1, held))
		s.only("")
		return s
	}
	big := job("big", "b", 1, 1)
	big.CPU = "4"
	deployed := func(s *scene) { s.deploy("one", "a", first) }

	t.Run("the smaller of two crumbs is swept up", func(t *testing.T) {
		s := crumbs(t, 3, deployed)
		// As soon as the pod begins to end somebody comes who would like its new place.
		s.witness.call(func(*corev1.Pod) { s.CreatePods(s.t, job("late", "a", 1, 1).Member(0)) }, nil)
		s.t.Cleanup(func() { s.witness.call(nil, nil) })
		s.CreateGroup(t, job("late", "a", 1, 1))
		s.Create(t, big)
		s.holds(map[string]int{"big": 1, "one": 1, "late": 0})
		s.on("big", first)
		s.on("one", second)
		s.evicted(map[string]int{"one": 1}, 2*calm)
		d := s.ledger()
		if len(d) != 1 || d[0].Action != string(config.Consolidate) || d[0].Outcome != "Started" || len(d[0].Victims) != 1 || d[0].Victims[0].MovesTo != second {
			t.Errorf("the ledger has %+v", d)
		}
	})
	t.Run("nobody moves until there is another place", func(t *testing.T) {
		s := crumbs(t, 4, deployed)
		// Less is due than is asked for: the other node is full.
		small := job("big", "b", 1, 1)
		small.CPU = "3500m"
		s.Create(t, small)
		env.Eventually(t, patience, s.Waits(t, "big", model.NotEnoughResources))
		s.evicted(map[string]int{}, calm)
		s.erase(t, s.Members(t, "others")[0])
		s.holds(map[string]int{"big": 1, "one": 1, "others": 3})
		s.on("one", second)
		s.evicted(map[string]int{"one": 1}, calm)
	})
	t.Run("the room of a pod that nobody creates again is given up", func(t *testing.T) {
		s := crumbs(t, 3, func(s *scene) {
			owner, err := s.Kube.CoreV1().ConfigMaps(env.Namespace).Create(s.t.Context(),
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "idle-"}}, metav1.CreateOptions{})
			if err != nil {
				s.t.Fatal(err)
			}
			s.fill(job("one", "a", 1, 1, func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, Controller: new(true)}}
			}))
		})
		s.Create(t, big)
		s.holds(map[string]int{"big": 1, "one": 0})
		s.Create(t, job("late", "a", 1, 1))
		s.holds(map[string]int{"big": 1, "late": 1})
		s.evicted(map[string]int{"one": 1}, calm)
	})
	t.Run("off unless it is named", func(t *testing.T) {
		s := crumbs(t, 3, deployed)
		s.stop()
		s.conf = strings.Replace(byMoves, "consolidate, ", "", 1)
		s.start()
		s.Create(t, big)
		env.Eventually(t, patience, s.Waits(t, "big", model.NotEnoughResources))
		s.evicted(map[string]int{}, calm)
	})
}
