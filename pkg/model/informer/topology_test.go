// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
			&model.NetworkTopology{Field: "spec.networkTopology", Hard: true, HighestTier: 2}, "",
		},
		"by name": {
			volcano.PodGroupSpec{NetworkTopology: &volcano.NetworkTopologySpec{Mode: volcano.HardNetworkTopologyMode, HighestTierName: "rack"}},
			&model.NetworkTopology{Field: "spec.networkTopology", Hard: true, TierName: "rack"}, "",
		},
		"soft": {
			volcano.PodGroupSpec{NetworkTopology: &volcano.NetworkTopologySpec{Mode: volcano.SoftNetworkTopologyMode}}, &model.NetworkTopology{Field: "spec.networkTopology"}, "",
		},
		"hard without a tier": {
			volcano.PodGroupSpec{NetworkTopology: &volcano.NetworkTopologySpec{Mode: volcano.HardNetworkTopologyMode}},
			&model.NetworkTopology{Field: "spec.networkTopology"},
			"spec.networkTopology is hard and says no tier: set highestTierAllowed or highestTierName; mode soft is used until then",
		},
		"two tiers": {
			volcano.PodGroupSpec{NetworkTopology: &volcano.NetworkTopologySpec{HighestTierAllowed: new(1), HighestTierName: "zone"}},
			&model.NetworkTopology{Field: "spec.networkTopology", Hard: true, HighestTier: 1},
			"spec.networkTopology has both highestTierAllowed and highestTierName: remove one; highestTierAllowed 1 is used until then",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := readGroup(t, tc.spec)
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

// readGroup is a PodGroup as the model has it.
func readGroup(t *testing.T, spec volcano.PodGroupSpec) *model.Group {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	group := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "g"}, Spec: spec}
	clients, _ := groupAPIs(bothGroupAPI, []runtime.Object{group}, nil)
	state := model.NewState()
	if err := informer.Groups(ctx, state, clients); err != nil {
		t.Fatal(err)
	}
	return state.Job(model.JobKey{Source: model.FromVolcano, Namespace: "team", Name: "g"}).Group
}

func TestSubGroupsOfPodGroups(t *testing.T) {
	listFirst(t)
	workers := &metav1.LabelSelector{MatchLabels: map[string]string{"role": "worker"}}
	for name, tc := range map[string]struct {
		policies []volcano.SubGroupPolicySpec
		want     []model.SubGroupPolicy
		// problem is what the PodGroup is told though it can be followed.
		problem string
	}{
		"all that can be said": {
			policies: []volcano.SubGroupPolicySpec{{
				Name: "tp", SubGroupSize: new(int32(4)), MinSubGroups: new(int32(2)), LabelSelector: workers, MatchLabelKeys: []string{"a", "b"},
				NetworkTopology: &volcano.NetworkTopologySpec{HighestTierAllowed: new(1)},
			}},
			want: []model.SubGroupPolicy{{
				Name: "tp", Size: 4, Min: 2, Selector: labels.SelectorFromSet(labels.Set{"role": "worker"}), Keys: []string{"a", "b"},
				Topology: &model.NetworkTopology{Field: "spec.subGroupPolicy[0].networkTopology", Hard: true, HighestTier: 1},
			}},
		},
		"nothing": {
			policies: []volcano.SubGroupPolicySpec{{}}, want: []model.SubGroupPolicy{{Name: "policy-0", Size: 1, Selector: labels.Everything()}},
		},
		"a topology without a tier": {
			policies: []volcano.SubGroupPolicySpec{{Name: "tp", NetworkTopology: &volcano.NetworkTopologySpec{}}},
			want: []model.SubGroupPolicy{{
				Name: "tp", Size: 1, Selector: labels.Everything(), Topology: &model.NetworkTopology{Field: "spec.subGroupPolicy[0].networkTopology"},
			}},
			problem: "spec.subGroupPolicy[0].networkTopology is hard and says no tier: set highestTierAllowed or highestTierName; mode soft is used until then",
		},
		"a selector that cannot be read": {
			policies: []volcano.SubGroupPolicySpec{{Name: "tp", LabelSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}},
			want: []model.SubGroupPolicy{{
				Name: "tp", Size: 1, Problem: `spec.subGroupPolicy[0].labelSelector cannot be read: "Near" is not a valid label selector operator: correct it`,
			}},
		},
		"no size, and a negative minimum": {
			policies: []volcano.SubGroupPolicySpec{{Name: "a", SubGroupSize: new(int32(0))}, {Name: "b", MinSubGroups: new(int32(-1))}},
			want: []model.SubGroupPolicy{
				{Name: "a", Selector: labels.Everything(), Problem: "spec.subGroupPolicy[0].subGroupSize is 0: set it to 1 or more"},
				{Name: "b", Size: 1, Min: -1, Selector: labels.Everything(), Problem: "spec.subGroupPolicy[1].minSubGroups is -1: set it to 0 or more"},
			},
		},
		"a name twice": {
			policies: []volcano.SubGroupPolicySpec{{Name: "a"}, {Name: "a"}},
			want: []model.SubGroupPolicy{
				{Name: "a", Size: 1, Selector: labels.Everything()},
				{Name: "a", Size: 1, Selector: labels.Everything(), Problem: `spec.subGroupPolicy[1].name is "a", as that of another policy is: give it another name`},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := readGroup(t, volcano.PodGroupSpec{SubGroupPolicy: tc.policies})
				sameSelector := cmp.Comparer(func(a, b labels.Selector) bool { return fmt.Sprint(a) == fmt.Sprint(b) })
				if diff := cmp.Diff(tc.want, got.SubGroups, sameSelector); diff != "" {
					t.Errorf("subgroups (-want,+got)\n%s", diff)
				}
				if got.Problem != tc.problem {
					t.Errorf("problem is %q, want %q", got.Problem, tc.problem)
				}
			})
		})
	}
}
