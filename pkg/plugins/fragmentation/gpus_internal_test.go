// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/caldera-scheduler/caldera/pkg/node/fragment"
)

// TestModelsOfWholeGPUs: a pod names models by its node selector, or by terms of its node affinity that all do.
func TestModelsOfWholeGPUs(t *testing.T) {
	in := func(keys ...string) corev1.NodeSelectorTerm {
		term := corev1.NodeSelectorTerm{}
		for i := 0; i < len(keys); i += 2 {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: keys[i], Operator: corev1.NodeSelectorOpIn, Values: []string{keys[i+1]}})
		}
		return term
	}
	affinity := func(terms ...corev1.NodeSelectorTerm) *corev1.Pod {
		p := st.MakePod().Req(map[corev1.ResourceName]string{"cpu": "2", "gpu": "1"}).Obj()
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
		return p
	}
	not := affinity(in("model", "T4"))
	not.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Operator = corev1.NodeSelectorOpNotIn
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want fragment.Demand
	}{
		"any":              {affinity(), fragment.Demand{MilliCPU: 2000, GPUs: 1, Milli: 1000}},
		"two":              {affinity(in("model", "T4"), in("zone", "a", "model", "A100"), in("model", "T4")), fragment.Demand{MilliCPU: 2000, GPUs: 1, Milli: 1000, Models: "A100|T4"}},
		"any in a zone":    {affinity(in("model", "T4"), in("zone", "a")), fragment.Demand{MilliCPU: 2000, GPUs: 1, Milli: 1000}},
		"all but one":      {not, fragment.Demand{MilliCPU: 2000, GPUs: 1, Milli: 1000}},
		"a selector":       {st.MakePod().Req(map[corev1.ResourceName]string{"gpu": "2"}).NodeSelector(map[string]string{"model": "T4"}).Obj(), fragment.Demand{GPUs: 2, Milli: 1000, Models: "T4"}},
		"no GPU, no model": {st.MakePod().Req(map[corev1.ResourceName]string{"cpu": "1"}).NodeSelector(map[string]string{"model": "T4"}).Obj(), fragment.Demand{MilliCPU: 1000}},
		"memory that somebody has taken for GPUs": {
			st.MakePod().Req(map[corev1.ResourceName]string{"gpu": "40000"}).Obj(), fragment.Demand{GPUs: 128, Milli: 1000},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (whole{resource: "gpu", modelLabel: "model"}).demand(tc.pod); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
