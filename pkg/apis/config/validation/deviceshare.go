// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/suggest"
)

// ValidateDeviceShareArgs checks the arguments of the plugin DeviceShare.
func ValidateDeviceShareArgs(path *field.Path, args *config.DeviceShareArgs) error {
	var all field.ErrorList
	switch at := path.Child("mode"); {
	case args.Mode == "":
		all = append(all, field.Required(at, "write GPUNumber, GPUSharing or VGPU"))
	case !slices.Contains(config.DeviceModes(), args.Mode):
		all = append(all, suggest.Unsupported(at, string(args.Mode), config.DeviceModes()))
	}
	if at := path.Child("schedulePolicy"); args.SchedulePolicy != "" && !slices.Contains(config.DevicePolicies(), args.SchedulePolicy) {
		all = append(all, suggest.Unsupported(at, string(args.SchedulePolicy), config.DevicePolicies()))
	}
	for i, rule := range args.ExclusiveRules {
		if len(rule) == 0 {
			all = append(all, field.Required(path.Child("exclusiveRules").Index(i), "name a label; a rule without one would hold for all pods"))
		}
	}
	for _, f := range []struct {
		name  string
		given bool
	}{
		{"schedulePolicy", args.SchedulePolicy != ""}, {"nodeLock", args.NodeLock}, {"exclusiveRules", len(args.ExclusiveRules) > 0},
	} {
		if f.given && args.Mode != config.DeviceVGPU {
			all = append(all, field.Forbidden(path.Child(f.name), "only mode VGPU has it; remove it"))
		}
	}
	return all.ToAggregate()
}
