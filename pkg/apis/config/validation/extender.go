// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// ValidateExtenderArgs checks the arguments of the plugin Extender.
func ValidateExtenderArgs(path *field.Path, args *config.ExtenderArgs) error {
	all := weight(path.Child("maxScore"), args.MaxScore, 1)
	if err := arguments.WebAddress(args.URLPrefix); err != nil {
		all = append(all, field.Invalid(path.Child("urlPrefix"), args.URLPrefix, err.Error()))
	}
	all = append(all, arguments.ExtenderTLS(path.Child("tlsConfig"), &args.TLSConfig, args.URLPrefix)...)
	if args.HTTPTimeout.Duration <= 0 {
		all = append(all, field.Invalid(path.Child("httpTimeout"), args.HTTPTimeout.Duration.String(), "must be more than 0s"))
	}
	if args.PredicateVerb+args.PrioritizeVerb+args.AllocateFuncVerb+args.DeallocateFuncVerb == "" {
		all = append(all, field.Required(path.Child("predicateVerb"), "the plugin asks nothing: give at least one verb, or leave it out"))
	}
	if i := slices.Index(args.ManagedResources, ""); i >= 0 {
		all = append(all, field.Required(path.Child("managedResources").Index(i), "name a resource, such as nvidia.com/gpu"))
	}
	return all.ToAggregate()
}
