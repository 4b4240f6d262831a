// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
)

func TestGangPreemptionArgs(t *testing.T) {
	path := field.NewPath("profiles").Index(0).Child("pluginConfig").Key("GangPreemption")
	const at = "profiles[0].pluginConfig[GangPreemption]."
	for name, tc := range map[string]struct {
		percentage, absolute int32
		want                 []string
	}{
		"the defaults":      {10, 100, nil},
		"a percentage only": {100, 0, nil},
		"a number only":     {0, 1, nil},
		"no node is looked at": {0, 0, []string{
			at + "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as minCandidateNodesPercentage",
			at + "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute",
		}},
		"more nodes than there are": {101, 1, []string{at + "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"}},
		"less than none":            {10, -1, []string{at + "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)"}},
	} {
		t.Run(name, func(t *testing.T) {
			args := &config.GangPreemptionArgs{MinCandidateNodesPercentage: tc.percentage, MinCandidateNodesAbsolute: tc.absolute}
			if diff := cmp.Diff(tc.want, messages(validation.ValidateGangPreemptionArgs(path, args))); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}
