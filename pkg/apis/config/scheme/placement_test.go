// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
)

func TestWhatKubeSchedulerReadsAboutNodes(t *testing.T) {
	least := config.ResourceStrategy{Type: config.LeastAllocated, Weight: 1}
	for plugin, cases := range map[string]map[string]reads{
		"Binpack": {
			"Binpack without arguments": {"  pluginConfig: [{name: Binpack, args: {}}]", &config.BinpackArgs{Resources: map[string]int64{"cpu": 1, "memory": 1}}},
			"Binpack with weights":      {"  pluginConfig: [{name: Binpack, args: {resources: {x.com/y: 3, cpu: 0}}}]", &config.BinpackArgs{Resources: map[string]int64{"x.com/y": 3, "cpu": 0}}},
		},
		"ResourceStrategyFit": {
			"ResourceStrategyFit without arguments": {
				"  pluginConfig: [{name: ResourceStrategyFit, args: {}}]",
				&config.ResourceStrategyFitArgs{FitWeight: 10, Resources: map[string]config.ResourceStrategy{"cpu": least, "memory": least}},
			},
			"ResourceStrategyFit with parts of parts": {
				"  pluginConfig: [{name: ResourceStrategyFit, args: {fitWeight: 0, scarcityWeight: 2, resources: {x.com/*: {type: MostAllocated}, cpu: {weight: 4}}, scarceResources: {x.com/y: 1}, proportions: {x.com/y: {cpu: 0.5}}}}]",
				&config.ResourceStrategyFitArgs{
					ScarcityWeight:  2,
					Resources:       map[string]config.ResourceStrategy{"x.com/*": {Type: config.MostAllocated, Weight: 1}, "cpu": {Type: config.LeastAllocated, Weight: 4}},
					ScarceResources: map[string]int64{"x.com/y": 1},
					Proportions:     map[string]config.Proportion{"x.com/y": {CPU: 0.5, Memory: 1}},
				},
			},
		},
		"NodeGroup": {
			"NodeGroup without arguments": {"  pluginConfig: [{name: NodeGroup, args: {}}]", &config.NodeGroupArgs{Strict: true}},
			"NodeGroup with all":          {"  pluginConfig: [{name: NodeGroup, args: {strict: false, enablePreferredOrder: true, enableHierarchy: true}}]", &config.NodeGroupArgs{EnablePreferredOrder: true, EnableHierarchy: true}},
		},
	} {
		testReads(t, plugin, cases)
	}
}

func TestWhatKubeSchedulerRefusesAboutNodes(t *testing.T) {
	testRefuses(t, "Binpack", map[string]refuses{"a mistyped field of Binpack": {"{resource: {}}", `unknown field "resource"`}})
	testRefuses(t, "ResourceStrategyFit", map[string]refuses{"a mistyped field of a strategy": {"{resources: {cpu: {wait: 1}}}", `unknown field "resources.cpu.wait"`}})
	testRefuses(t, "NodeGroup", map[string]refuses{"a word for a flag": {"{strict: very}", "strict"}})
}

func TestArgsAboutNodesSurviveConversion(t *testing.T) {
	weights := func(least int64) *rapid.Generator[int64] { return rapid.Int64Min(least) }
	names := rapid.StringMatching(`[a-z]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		strategy := rapid.Custom(func(t *rapid.T) config.ResourceStrategy {
			return config.ResourceStrategy{
				Type:   rapid.SampledFrom([]config.StrategyType{config.LeastAllocated, config.MostAllocated}).Draw(t, "type"),
				Weight: weights(1).Draw(t, "weight"),
			}
		})
		proportion := rapid.Custom(func(t *rapid.T) config.Proportion {
			return config.Proportion{CPU: rapid.Float64Min(0).Draw(t, "cpu"), Memory: rapid.Float64Min(0).Draw(t, "memory")}
		})
		for _, pair := range [][3]runtime.Object{
			{&config.BinpackArgs{Resources: rapid.MapOf(names, weights(0)).Draw(t, "weights")}, &v1.BinpackArgs{}, &config.BinpackArgs{}},
			{&config.ResourceStrategyFitArgs{
				FitWeight: weights(0).Draw(t, "fit"), ScarcityWeight: weights(0).Draw(t, "scarcity"),
				Resources:       rapid.MapOfN(names, strategy, 1, -1).Draw(t, "resources"),
				ScarceResources: rapid.MapOfN(names, weights(0), 1, -1).Draw(t, "scarce"),
				Proportions:     rapid.MapOfN(names, proportion, 1, -1).Draw(t, "proportions"),
			}, &v1.ResourceStrategyFitArgs{}, &config.ResourceStrategyFitArgs{}},
			{&config.NodeGroupArgs{Strict: rapid.Bool().Draw(t, "strict"), EnableHierarchy: rapid.Bool().Draw(t, "hierarchy")}, &v1.NodeGroupArgs{}, &config.NodeGroupArgs{}},
		} {
			survives(t, pair[0], pair[1], pair[2])
		}
	})
}
