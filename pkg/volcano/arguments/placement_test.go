// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

func TestDecodePredicates(t *testing.T) {
	with := func(change func(*arguments.Predicates)) arguments.Predicates {
		p := arguments.Predicates{
			Filters: map[string]bool{
				"NodeAffinity": true, "NodePorts": true, "TaintToleration": true, "InterPodAffinity": true,
				"NodeVolumeLimits": true, "VolumeZone": true, "PodTopologySpread": true, "VolumeBinding": true,
			},
			VolumeBindingTimeout: 600, VolumeBindingWeight: 1, DevicesFilterTimeout: 10,
		}
		if change != nil {
			change(&p)
		}
		return p
	}
	run(t, "predicates", arguments.DecodePredicates, map[string]decodes[arguments.Predicates]{
		"nothing given": {"{}", with(nil), nil},
		"filters off": {
			"{predicate.NodePortsEnable: false, predicate.PodAffinityEnable: 'false', predicate.VolumeZoneEnable: true}",
			with(func(p *arguments.Predicates) { p.Filters["NodePorts"], p.Filters["InterPodAffinity"] = false, false }), nil,
		},
		"volumes": {
			"{volumebinding.bindTimeoutSeconds: 60, volumebinding.weight: 3, volumebinding.shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}",
			with(func(p *arguments.Predicates) {
				p.VolumeBindingTimeout, p.VolumeBindingWeight = 60, 3
				p.VolumeBindingShape = []arguments.UtilizationPoint{{Utilization: 0, Score: 0}, {Utilization: 100, Score: 10}}
			}), nil,
		},
		"what has no effect": {
			"{predicate.CacheEnable: true, predicate.DynamicResourceAllocationEnable: false, dynamicresources.filterTimeoutSeconds: 0}",
			with(func(p *arguments.Predicates) { p.DevicesFilterTimeout = 0 }), nil,
		},
		"what Volcano read in earlier versions": {
			"{predicate.GPUSharingEnable: true, predicate.GPUNumberEnable: true, predicate.ProportionalEnable: true, predicate.resources: nvidia.com/gpu, " +
				"predicate.resources.nvidia.com/gpu.cpu: 4, predicate.resources.nvidia.com/gpu.memory: 8}",
			with(nil),
			[]string{
				`plugins[0].arguments[predicate.GPUNumberEnable]: Forbidden: Volcano does not read it any more; use deviceshare.GPUNumberEnable of the plugin deviceshare`,
				`plugins[0].arguments[predicate.GPUSharingEnable]: Forbidden: Volcano does not read it any more; use deviceshare.GPUSharingEnable of the plugin deviceshare`,
				`plugins[0].arguments[predicate.ProportionalEnable]: Forbidden: Volcano does not read it any more; use enable of the plugin resource-strategy-fit, in its section proportional`,
				`plugins[0].arguments[predicate.resources]: Forbidden: Volcano does not read it any more; use resources of the plugin resource-strategy-fit, in its section proportional`,
				`plugins[0].arguments[predicate.resources.nvidia.com/gpu.cpu]: Forbidden: Volcano does not read it any more; use resourceProportion.nvidia.com/gpu.cpu of the plugin resource-strategy-fit, in its section proportional`,
				`plugins[0].arguments[predicate.resources.nvidia.com/gpu.memory]: Forbidden: Volcano does not read it any more; use resourceProportion.nvidia.com/gpu.memory of the plugin resource-strategy-fit, in its section proportional`,
			},
		},
		"everything is wrong": {
			"{predicate.NodePortEnable: true, predicate.CacheEnable: maybe, volumebinding.shape: [{utilization: 50, score: 0}, {utilization: 50, score: 1}], volumebinding.weight: -1}",
			with(nil),
			[]string{
				`plugins[0].arguments[volumebinding.weight]: Invalid value: -1: must be a whole number from 0 to 1000000`,
				`plugins[0].arguments[volumebinding.shape]: Invalid value: [{"score":0,"utilization":50},{"score":1,"utilization":50}]: must be a list of points with rising utilization from 0 to 100 and a score from 0 to 10, such as [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]`,
				`plugins[0].arguments[predicate.CacheEnable]: Invalid value: "maybe": must be true or false`,
				`plugins[0].arguments[predicate.NodePortEnable]: Forbidden: unknown key; did you mean "predicate.NodePortsEnable"?`,
			},
		},
	})
}

