// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// nominate has the queue name a pod as nominated to node-0. It names one that is in none of its queues without what it asks for.
func (w *fixture) nominate(t *testing.T, pod *corev1.Pod, queued bool) {
	t.Helper()
	named := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
	if queued {
		named = pod
	}
	info, err := framework.NewPodInfo(named)
	if err != nil {
		t.Fatal(err)
	}
	if w.nominated.pods == nil {
		w.nominated.pods = map[string][]fwk.PodInfo{}
	}
	w.nominated.pods["node-0"] = append(w.nominated.pods["node-0"], info)
}

// TestWhoseNominationsCount: pods of other schedulers keep their room. One of ours that the model keeps no room for has lost it, though the
// scheduler's queue has its old nomination from the API server; pods were evicted needlessly because of that.
func TestWhoseNominationsCount(t *testing.T) {
	t.Parallel()
	for scheduler, placed := range map[string]int{"volcano": 1, "default-scheduler": 0} {
		w := newFixture(t, nodeShapes{{count: 1, cpu: "1", memory: "32Gi"}}, nil)
		other := pod("other", "1")
		other.Spec.SchedulerName = scheduler
		w.nominate(t, other, true)
		if plan := w.plan(t, w.job(gangOf("a", 1, 1, "1"))); len(plan.Placements) != placed {
			t.Errorf("where a pod of %s is nominated %d are placed, want %d: %v", scheduler, len(plan.Placements), placed, plan.Reason)
		}
	}
}

// TestANominationIsNobodysByItsName: of a pod of ours that waits outside of the scheduler's queue, that knows no more than the name. It was
// taken for a pod of another scheduler, and so counted with all others that had lost their room on the node.
func TestANominationIsNobodysByItsName(t *testing.T) {
	t.Parallel()
	w := newFixture(t, nodeShapes{{count: 1, cpu: "1", memory: "32Gi"}}, nil)
	waiting := gangOf("b", 2, 2, "1")
	w.job(waiting)
	w.nominate(t, waiting.pods[0], false)
	w.nominate(t, waiting.pods[1], true)
	if plan := w.plan(t, w.job(gangOf("a", 1, 1, "1"))); len(plan.Placements) != 1 {
		t.Errorf("%d are placed, want 1: %v", len(plan.Placements), plan.Reason)
	}
}

// TestRoomIsKeptOnceBesideOtherSchedulers: where a pod of another scheduler is nominated, too, what is kept for ours is not counted twice.
func TestRoomIsKeptOnceBesideOtherSchedulers(t *testing.T) {
	t.Parallel()
	for cores, placed := range map[string]int{"3": 1, "2": 0} {
		w := newFixture(t, nodeShapes{{count: 1, cpu: cores, memory: "32Gi"}}, nil)
		other := pod("other", "1")
		other.Spec.SchedulerName = "default-scheduler"
		w.nominate(t, other, true)
		kept := gangOf("b", 1, 1, "1")
		task := w.job(kept).Tasks[0]
		w.nominate(t, kept.pods[0], true)
		w.state.Pipeline([]model.Nomination{{UID: task.UID, Node: "node-0"}}, nil)
		request := asking(w.job(gangOf("a", 1, 1, "1")))
		request.Nominated = w.state.Nominated()
		plan, err := w.planner.Plan(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.Placements) != placed {
			t.Errorf("of %s cores, two of which are kept, %d are placed, want %d: %v", cores, len(plan.Placements), placed, plan.Reason)
		}
	}
}
