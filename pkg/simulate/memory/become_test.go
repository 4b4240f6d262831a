// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory/fakes"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// TestASeriesTakesBackWhatOthersWrote: what was bound is another pod again, what was not touched is the same, and what was added is gone.
func TestASeriesTakesBackWhatOthersWrote(t *testing.T) {
	t.Parallel()
	api := newAPI(t)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	runs, waits := pod("runs").Node("n").Obj(), pod("waits").Obj()
	series := memory.NewSeries(api)
	begin := []scenario.Object{node, runs, waits}
	told := 0
	become := func(objects ...scenario.Object) {
		t.Helper()
		check(t, series.Become(objects, func() error { told++; return nil }))
	}
	become(begin...)
	stored := func(name string) *corev1.Pod {
		t.Helper()
		o, err := api.Get(memory.Pods, "team", name)
		check(t, err)
		return o.(*corev1.Pod)
	}
	first := stored("waits")
	check(t, fakes.Kube(api).CoreV1().Pods("team").Bind(t.Context(), binding("waits", "n"), metav1.CreateOptions{}))
	become(append(begin, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "more"}})...)
	if again := stored("waits"); again.Spec.NodeName != "" || again.UID == first.UID {
		t.Errorf("the pod that was bound is on node %q and has the UID %s", again.Spec.NodeName, again.UID)
	}
	before := stored("runs").ResourceVersion
	become(begin...)
	if after := stored("runs").ResourceVersion; after != before {
		t.Errorf("the pod that runs was written, though nobody had touched it: version %s, then %s", before, after)
	}
	if nodes := api.Objects(corev1.SchemeGroupVersion.WithResource("nodes")); len(nodes) != 1 {
		t.Errorf("there are %d nodes, want the one of the beginning", len(nodes))
	}
	if told != 2 {
		t.Errorf("clients were told %d times of what is gone, want 2", told)
	}
}
