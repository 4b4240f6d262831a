// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
)

func TestWhatKubeSchedulerReadsForGangPreemption(t *testing.T) {
	testReads(t, "GangPreemption", map[string]reads{
		"a profile that gives no arguments": {"", &config.GangPreemptionArgs{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100}},
		"empty arguments": {
			"  pluginConfig: [{name: GangPreemption, args: {}}]", &config.GangPreemptionArgs{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100},
		},
		"one argument, which is zero": {
			"  pluginConfig: [{name: GangPreemption, args: {minCandidateNodesPercentage: 0}}]", &config.GangPreemptionArgs{MinCandidateNodesAbsolute: 100},
		},
		"all arguments, and their kind": {
			"  pluginConfig: [{name: GangPreemption, args: {apiVersion: kubescheduler.config.k8s.io/v1, kind: GangPreemptionArgs, " +
				"minCandidateNodesPercentage: 25, minCandidateNodesAbsolute: 7}}]",
			&config.GangPreemptionArgs{MinCandidateNodesPercentage: 25, MinCandidateNodesAbsolute: 7},
		},
		"values that cannot be meant are kept, for the validation to refuse": {
			"  pluginConfig: [{name: GangPreemption, args: {minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}}]", &config.GangPreemptionArgs{},
		},
	})
}

func TestWhatKubeSchedulerRefusesForGangPreemption(t *testing.T) {
	testRefuses(t, "GangPreemption", map[string]refuses{
		"a mistyped field":          {"{minCandidateNodes: 5}", `unknown field "minCandidateNodes"`},
		"a field given twice":       {"{minCandidateNodesAbsolute: 8, minCandidateNodesAbsolute: 9}", `"minCandidateNodesAbsolute" already set`},
		"a word for a number":       {"{minCandidateNodesPercentage: all}", "minCandidateNodesPercentage of type int32"},
		"arguments of upstream's":   {"{apiVersion: kubescheduler.config.k8s.io/v1, kind: DefaultPreemptionArgs}", "GangPreemption"},
		"arguments of another kind": {"{apiVersion: kubescheduler.config.k8s.io/v1, kind: GangArgs}", "GangPreemption"},
	})
}

func TestGangPreemptionArgsSurviveConversion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		internal := &config.GangPreemptionArgs{
			MinCandidateNodesPercentage: rapid.Int32().Draw(t, "percentage"), MinCandidateNodesAbsolute: rapid.Int32().Draw(t, "absolute"),
		}
		survives(t, internal, &v1.GangPreemptionArgs{}, &config.GangPreemptionArgs{})
	})
}

func TestGangPreemptionArgsReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var args []string
		if n := optional(t, "percentage", rapid.Int32()); n != nil {
			args = append(args, fmt.Sprintf("minCandidateNodesPercentage: %d", *n))
		}
		if n := optional(t, "absolute", rapid.Int32()); n != nil {
			args = append(args, fmt.Sprintf("minCandidateNodesAbsolute: %d", *n))
		}
		readsTheSame(t, "GangPreemption", args)
	})
}
