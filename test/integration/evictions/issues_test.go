// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// The tests of this file rebuild situations that users of Volcano have reported, by the numbers of their issues.

// TestVolcano5896 has conformance and gang in the first tier and capacity in the second. In Volcano the first tier then
// decides alone: 18 pods are evicted where 16 are due, the queue falls below what it deserves, and takes back.
func TestVolcano5896(t *testing.T) {
	s := single(t, 8, `
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: conformance}, {name: gang}]
- plugins: [{name: capacity}, {name: predicates}, {name: nodeorder}]
`)
	s.recreate(false)
	s.queues(map[string]queueSpec{"a": {deserved: "16"}, "b": {deserved: "16"}})
	s.fill(job("wide", "a", 1, 32))
	s.Create(t, job("first", "b", 8, 10))
	s.Create(t, job("second", "b", 8, 10))
	s.holds(map[string]int{"wide": 16, "first": 8, "second": 8})
	s.evicted(map[string]int{"wide": 16}, 20*time.Second)
}

// TestVolcano5984 lets a pod arrive that needs one core, where a job has ten pods to spare. In Volcano gangreclaim evicts
// all ten, which are one bundle.
func TestVolcano5984(t *testing.T) {
	s := single(t, 3, in(byShares, "enqueue, allocate, gangreclaim"))
	s.recreate(false)
	s.queues(map[string]queueSpec{"a": {weight: 1}, "b": {weight: 1}})
	s.fill(job("wide", "a", 2, 12))
	s.Create(t, job("one", "b", 1, 1))
	s.holds(map[string]int{"one": 1, "wide": 11})
	s.evicted(map[string]int{"wide": 1}, 2*calm)
}

// TestVolcano4949 has two jobs with controllers ask for more than there is: in two queues, and in one by their shares. In
// Volcano they evict each other for ever.
func TestVolcano4949(t *testing.T) {
	st := open(t, 4)
	for _, c := range []struct {
		name, conf string
		second     string
	}{
		{name: "two queues by weight", conf: byShares, second: "b"},
		{name: "two queues by what they deserve", conf: byTree, second: "b"},
		{name: "one queue", second: "a", conf: `
actions: "allocate, preempt, backfill"
tiers:
- plugins: [{name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := st.play(t, c.conf)
			s.recreate(true)
			s.queues(map[string]queueSpec{"a": {deserved: "8"}, "b": {deserved: "8"}})
			s.fill(job("first", "a", 1, 16))
			s.Create(t, job("second", c.second, 8, 16))
			s.holds(map[string]int{"first": 8, "second": 8})
			s.evicted(map[string]int{"first": 8}, 10*time.Second)
		})
	}
}

// TestVolcano5131 has a gang of which one member fits without evictions. In Volcano that member is not a preemptor, so that
// the gang never assembles.
func TestVolcano5131(t *testing.T) {
	st := open(t, 3)
	t.Run("reclaim", func(t *testing.T) {
		s := st.play(t, byShares)
		s.recreate(false)
		s.queues(map[string]queueSpec{"a": {weight: 1}, "b": {weight: 1}})
		s.fill(job("wide", "a", 1, 11))
		s.Create(t, job("gang", "b", 3, 3))
		s.holds(map[string]int{"gang": 3})
		s.evicted(map[string]int{"wide": 2}, calm)
	})
	t.Run("preempt", func(t *testing.T) {
		s := st.play(t, byShares)
		s.queues(map[string]queueSpec{"a": {weight: 1}})
		s.fill(s.ranked("low", 10, job("wide", "a", 1, 11)))
		s.Create(t, s.ranked("high", 1000, job("gang", "a", 3, 3)))
		s.holds(map[string]int{"gang": 3})
		s.evicted(map[string]int{"wide": 2}, calm)
	})
}

// TestVolcano991 has the cluster full, so that a job is not let in, and in Volcano only jobs that were let in have others
// evicted. Its pods are created only once it is, as Volcano's controllers do.
func TestVolcano991(t *testing.T) {
	st := open(t, 5)
	for _, c := range []struct{ name, conf string }{{"by weight", byShares}, {"by what they deserve", byTree}} {
		t.Run(c.name, func(t *testing.T) {
			s := st.play(t, c.conf)
			s.recreate(false)
			s.queues(map[string]queueSpec{"a": {deserved: "12"}, "b": {deserved: "8"}})
			s.fill(job("wide", "a", 1, 20))
			late := job("late", "b", 8, 8)
			late.Group = func(g *volcano.PodGroup) {
				g.Spec.MinResources = &corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
				g.Status.Phase = volcano.PodGroupPending
			}
			s.CreateGroup(t, late)
			env.Eventually(t, patience, func() string {
				if phase := s.PodGroup(t, late.Name).Status.Phase; phase != volcano.PodGroupInqueue {
					return fmt.Sprintf("the PodGroup is %s\n%s", phase, s.reasons())
				}
				return ""
			})
			s.evicted(map[string]int{}, calm)
			for i := range late.Size {
				s.CreatePods(t, late.Member(i))
			}
			s.holds(map[string]int{"late": 8, "wide": 12})
			s.evicted(map[string]int{"wide": 8}, 2*calm)
		})
	}
}
