// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

import (
	"math"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// NetworkTopology are the arguments of the plugin network-topology-aware.
type NetworkTopology struct {
	// Weight is how much the scores of the plugin count; at least 0, which turns them off.
	Weight int64
	Args   config.NetworkTopologyArgs
}

// DecodeNetworkTopology reads the arguments and switches of the plugin network-topology-aware; path is that of the plugin's
// entry. Volcano takes the default for a negative value (pkg/scheduler/plugins/network-topology-aware); here it is an error.
func DecodeNetworkTopology(p *config.TierPlugin, path *field.Path) (NetworkTopology, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	const fading, hyperNodes = 0.8, 8
	decoded := NetworkTopology{Weight: weight(d, "weight", 1), Args: config.NetworkTopologyArgs{
		Gangs:              p.Enabled(config.EnableHyperNodeGradient),
		Resources:          d.resourceWeights("hypernode.binpack."),
		NormalPods:         value(d, "hypernode.binpack.normal-pod.enable", true, Bool),
		Fading:             value(d, "hypernode.binpack.normal-pod.fading", fading, number(0)),
		EvictingHyperNodes: int32(value(d, "hypernode.gradient.evict.max-hypernodes", hyperNodes, integer(1, math.MaxInt32))),
	}}
	return decoded, d.finish(p.Name)
}
