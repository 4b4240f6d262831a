// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

func TestDecodeNetworkTopology(t *testing.T) {
	defaults := func(change func(*arguments.NetworkTopology)) arguments.NetworkTopology {
		d := arguments.NetworkTopology{Weight: 1, Args: config.NetworkTopologyArgs{
			Gangs: true, Resources: map[string]int64{"cpu": 1, "memory": 1}, NormalPods: true, Fading: 0.8, EvictingHyperNodes: 8,
		}}
		change(&d)
		return d
	}
	run(t, "network-topology-aware", arguments.DecodeNetworkTopology, map[string]decodes[arguments.NetworkTopology]{
		"no arguments": {"{}", defaults(func(*arguments.NetworkTopology) {}), nil},
		"all": {
			`{weight: "10", hypernode.binpack.cpu: 2, hypernode.binpack.memory: 0, hypernode.binpack.resources: "nvidia.com/gpu, x.com/y",
			hypernode.binpack.resources.nvidia.com/gpu: 5, hypernode.binpack.normal-pod.enable: "false", hypernode.binpack.normal-pod.fading: 0,
			hypernode.gradient.evict.max-hypernodes: 3}`,
			arguments.NetworkTopology{Weight: 10, Args: config.NetworkTopologyArgs{
				Gangs: true, Resources: map[string]int64{"cpu": 2, "memory": 0, "nvidia.com/gpu": 5, "x.com/y": 1}, EvictingHyperNodes: 3,
			}},
			nil,
		},
		"what is wrong": {
			"{weight: -1, hypernode.binpack.normal-pod.fading: -0.1, hypernode.gradient.evict.max-hypernodes: 0, hypernode.binpack.gpu: 1}",
			defaults(func(*arguments.NetworkTopology) {}),
			[]string{
				"plugins[0].arguments[weight]: Invalid value: -1: must be a whole number from 0 to 1000000",
				"plugins[0].arguments[hypernode.binpack.normal-pod.fading]: Invalid value: -0.1: must be a number of at least 0",
				"plugins[0].arguments[hypernode.gradient.evict.max-hypernodes]: Invalid value: 0: must be a whole number from 1 to 2147483647",
				`plugins[0].arguments[hypernode.binpack.gpu]: Forbidden: unknown key; did you mean "hypernode.binpack.cpu"?`,
			},
		},
	})
}
