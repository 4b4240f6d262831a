// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/suggest"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// ValidateUsageArgs checks the arguments of the plugin Usage.
func ValidateUsageArgs(path *field.Path, args *config.UsageArgs) error {
	all := append(weight(path.Child("cpuWeight"), args.CPUWeight, 0), weight(path.Child("memoryWeight"), args.MemoryWeight, 0)...)
	if args.CPUWeight == 0 && args.MemoryWeight == 0 {
		all = append(all, field.Invalid(path.Child("cpuWeight"), 0, "must be more than 0 if memoryWeight is 0; to filter only, disable the plugin at score"))
	}
	all = append(all, upTo(path.Child("cpuThreshold"), args.CPUThreshold, 100)...)
	all = append(all, upTo(path.Child("memoryThreshold"), args.MemoryThreshold, 100)...)
	all = append(all, usageEstimator(path.Child("estimator"), &args.Estimator)...)
	all = append(all, usageMetrics(path.Child("metrics"), &args.Metrics)...)
	return all.ToAggregate()
}

func usageEstimator(path *field.Path, e *config.UsageEstimator) field.ErrorList {
	all := upTo(path.Child("requestRatio"), e.RequestRatio, 1)
	all = append(all, upTo(path.Child("burstRatio"), e.BurstRatio, 1)...)
	all = append(all, upTo(path.Child("riskThreshold"), e.RiskThreshold, 1)...)
	if !(e.RiskFactor >= 1) || math.IsInf(e.RiskFactor, 0) {
		all = append(all, field.Invalid(path.Child("riskFactor"), e.RiskFactor, "must be at least 1"))
	}
	for _, name := range slices.Sorted(maps.Keys(e.BestEffort)) {
		at, quantity := path.Child("bestEffort").Key(string(name)), e.BestEffort[name]
		switch {
		case name != corev1.ResourceCPU && name != corev1.ResourceMemory:
			all = append(all, suggest.Unsupported(at, string(name), []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}))
		case quantity.Sign() < 0:
			all = append(all, field.Invalid(at, quantity.String(), "must be at least 0"))
		}
	}
	return all
}

func usageMetrics(path *field.Path, m *config.UsageMetrics) field.ErrorList {
	var all field.ErrorList
	switch at := path.Child("type"); {
	case m.Type == "":
		all = append(all, field.Required(at, "write prometheus, prometheus_adaptor or elasticsearch"))
	case !slices.Contains(config.MetricsTypes(), m.Type):
		all = append(all, suggest.Unsupported(at, string(m.Type), config.MetricsTypes()))
	}
	if m.Address != "" || arguments.NeedsAddress(m.Type) {
		if err := arguments.Address(m.Address); err != nil {
			all = append(all, field.Invalid(path.Child("address"), m.Address, err.Error()))
		}
	}
	if err := arguments.Interval(m.Interval.Duration); err != nil {
		all = append(all, field.Invalid(path.Child("interval"), m.Interval.Duration.String(), err.Error()))
	}
	if d := m.Timeout.Duration; d <= 0 {
		all = append(all, field.Invalid(path.Child("timeout"), d.String(), "must be more than 0s"))
	}
	if err := arguments.NodeLabel(m.NodeLabel); err != nil {
		all = append(all, field.Invalid(path.Child("nodeLabel"), m.NodeLabel, err.Error()))
	}
	return all
}

func upTo(path *field.Path, n, most float64) field.ErrorList {
	if !(n >= 0 && n <= most) {
		return field.ErrorList{field.Invalid(path, n, fmt.Sprintf("must be from 0 to %v", most))}
	}
	return nil
}
