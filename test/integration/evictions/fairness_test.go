// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// byBranches is a configuration in which queues reclaim by their shares in the tree of volcano.sh/hierarchy.
const byBranches = `
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf, enableHierarchy: true}, {name: predicates}, {name: nodeorder}]
`

// others has so many cores of a node held by pods of another scheduler.
func (s *scene) others(node string, n int) {
	s.t.Helper()
	g := job("others", "", 1, n, func(p *corev1.Pod) {
		p.Spec.SchedulerName, p.Spec.NodeName = corev1.DefaultSchedulerName, node
	})
	for i := range n {
		s.CreatePods(s.t, g.Member(i))
	}
	s.holds(map[string]int{"others": n})
}

// needing has a PodGroup say how many cores its job needs.
func needing(cores string, g env.Gang) env.Gang {
	change := g.Group
	g.Group = func(group *volcano.PodGroup) {
		if change != nil {
			change(group)
		}
		group.Spec.MinResources = new(cpu(cores))
	}
	return g
}

// inqueue waits until a job is let in.
func (s *scene) inqueue(name string) {
	s.t.Helper()
	env.Eventually(s.t, patience, func() string {
		if phase := s.PodGroup(s.t, name).Status.Phase; phase != volcano.PodGroupInqueue {
			return fmt.Sprintf("PodGroup %s is %s", name, phase)
		}
		return ""
	})
}

