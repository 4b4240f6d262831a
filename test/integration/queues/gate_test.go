// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// byCapacity limits each queue by its own capability.
const byCapacity = "actions: \"enqueue, allocate, backfill\"\ntiers: [{plugins: [{name: priority}, {name: gang}]}, {plugins: [{name: capacity}, {name: predicates}, {name: nodeorder}]}]\n"

// gatedGang is a gang of pods with one core each before the gate of the queue limited, which has four.
func gatedGang(name string, size int, change func(*corev1.Pod)) env.Gang {
	return env.Gang{Name: name, Min: size, Size: size, CPU: "1", Queue: "limited", Pod: func(_ int, p *corev1.Pod) {
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: model.QueueGate}}
		if change != nil {
			change(p)
		}
	}}
}

// gates is a condition for Eventually: so many pods of each gang have no gate any more, and so many of those have nodes. A gang whose pods lost
// some of their gates is not whole.
func gates(t *testing.T, e *env.Env, want map[string]string) func() string {
	return func() string {
		for name, free := range want {
			open, placed, all := 0, 0, e.Members(t, name)
			for _, p := range all {
				if len(p.Spec.SchedulingGates) == 0 {
					open++
				}
				if p.Spec.NodeName != "" {
					placed++
				}
			}
			if got := fmt.Sprintf("%d of %d, %d placed", open, len(all), placed); got != free {
				return fmt.Sprintf("of %s the gates of %s are off, want %s", name, got, free)
			}
		}
		return ""
	}
}

// TestTheQueueOpensItsGate: pods keep the gate while their queue is full, and lose it in order as it empties; a gang is let through whole. What
// was let through is kept for it though no node will do, also by a scheduler that is started anew in the middle, and given back when it goes.
func TestTheQueueOpensItsGate(t *testing.T) {
	t.Parallel()
	const patience = 30 * time.Second
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=8,memory=64Gi"}})
	createQueues(t, e, map[string]queueSpec{"limited": {weight: 1, capability: "4"}})
	stop := e.StartSchedulerWith(t, byCapacity)
	nowhere := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"nowhere": "true"} }
	e.Create(t, gatedGang("a", 1, nil))
	e.Create(t, gatedGang("homeless", 2, nowhere))
	env.Eventually(t, patience, gates(t, e, map[string]string{"a": "1 of 1, 1 placed", "homeless": "2 of 2, 0 placed"}))
	e.CreateLetIn(t, gatedGang("b", 3, nil))
	e.Create(t, gatedGang("c", 2, nil))
	e.Create(t, gatedGang("d", 1, nil))
	// A core is left, for which those before the last one are too large. Who has no gate may not have what is kept for others.
	full := map[string]string{
		"a": "1 of 1, 1 placed", "homeless": "2 of 2, 0 placed", "b": "0 of 3, 0 placed", "c": "0 of 2, 0 placed", "d": "1 of 1, 1 placed",
	}
	env.Eventually(t, patience, gates(t, e, full))
	env.Eventually(t, patience, e.Waits(t, "b", model.QueueFull))
	e.CreateLetIn(t, env.Gang{Name: "free", Min: 1, Size: 1, CPU: "1", Queue: "limited"})
	env.Eventually(t, patience, e.Waits(t, "free", model.QueueFull))
	stop()
	stop = e.StartSchedulerWith(t, byCapacity)
	env.Eventually(t, patience, e.AllBound(t, "elsewhere", 0))
	e.Create(t, env.Gang{Name: "elsewhere", Min: 1, Size: 1, CPU: "1"})
	env.Eventually(t, patience, e.AllBound(t, "elsewhere", 1))
	env.Consistently(t, 2*time.Second, func() string {
		return strings.Join(slices.Collect(func(yield func(string) bool) {
			for _, said := range []string{gates(t, e, full)(), e.AllBound(t, "free", 0)()} {
				if said != "" {
					yield(said)
				}
			}
		}), "; ")
	})
	e.Delete(t, "free")
	stop()
	// While nobody schedules, room comes about: of those that wait the first one that fits is let through.
	e.Delete(t, "homeless")
	e.StartSchedulerWith(t, byCapacity)
	env.Eventually(t, patience, gates(t, e, map[string]string{"b": "0 of 3, 0 placed", "c": "2 of 2, 2 placed"}))
	e.Delete(t, "a")
	e.Delete(t, "c")
	env.Eventually(t, patience, gates(t, e, map[string]string{"b": "3 of 3, 3 placed"}))
}

// TestAPodBeforeTheGateIsToldWhy: one that has no PodGroup, by its own condition, which keeps its reason for clients that know it, and by an
// event.
func TestAPodBeforeTheGateIsToldWhy(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=8,memory=64Gi"}})
	createQueues(t, e, map[string]queueSpec{"limited": {weight: 1, capability: "1"}})
	e.StartSchedulerWith(t, byCapacity)
	for i := range 2 {
		p := single("limited", i)
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: model.QueueGate}}
		e.CreatePods(t, p)
		if i == 0 {
			env.Eventually(t, 20*time.Second, func() string {
				p, err := e.Kube.CoreV1().Pods(p.Namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
				if err != nil || p.Spec.NodeName == "" {
					return fmt.Sprintf("the first pod has no node: %v", err)
				}
				return ""
			})
		}
	}
	env.Eventually(t, 20*time.Second, func() string {
		second := single("limited", 1)
		p, err := e.Kube.CoreV1().Pods(second.Namespace).Get(t.Context(), second.Name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated && strings.Contains(c.Message, `queue "limited" has no room`) {
				return ""
			}
		}
		return fmt.Sprintf("the pod's conditions are %v", p.Status.Conditions)
	})
}
