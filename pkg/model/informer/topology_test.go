// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/model/informer"
)

func TestTopologiesOfPodGroups(t *testing.T) {
	listFirst(t)
	for name, tc := range map[string]struct {
		spec    volcano.PodGroupSpec
		want    *model.NetworkTopology
		problem string
	}{
		"none": {volcano.PodGroupSpec{}, nil, ""},
		"hard by default": {
			volcano.PodGroupSpec{NetworkTopology: &volcano.NetworkTopologySpec{HighestTierAllowed: new(2)}},
			&model.NetworkTopology{Hard: true, HighestTier: 2}, "",
		},
		"by name": {
			volcano.PodGroupSpec{NetworkTopology: &volcano.NetworkTopologySpec{Mode: volcano.HardNetworkTopologyMode, HighestTierName: "rack"}},
			&model.NetworkTopology{Hard: true, TierName: "rack"}, "",
		},
		"soft": {
			volcano.PodGroupSpec{NetworkTopology: &volcano.NetworkTopologySpec{Mode: volcano.SoftNetworkTopologyMode}}, &model.NetworkTopology{}, "",
		},
		"hard without a tier": {
			volcano.PodGroupSpec{NetworkTopology: &volcano.NetworkTopologySpec{Mode: volcano.HardNetworkTopologyMode}},
			&model.NetworkTopology{},
			"spec.networkTopology is hard and says no tier: set highestTierAllowed or highestTierName; mode soft is used until then",
		},
		"two tiers": {
			volcano.PodGroupSpec{NetworkTopology: &volcano.NetworkTopologySpec{HighestTierAllowed: new(1), HighestTierName: "zone"}},
			&model.NetworkTopology{Hard: true, HighestTier: 1},
			"spec.networkTopology has both highestTierAllowed and highestTierName: remove one; highestTierAllowed 1 is used until then",
		},
		"groups of pods": {
			volcano.PodGroupSpec{SubGroupPolicy: []volcano.SubGroupPolicySpec{{Name: "a"}}},
			nil,
			"spec.subGroupPolicy has no effect, its pods are placed as tasks of the job: use a PodGroup for each group of pods that is to start together",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				group := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "g"}, Spec: tc.spec}
				clients, _ := groupAPIs(bothGroupAPI, []runtime.Object{group}, nil)
				state := model.NewState()
				if err := informer.Groups(ctx, state, clients); err != nil {
					t.Fatal(err)
				}
				got := state.Job(model.JobKey{Source: model.FromVolcano, Namespace: "team", Name: "g"}).Group
				if diff := cmp.Diff(tc.want, got.Topology); diff != "" {
					t.Errorf("topology (-want,+got)\n%s", diff)
				}
				if got.Problem != tc.problem {
					t.Errorf("problem is %q, want %q", got.Problem, tc.problem)
				}
			})
		})
	}
}
