// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// subGroups reads by which policies the pods of a PodGroup start in subgroups, and what is wrong with these though they can be followed.
func subGroups(g *volcano.PodGroup) (policies []model.SubGroupPolicy, problem string) {
	names := map[string]bool{}
	for i := range g.Spec.SubGroupPolicy {
		p, wrong := subGroupPolicy(i, &g.Spec.SubGroupPolicy[i])
		if names[p.Name] {
			p.Problem = fmt.Sprintf("spec.subGroupPolicy[%d].name is %q, as that of another policy is: give it another name", i, p.Name)
		}
		names[p.Name] = true
		policies, problem = append(policies, p), model.Problems(problem, wrong)
	}
	return policies, problem
}

// subGroupPolicy reads one policy. One without a label selector is for all pods of the PodGroup, one without a name is called by its position.
func subGroupPolicy(i int, spec *volcano.SubGroupPolicySpec) (p model.SubGroupPolicy, problem string) {
	field := fmt.Sprintf("spec.subGroupPolicy[%d]", i)
	p = model.SubGroupPolicy{
		Name: cmp.Or(spec.Name, fmt.Sprintf("policy-%d", i)), Size: int(ptr.Deref(spec.SubGroupSize, 1)), Min: int(ptr.Deref(spec.MinSubGroups, 0)),
		Selector: labels.Everything(), Keys: spec.MatchLabelKeys,
	}
	if spec.LabelSelector != nil {
		var err error
		if p.Selector, err = metav1.LabelSelectorAsSelector(spec.LabelSelector); err != nil {
			p.Problem = fmt.Sprintf("%s.labelSelector cannot be read: %v: correct it", field, err)
		}
	}
	if p.Size < 1 {
		p.Problem = fmt.Sprintf("%s.subGroupSize is %d: set it to 1 or more", field, p.Size)
	}
	if p.Min < 0 {
		p.Problem = fmt.Sprintf("%s.minSubGroups is %d: set it to 0 or more", field, p.Min)
	}
	p.Topology, problem = networkTopology(field+".networkTopology", spec.NetworkTopology)
	return p, problem
}
