// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package usage_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// evening moves pods every 20 s from nodes with more than 70 percent of their cores in use.
const evening = `
actions: "allocate, shuffle"
tiers:
- plugins: [{name: gang}, {name: conformance}, {name: pdb}]
- plugins:
  - name: predicates
  - name: nodeorder
  - name: rescheduling
    arguments:
      interval: 20s
      strategies: [{name: lowNodeUtilization, params: {thresholds: {cpu: 20, memory: 20}, targetThresholds: {cpu: 70, memory: 70}}}]
metrics: {type: prometheus, address: %q, interval: 1s}
`

// TestPodsAreMovedFromHotNodes runs eight pods of a core each on a node of eight cores that is made to look hot, beside
// an idle one. The hot node has to lose three for its load to fall from 96 to below 70 percent: by 12.5 each.
func TestPodsAreMovedFromHotNodes(t *testing.T) {
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=8,memory=16Gi"}})
	nodes, err := e.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	hot, idle := nodes.Items[0].Name, nodes.Items[1].Name
	address := startPrometheus(t, &exporter{start: time.Now(), nodes: map[string]made{hot: {0.96, 0.3, 1e9}, idle: {0.1, 0.1, 1e9}, "plain": {0, 0, 1e9}}})
	e.CreateGroup(t, env.Gang{Name: "web", Min: 1})
	cordon(t, e, true, idle)
	e.StartSchedulerWith(t, fmt.Sprintf(evening, address))
	replicas(t, e, "web", 8)
	env.Eventually(t, patience, func() string { return differs(e, map[string]int{hot: 8}) })
	cordon(t, e, false, idle)

	var first eviction.Decision
	env.Eventually(t, patience, func() string {
		decisions := e.Core.Evictions.Ledger.Decisions()
		if len(decisions) == 0 || decisions[len(decisions)-1].Outcome == eviction.Pending {
			return fmt.Sprintf("the ledger has no decision that is over: %+v", decisions)
		}
		first = decisions[len(decisions)-1]
		return ""
	})
	if first.Action != eviction.Shuffle || first.Outcome != eviction.Done || len(first.Victims) != 3 {
		t.Fatalf("the first decision is %+v, want one of shuffle with 3 victims", first)
	}
	for i, v := range first.Victims {
		if want := "of the cpu of node " + hot + " is in use, and 70% is the target"; v.Node != hot || !strings.Contains(v.Why, want) {
			t.Errorf("victim %d was on %s, because %q, want %q", i, v.Node, v.Why, want)
		}
	}
	// The load of the hot node is made up, and stays; for a quarter of an hour it is taken for that of before.
	env.Eventually(t, patience, func() string { return differs(e, map[string]int{hot: 5, idle: 3}) })
	env.Consistently(t, 30*time.Second, func() string { return differs(e, map[string]int{hot: 5, idle: 3}) })
}

// replicas creates a ReplicaSet whose pods are in a PodGroup of its name, and ask for a core each.
func replicas(t *testing.T, e *env.Env, name string, count int32) {
	t.Helper()
	member := env.Gang{Name: name, CPU: "1"}.Member(0)
	_, err := e.Kube.AppsV1().ReplicaSets(env.Namespace).Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &count, Selector: &metav1.LabelSelector{MatchLabels: member.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: member.Labels, Annotations: member.Annotations}, Spec: member.Spec},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// cordon keeps pods off a node, or lets them on again.
func cordon(t *testing.T, e *env.Env, off bool, node string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec": {"unschedulable": %t}}`, off)
	if _, err := e.Kube.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// running counts the pods on each node that run and stay.
func running(e *env.Env) map[string]int {
	on := map[string]int{}
	pods, err := e.Pods.Pods(env.Namespace).List(labels.Everything())
	if err != nil {
		return nil
	}
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			on[p.Spec.NodeName]++
		}
	}
	return on
}

func differs(e *env.Env, want map[string]int) string {
	if got := running(e); !maps.Equal(got, want) {
		return fmt.Sprintf("running pods by node: %v, want %v", got, want)
	}
	return ""
}