func TestDecodeNodeOrder(t *testing.T) {
	run(t, "nodeorder", arguments.DecodeNodeOrder, map[string]decodes[arguments.NodeOrder]{
		"nothing given": {"{}", arguments.NodeOrder{
			LeastRequested: 1, BalancedResource: 1, NodeAffinity: 2, ImageLocality: 1, PodAffinity: 2, TaintToleration: 3, PodTopologySpread: 2,
		}, nil},
		"all given": {
			"{leastrequested.weight: 0, mostrequested.weight: '7', balancedresource.weight: 2, nodeaffinity.weight: 3, imagelocality.weight: 4, podaffinity.weight: 5, tainttoleration.weight: 6, podtopologyspread.weight: 8}",
			arguments.NodeOrder{
				MostRequested: 7, BalancedResource: 2, NodeAffinity: 3, ImageLocality: 4, PodAffinity: 5, TaintToleration: 6, PodTopologySpread: 8,
			},
			nil,
		},
		"wrong": {
			"{leastrequested.weight: -1, mostrequested.wieght: 1}",
			arguments.NodeOrder{LeastRequested: 1, BalancedResource: 1, NodeAffinity: 2, ImageLocality: 1, PodAffinity: 2, TaintToleration: 3, PodTopologySpread: 2},
			[]string{
				"plugins[0].arguments[leastrequested.weight]: Invalid value: -1: must be a whole number from 0 to 1000000",
				`plugins[0].arguments[mostrequested.wieght]: Forbidden: unknown key; did you mean "mostrequested.weight"?`,
			},
		},
	})
}

func TestDecodeBinpack(t *testing.T) {
	weights := func(cpu, memory int64) map[string]int64 { return map[string]int64{"cpu": cpu, "memory": memory} }
	run(t, "binpack", arguments.DecodeBinpack, map[string]decodes[arguments.Binpack]{
		"nothing given": {"{}", arguments.Binpack{Weight: 1, Args: config.BinpackArgs{Resources: weights(1, 1)}}, nil},
		"weights of devices; those of cores and memory are not in the list": {
			"{binpack.weight: 10, binpack.cpu: 0, binpack.memory: 2, binpack.resources: ' nvidia.com/gpu, ,cpu, x.com/y', binpack.resources.nvidia.com/gpu: 5, binpack.resources.cpu: 9}",
			arguments.Binpack{Weight: 10, Args: config.BinpackArgs{Resources: map[string]int64{"cpu": 0, "memory": 2, "nvidia.com/gpu": 5, "x.com/y": 1}}},
			nil,
		},
		"the weight of a resource that is not listed": {
			"{binpack.resources: x.com/y, binpack.resources.x.com/z: 2}",
			arguments.Binpack{Weight: 1, Args: config.BinpackArgs{Resources: map[string]int64{"cpu": 1, "memory": 1, "x.com/y": 1}}},
			[]string{`plugins[0].arguments[binpack.resources.x.com/z]: Forbidden: unknown key; did you mean "binpack.resources.x.com/y"?`},
		},
		"a list that is none": {
			"{binpack.resources: [x.com/y], binpack.cpu: 1.5}",
			arguments.Binpack{Weight: 1, Args: config.BinpackArgs{Resources: weights(1, 1)}},
			[]string{
				`plugins[0].arguments[binpack.resources]: Invalid value: ["x.com/y"]: must be names of resources with commas, such as "nvidia.com/gpu, example.com/foo"`,
				"plugins[0].arguments[binpack.cpu]: Invalid value: 1.5: must be a whole number from 0 to 1000000",
			},
		},
	})
}