// patch changes a node.
func (st *fixture) patch(t *testing.T, node, patch string) {
	t.Helper()
	_, err := st.Kube.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNobodyWaitsWhoIsDueSomething has queues that are due something, and wait for ever in Volcano: each gets it, nobody loses more than he has to, and
// nobody takes it back.
func TestNobodyWaitsWhoIsDueSomething(t *testing.T) {
	st := open(t, 6)
	nodes := make([]string, 6)
	for i := range nodes {
		nodes[i] = fmt.Sprintf("node-%04d", i)
	}
	// play begins a scene on so many nodes.
	play := func(t *testing.T, conf string, n int) *scene {
		t.Helper()
		for i, node := range nodes {
			st.patch(t, node, fmt.Sprintf(`{"spec":{"taints":null,"unschedulable":%t}}`, i >= n))
		}
		s := st.play(t, conf)
		s.recreate(false)
		return s
	}
	// oneOf waits until one of two jobs has given up one of its pods for the taker.
	oneOf := func(s *scene, a, b string, each int, taker string) {
		s.t.Helper()
		differs := func() string {
			got := s.running()
			if got[taker] != 1 || got[a]+got[b] != 2*each-1 {
				return fmt.Sprintf("there run %v, want 1 of %s and %d of %s and %s\n%s", got, taker, 2*each-1, a, b, s.reasons())
			}
			return ""
		}
		env.Eventually(s.t, patience, differs)
		env.Consistently(s.t, 2*calm, differs)
		if totals := s.totals(); totals.Decisions != 1 || totals.Evicted != 1 {
			s.t.Errorf("the ledger has %+v, want one decision and one pod", totals)
		}
	}
	t.Run("whole pods: two queues hold three and are due 2.5, one is due one", func(t *testing.T) {
		s := play(t, byShares, 2)
		s.others(nodes[0], 2)
		s.queues(map[string]queueSpec{"a": {weight: 5}, "b": {weight: 5}, "c": {weight: 2}})
		s.fill(job("as", "a", 1, 3), job("bs", "b", 1, 3))
		s.Create(t, job("c", "c", 1, 1))
		oneOf(s, "as", "bs", 3, "c")
	})
	t.Run("the cluster that is not there: half of it is tainted", func(t *testing.T) {
		s := play(t, byShares, 2)
		st.patch(t, nodes[1], `{"spec":{"taints":[{"key":"node-role.kubernetes.io/control-plane","effect":"NoSchedule"}]}}`)
		s.queues(map[string]queueSpec{"a": {weight: 1}, "b": {weight: 1}, "c": {weight: 1}})
		s.fill(job("as", "a", 1, 2), job("bs", "b", 1, 2))
		s.Create(t, job("c", "c", 1, 1))
		oneOf(s, "as", "bs", 2, "c")
	})
	t.Run("equal shares: a gang of half of the cluster", func(t *testing.T) {
		s := play(t, byBranches, 2)
		s.queues(map[string]queueSpec{"a": {path: "root/a", weights: "1/1"}, "b": {path: "root/b", weights: "1/1"}})
		s.fill(job("as", "a", 1, 8))
		s.Create(t, job("gang", "b", 4, 4))
		s.holds(map[string]int{"gang": 4})
		s.evicted(map[string]int{"as": 4}, 2*calm)
	})
	t.Run("idle siblings: what x1 does not ask for flows to x2, until it does", func(t *testing.T) {
		s := play(t, strings.Replace(byTree, "{name: gang}", "{name: gang, enableReclaimable: false}", 1), 6)
		s.queues(map[string]queueSpec{
			"x": {deserved: "12"}, "x1": {parent: "x", deserved: "8"}, "x2": {parent: "x", deserved: "4"},
			"y": {deserved: "12"}, "y1": {parent: "y", deserved: "12"},
		})
		s.fill(job("x2", "x2", 1, 4), job("y1", "y1", 1, 20))
		s.Create(t, job("gang", "x2", 6, 6))
		s.holds(map[string]int{"gang": 6, "x2": 4, "y1": 14})
		s.evicted(map[string]int{"y1": 6}, 2*calm)
		s.Create(t, job("late", "x1", 8, 8))
		s.holds(map[string]int{"late": 8, "y1": 12})
		env.Consistently(t, 2*calm, func() string {
			if got := s.running(); got["late"] != 8 || got["y1"] != 12 || got["gang"]+got["x2"] != 4 {
				return fmt.Sprintf("there run %v", got)
			}
			return ""
		})
	})
	t.Run("extras: three jobs are let in together, and the first has its pods before the others", func(t *testing.T) {
		s := play(t, in(byShares, "enqueue, allocate, backfill"), 3)
		s.queues(map[string]queueSpec{"a": {weight: 1}})
		names := []string{"one", "two", "three"}
		for _, name := range names {
			s.CreateGroup(t, needing("2", job(name, "a", 2, 12)))
		}
		for _, name := range names {
			s.inqueue(name)
		}
		for _, name := range names {
			s.CreatePods(t, job(name, "a", 2, 12).Members()...)
		}
		env.Eventually(t, patience, func() string {
			got := s.running()
			if got["one"]+got["two"]+got["three"] != 12 || min(got["one"], got["two"], got["three"]) < 2 {
				return fmt.Sprintf("there run %v, want 12, and 2 of each\n%s", got, s.reasons())
			}
			return ""
		})
		s.evicted(map[string]int{}, calm)
	})
	t.Run("reservation: a gang that has waited for long has the room before who comes later", func(t *testing.T) {
		s := play(t, in(strings.Replace(byShares, "{name: cdp}", "{name: cdp}, {name: reservation, arguments: {reservation.after: 1s}}", 1), "enqueue, allocate, backfill"), 2)
		s.queues(map[string]queueSpec{"a": {weight: 1}})
		once := func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyNever }
		s.fill(job("one", "a", 1, 4, once), job("two", "a", 1, 4, once))
		s.Create(t, job("gang", "a", 8, 8, once))
		s.refused("gang", "room is reserved for 8 pods on 2 nodes")
		before := s.reserved("a", nil)
		// Another process reserves the same again before anybody takes what was freed meanwhile.
		s.stop()
		ended := s.Members(t, "one")
		s.erase(t, ended[0])
		s.Create(t, job("late", "a", 1, 1, once))
		s.start()
		env.Eventually(t, patience, s.Waits(t, "late", model.QueueFull))
		s.refused("gang", "room is reserved for 8 pods on 2 nodes")
		if after := s.reserved("a", before); !after.Since.Equal(before.Since) || !maps.EqualFunc(after.Pods, before.Pods, slices.Equal[[]types.UID]) {
			t.Errorf("there was reserved %v, and is after the restart %v", before, after)
		}
		s.Create(t, job("short", "a", 1, 1, once, func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(60)) }))
		s.holds(map[string]int{"short": 1, "late": 0, "gang": 0})
		for _, p := range slices.Concat(ended[1:], s.Members(t, "two"), s.Members(t, "short")) {
			s.erase(t, p)
		}
		s.holds(map[string]int{"gang": 8, "late": 0})
		s.evicted(map[string]int{}, calm)
	})
	t.Run("admission: who was let in and cannot start keeps nobody out", func(t *testing.T) {
		s := play(t, byShares, 2)
		s.queues(map[string]queueSpec{"a": {weight: 1, capability: "4"}})
		s.fill(job("low", "a", 1, 2, labelled("app", "low")))
		s.budget("low", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "low"}}, 2)
		s.Create(t, needing("3", s.ranked("high", 1000, job("first", "a", 3, 3))))
		s.inqueue("first")
		began := time.Now()
		s.Create(t, needing("2", job("second", "a", 2, 2)))
		env.Eventually(t, patience, s.Waits(t, "second", model.NotAdmitted))
		s.holds(map[string]int{"second": 2, "low": 2, "first": 0})
		t.Logf("the second job started after %s", time.Since(began).Round(time.Second))
		s.evicted(map[string]int{}, calm)
	})
}

// reserved waits until it is written what room is reserved in a queue, and that it is not as before, and returns it.
func (s *scene) reserved(queue string, before *model.Reservation) (now *model.Reservation) {
	s.t.Helper()
	env.Eventually(s.t, patience, func() string {
		q, err := s.Volcano.SchedulingV1beta1().Queues().Get(s.t.Context(), queue, metav1.GetOptions{})
		if err == nil {
			now, err = model.ReservationOf(q.Annotations)
		}
		switch {
		case err != nil:
			return err.Error()
		case now == nil || now.Same(before):
			return fmt.Sprintf("there is reserved %v", now)
		}
		return ""
	})
	return now
}
