// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"errors"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// ValidateFragmentationArgs checks the arguments of the plugin Fragmentation.
func ValidateFragmentationArgs(path *field.Path, args *config.FragmentationArgs) error {
	var all field.ErrorList
	for _, f := range []struct{ name, value string }{{"resource", args.Resource}, {"modelLabel", args.ModelLabel}} {
		for _, wrong := range validation.IsQualifiedName(f.value) {
			all = append(all, field.Invalid(path.Child(f.name), f.value, wrong))
		}
	}
	if args.HalfLife.Duration < config.ShortestHalfLife {
		all = append(all, field.Invalid(path.Child("halfLife"), args.HalfLife.Duration.String(), "must be at least "+config.ShortestHalfLife.String()))
	}
	if args.Cards != nil {
		if err := ValidateDeviceShareArgs(path.Child("cards"), args.Cards); err != nil {
			return errors.Join(all.ToAggregate(), err)
		}
	}
	return all.ToAggregate()
}
