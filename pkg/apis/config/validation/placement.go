// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// heaviest bounds weights, so that no sum of scores overflows.
const heaviest = 1_000_000

// ValidateBinpackArgs checks the arguments of the plugin Binpack.
func ValidateBinpackArgs(path *field.Path, args *config.BinpackArgs) error {
	return weights(path.Child("resources"), args.Resources).ToAggregate()
}

// ValidateResourceStrategyFitArgs checks the arguments of the plugin ResourceStrategyFit.
func ValidateResourceStrategyFitArgs(path *field.Path, args *config.ResourceStrategyFitArgs) error {
	all := append(weight(path.Child("fitWeight"), args.FitWeight, 0), weight(path.Child("scarcityWeight"), args.ScarcityWeight, 0)...)
	all = append(all, weights(path.Child("scarceResources"), args.ScarceResources)...)
	for _, name := range slices.Sorted(maps.Keys(args.Resources)) {
		one, strategy := path.Child("resources").Key(name), args.Resources[name]
		if err := arguments.Pattern(name); err != nil {
			all = append(all, field.Invalid(one, name, err.Error()))
		}
		if strategy.Type != config.LeastAllocated && strategy.Type != config.MostAllocated {
			all = append(all, field.NotSupported(one.Child("type"), strategy.Type, []config.StrategyType{config.LeastAllocated, config.MostAllocated}))
		}
		all = append(all, weight(one.Child("weight"), strategy.Weight, 1)...)
	}
	for _, name := range slices.Sorted(maps.Keys(args.Proportions)) {
		one, p := path.Child("proportions").Key(name), args.Proportions[name]
		for key, n := range map[string]float64{"cpu": p.CPU, "memory": p.Memory} {
			if !(n >= 0) || math.IsInf(n, 0) {
				all = append(all, field.Invalid(one.Child(key), n, "must be at least 0"))
			}
		}
	}
	return all.ToAggregate()
}

func weights(path *field.Path, of map[string]int64) field.ErrorList {
	var all field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(of)) {
		all = append(all, weight(path.Key(name), of[name], 0)...)
	}
	return all
}

func weight(path *field.Path, n, least int64) field.ErrorList {
	if n < least || n > heaviest {
		return field.ErrorList{field.Invalid(path, n, "must be from "+strconv.FormatInt(least, 10)+" to "+strconv.Itoa(heaviest))}
	}
	return nil
}
