// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// TestWhoseNominationsCount: pods of other schedulers keep their room. One of ours that the model keeps no room for has lost it, though the
// scheduler's queue has its old nomination from the API server; pods were evicted needlessly because of that.
func TestWhoseNominationsCount(t *testing.T) {
	t.Parallel()
	for scheduler, placed := range map[string]int{"volcano": 1, "default-scheduler": 0} {
		w := newWorld(t, nodeShapes{{count: 1, cpu: "1", memory: "32Gi"}}, nil)
		other := pod("other", "1")
		other.Spec.SchedulerName = scheduler
		other.Status.NominatedNodeName = "node-0"
		info, err := framework.NewPodInfo(other)
		if err != nil {
			t.Fatal(err)
		}
		w.nominated.pods = map[string][]fwk.PodInfo{"node-0": {info}}
		if plan := w.plan(t, w.job(gangOf("a", 1, 1, "1"))); len(plan.Placements) != placed {
			t.Errorf("where a pod of %s is nominated %d are placed, want %d: %v", scheduler, len(plan.Placements), placed, plan.Reason)
		}
	}
}
