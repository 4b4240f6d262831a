// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gangpreemption

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// running is a pod on a node, of a gang if that is named.
func running(name, gang string, priority int32) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName, NodeName: "n", Priority: &priority},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if gang != "" {
		p.Spec.SchedulerName, p.Annotations = "volcano", map[string]string{model.GroupNameAnnotation: gang}
	}
	return p
}

// TestBrokenGangsGoFirst: a half gang's member goes before a pod of lower priority, on one node and if there are several to choose from.
// One whose time is not over, and one for whose missing members room is made, do not.
func TestBrokenGangsGoFirst(t *testing.T) {
	now := time.Unix(1000, 0)
	key := func(name string) model.JobKey {
		return model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: name}
	}
	state := model.NewState()
	state.AddScheduler("volcano")
	pods := map[string]*corev1.Pod{"plain": running("plain", "", 0)}
	for _, name := range []string{"half", "early", "awaited", "whole"} {
		least := 2
		if name == "whole" {
			least = 1
		}
		state.UpsertGroup(key(name), &model.Group{UID: types.UID(name), Queue: model.DefaultQueue, MinMember: least})
		pods[name] = running(name, name, 5)
		state.UpsertPod(pods[name])
	}
	missing := running("missing", "awaited", 5)
	missing.Spec.NodeName, missing.Status.Phase = "", corev1.PodPending
	state.UpsertPod(missing)
	state.Pipeline([]model.Nomination{{UID: "missing", Node: "n"}}, nil)
	set, err := policy.Compile(&config.BatchQueueArgs{
		Actions: []config.Action{config.Allocate}, Tiers: []config.Tier{{Plugins: []config.TierPlugin{{Name: config.PluginGang}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	parts := Parts{State: state, Ordinary: func() *policy.Ordinary { return nil }}
	c := newCycle(parts)
	c.jobs, c.rule = state.Snapshot(), set.Ordinary(now, policy.Lapses{key("half"): now, key("early"): now.Add(1), key("awaited"): now, key("whole"): now})
	pl := &GangPreemption{parts: parts}
	pl.cycle.Store(c)
	for name, pod := range pods {
		if name == "plain" {
			continue
		}
		victim := func(p *corev1.Pod) preemption.Victim {
			info, err := framework.NewPodInfo(p)
			if err != nil {
				t.Fatal(err)
			}
			return preemption.NewPodVictim(info, nil, nil)
		}
		first := name == "half"
		if pl.moreImportant(victim(pods["plain"]), victim(pod)) != first || pl.moreImportant(victim(pod), victim(pods["plain"])) == first {
			t.Errorf("a member of gang %s goes before a pod of lower priority: %t, want %t", name, !first, first)
		}
		nodes := map[string]*extenderv1.Victims{
			"a": {Pods: []*corev1.Pod{pod}}, "b": {Pods: []*corev1.Pod{pods["plain"]}}, "c": {Pods: []*corev1.Pod{pods["half"]}, NumPDBViolations: 1},
		}
		pl.OrderedScoreFuncs(t.Context(), nodes)
		want := []string{"a", "b", "c"}
		if first {
			want = []string{"a"}
		}
		if got := slices.Sorted(maps.Keys(nodes)); !slices.Equal(got, want) {
			t.Errorf("with a member of gang %s on a the choice is among %v, want %v", name, got, want)
		}
	}
}
