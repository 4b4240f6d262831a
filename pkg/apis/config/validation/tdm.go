// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// ValidateTDMArgs checks the arguments of the plugin TDM.
func ValidateTDMArgs(path *field.Path, args *config.TDMArgs) error {
	var all field.ErrorList
	for _, zone := range slices.Sorted(maps.Keys(args.RevocableZones)) {
		one, window := path.Child("revocableZones").Key(zone), args.RevocableZones[zone]
		if zone == "" {
			all = append(all, field.Required(one, "name the zone"))
		}
		for _, problem := range validation.IsValidLabelValue(zone) {
			all = append(all, field.Invalid(one, zone, "no node can have this zone: "+problem))
		}
		if _, err := arguments.ParseWindow(window); err != nil {
			all = append(all, field.Invalid(one, window, err.Error()))
		}
	}
	return all.ToAggregate()
}
