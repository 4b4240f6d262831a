// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// ValidateNetworkTopologyArgs checks the arguments of the plugin NetworkTopology.
func ValidateNetworkTopologyArgs(path *field.Path, args *config.NetworkTopologyArgs) error {
	all := weights(path.Child("resources"), args.Resources)
	if !(args.Fading >= 0) {
		all = append(all, field.Invalid(path.Child("fading"), args.Fading, "must be at least 0"))
	}
	if args.EvictingHyperNodes < 1 {
		all = append(all, field.Invalid(path.Child("evictingHyperNodes"), args.EvictingHyperNodes, "must be at least 1"))
	}
	return all.ToAggregate()
}