func TestDecodeResourceStrategyFit(t *testing.T) {
	least := config.ResourceStrategy{Type: config.LeastAllocated, Weight: 1}
	defaults := map[string]config.ResourceStrategy{"cpu": least, "memory": least}
	type decoded = arguments.ResourceStrategyFit
	run(t, "resource-strategy-fit", arguments.DecodeResourceStrategyFit, map[string]decodes[decoded]{
		"nothing given": {"{}", decoded{Args: config.ResourceStrategyFitArgs{FitWeight: 10, Resources: defaults}}, nil},
		"everything given": {
			`{resourceStrategyFitWeight: 3, resources: {nvidia.com/*: {type: MostAllocated, weight: 2}, cpu: {}},
			sra: {enable: true, resources: "a.com/b, c.com/d", weight: 5, resourceWeight: {a.com/b: 2}},
			proportional: {enable: true, resources: a.com/b, resourceProportion: {a.com/b.cpu: 4.5}}}`,
			decoded{Args: config.ResourceStrategyFitArgs{
				FitWeight: 3, ScarcityWeight: 5,
				Resources:       map[string]config.ResourceStrategy{"nvidia.com/*": {Type: config.MostAllocated, Weight: 2}, "cpu": least},
				ScarceResources: map[string]int64{"a.com/b": 2, "c.com/d": 1},
				Proportions:     map[string]config.Proportion{"a.com/b": {CPU: 4.5, Memory: 1}},
			}},
			nil,
		},
		"parts that are not enabled": {
			"{sra: {resources: a.com/b, weight: 5}, proportional: {resources: a.com/b}, resources: {}}",
			decoded{Args: config.ResourceStrategyFitArgs{FitWeight: 10, Resources: map[string]config.ResourceStrategy{}}},
			nil,
		},
		"everything is wrong": {
			"{resources: {'*': {type: Least, wait: 1}}, sra: {enable: true, resources: a.com/b}, proportional: 4}",
			decoded{Args: config.ResourceStrategyFitArgs{
				FitWeight: 10, Resources: map[string]config.ResourceStrategy{"*": least}, ScarceResources: map[string]int64{"a.com/b": 1},
			}},
			[]string{
				`plugins[0].arguments[resources][*]: Invalid value: "*": a pattern has one "*", at its end, and something before it`,
				`plugins[0].arguments[resources][*][type]: Invalid value: "Least": must be LeastAllocated or MostAllocated`,
				`plugins[0].arguments[resources][*][wait]: Forbidden: unknown key; valid are "type", "weight"`,
				`plugins[0].arguments[proportional]: Invalid value: 4: must be a map`,
				`plugins[0].arguments[sra].weight: Required value: without a weight scarce resources do not count`,
			},
		},
	})
}

func TestDecodeNodeGroup(t *testing.T) {
	run(t, "nodegroup", arguments.DecodeNodeGroup, map[string]decodes[arguments.NodeGroup]{
		"nothing given": {"{}", arguments.NodeGroup{Args: config.NodeGroupArgs{Strict: true}}, nil},
		"all given": {
			"{strict: false, enablePreferredOrder: 'true'}", arguments.NodeGroup{Args: config.NodeGroupArgs{EnablePreferredOrder: true}}, nil,
		},
	})
	entry := &config.TierPlugin{Name: "nodegroup", Switches: map[config.Switch]bool{config.EnableHierarchy: true}}
	if got, errs := arguments.DecodeNodeGroup(entry, nil); !got.Args.EnableHierarchy || len(errs) > 0 {
		t.Errorf("with the switch it is %v, %v", got, errs)
	}
}

func TestDecodeNumaAware(t *testing.T) {
	run(t, "numa-aware", arguments.DecodeNumaAware, map[string]decodes[int64]{
		"no arguments": {"{}", 1, nil},
		"given":        {"{weight: '10'}", 10, nil},
		"what is wrong": {
			"{weight: -1, policy: none}", 1,
			[]string{
				"plugins[0].arguments[weight]: Invalid value: -1: must be a whole number from 0 to 1000000",
				`plugins[0].arguments[policy]: Forbidden: unknown key; valid are "weight"`,
			},
		},
	})
}

func TestDecodeTaskTopology(t *testing.T) {
	run(t, "task-topology", arguments.DecodeTaskTopology, map[string]decodes[int64]{
		"nothing given": {"{}", 1, nil},
		"given":         {"{task-topology.weight: 10}", 10, nil},
		"wrong": {
			"{task-topology.weight: ten}", 1,
			[]string{`plugins[0].arguments[task-topology.weight]: Invalid value: "ten": must be a whole number from 0 to 1000000`},
		},
	})
}
