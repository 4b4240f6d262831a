// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
)

func TestPlacementArgs(t *testing.T) {
	path := field.NewPath("args")
	binpack := func(weight int64) error {
		return validation.ValidateBinpackArgs(path, &config.BinpackArgs{Resources: map[string]int64{"cpu": weight, "x.com/y": 0}})
	}
	strategies := func(change func(*config.ResourceStrategyFitArgs)) error {
		args := &config.ResourceStrategyFitArgs{FitWeight: 1, Resources: map[string]config.ResourceStrategy{"x.com/*": {Type: config.MostAllocated, Weight: 1}}}
		change(args)
		return validation.ValidateResourceStrategyFitArgs(path, args)
	}
	network := func(fading float64, evicting int32) error {
		return validation.ValidateNetworkTopologyArgs(path, &config.NetworkTopologyArgs{Resources: map[string]int64{"cpu": 1}, Fading: fading, EvictingHyperNodes: evicting})
	}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"network":                          {network(0, 1), ""},
		"network: fading below 0":          {network(-1, 1), "args.fading: Invalid value: -1: must be at least 0"},
		"network: fading is no number":     {network(math.NaN(), 1), "args.fading: Invalid value: NaN: must be at least 0"},
		"network: evictions nowhere":       {network(1, 0), "args.evictingHyperNodes: Invalid value: 0: must be at least 1"},
		"binpack":                          {binpack(1), ""},
		"binpack: a weight below 0":        {binpack(-1), "args.resources[cpu]: Invalid value: -1: must be from 0 to 1000000"},
		"binpack: a weight that overflows": {binpack(1 << 40), "args.resources[cpu]: Invalid value: 1099511627776: must be from 0 to 1000000"},
		"strategies":                       {strategies(func(*config.ResourceStrategyFitArgs) {}), ""},
		"strategies: proportions only": {strategies(func(a *config.ResourceStrategyFitArgs) {
			a.FitWeight = 0
			a.Proportions = map[string]config.Proportion{"x.com/y": {}}
		}), ""},
		"strategies: a weight below 0": {strategies(func(a *config.ResourceStrategyFitArgs) { a.ScarcityWeight = -1 }), "args.scarcityWeight: Invalid value: -1: must be from 0 to 1000000"},
		"strategies: an unknown direction": {strategies(func(a *config.ResourceStrategyFitArgs) {
			a.Resources["cpu"] = config.ResourceStrategy{Type: "Max", Weight: 1}
		}), `args.resources[cpu].type: Unsupported value: "Max": supported values: "LeastAllocated", "MostAllocated"`},
		"strategies: a weight of 0": {strategies(func(a *config.ResourceStrategyFitArgs) {
			a.Resources["cpu"] = config.ResourceStrategy{Type: config.LeastAllocated}
		}), "args.resources[cpu].weight: Invalid value: 0: must be from 1 to 1000000"},
		"strategies: a pattern in the middle": {
			strategies(func(a *config.ResourceStrategyFitArgs) {
				a.Resources["a*b"] = config.ResourceStrategy{Type: config.LeastAllocated, Weight: 1}
			}),
			`args.resources[a*b]: Invalid value: "a*b": a pattern has one "*", at its end, and something before it`,
		},
		"strategies: no number": {
			strategies(func(a *config.ResourceStrategyFitArgs) {
				a.Proportions = map[string]config.Proportion{"x.com/y": {CPU: math.NaN()}}
			}),
			"args.proportions[x.com/y].cpu: Invalid value: NaN: must be at least 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if tc.err != nil {
				got = tc.err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}
