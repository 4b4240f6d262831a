// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodes_test tests plugins that place pods by what device plugins and exporters tell of nodes.
package nodes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// start runs the scheduler by a file with one more plugin in its tiers.
func start(t *testing.T, e *env.Env, plugin string) {
	t.Helper()
	e.StartSchedulerBy(t, "actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: proportion}, {name: predicates}, "+plugin+"]}]")
}

// onlyNode is the name of the cluster's node.
func onlyNode(t *testing.T, e *env.Env) string {
	t.Helper()
	nodes, err := e.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(nodes.Items) != 1 {
		t.Fatalf("listing the node: %v, %v", nodes, err)
	}
	return nodes.Items[0].Name
}

// annotate changes an annotation of the node; null takes it away.
func annotate(t *testing.T, e *env.Env, node, key, value string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: %s}}}`, key, value)
	if _, err := e.Kube.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}

// TestGangsWithCardsAreBoundOneAfterTheOther plays the device plugin: for each pod that is bound with cards it takes the lock of the
// node away. The two of a gang get a card each; the other gang waits until both cards are free.
func TestGangsWithCardsAreBoundOneAfterTheOther(t *testing.T) {
	t.Parallel()
	bound := make(chan *corev1.Pod, 10)
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=4,memory=64Gi,volcano.sh/vgpu-number=10,volcano.sh/vgpu-memory=80000,volcano.sh/vgpu-cores=200"}},
		func(before, after *corev1.Pod) {
			if after != nil && after.Spec.NodeName != "" && (before == nil || before.Spec.NodeName == "") {
				bound <- after
			}
		})
	node := onlyNode(t, e)
	annotate(t, e, node, "volcano.sh/node-vgpu-register", `"a,10,8000,NVIDIA-T4,true,hami-core:b,10,8000,NVIDIA-T4,true,hami-core:"`)
	start(t, e, "{name: deviceshare, arguments: {deviceshare.VGPUEnable: true, deviceshare.NodeLockEnable: true}}")
	limits := corev1.ResourceList{"volcano.sh/vgpu-number": resource.MustParse("1"), "volcano.sh/vgpu-memory": resource.MustParse("5000")}
	gang := func(name string) env.Gang {
		return env.Gang{Name: name, Min: 2, Size: 2, Pod: func(_ int, p *corev1.Pod) {
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: limits, Limits: limits}
		}}
	}
	// serve waits for two pods, and returns their cards.
	serve := func() map[string]bool {
		cards := map[string]bool{}
		for range 2 {
			select {
			case p := <-bound:
				cards[p.Annotations["volcano.sh/vgpu-ids-new"]] = true
			case <-time.After(time.Minute):
				t.Fatal("no pod was bound in a minute")
			}
			env.Consistently(t, time.Second, func() string {
				if len(bound) > 0 {
					return "a second pod was bound while the node was locked for the first"
				}
				return ""
			})
			annotate(t, e, node, "hamivgpu", "null")
		}
		return cards
	}
	want := map[string]bool{"a,NVIDIA,5000,0:;": true, "b,NVIDIA,5000,0:;": true}
	e.Create(t, gang("first"))
	if diff := cmp.Diff(want, serve()); diff != "" {
		t.Errorf("cards of the first gang (-want,+got)\n%s", diff)
	}
	e.Create(t, gang("second"))
	env.Consistently(t, time.Second, e.AllBound(t, "second", 0))
	members := e.Members(t, "first")
	e.DeletePods(t.Context(), t, members[0])
	env.Consistently(t, time.Second, e.AllBound(t, "second", 0))
	e.DeletePods(t.Context(), t, members[1])
	if diff := cmp.Diff(want, serve()); diff != "" {
		t.Errorf("cards of the second gang (-want,+got)\n%s", diff)
	}
}
