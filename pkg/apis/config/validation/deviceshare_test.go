// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
)

func TestDeviceShareArgs(t *testing.T) {
	rules := []map[string]string{{"tier": "gold"}}
	for name, tc := range map[string]struct {
		args config.DeviceShareArgs
		want string
	}{
		"whole cards": {config.DeviceShareArgs{Mode: config.DeviceGPUNumber}, ""},
		"vGPUs with all there is": {
			config.DeviceShareArgs{Mode: config.DeviceVGPU, SchedulePolicy: config.DeviceBinpack, NodeLock: true, ExclusiveRules: rules}, "",
		},
		"no mode":         {config.DeviceShareArgs{}, "args.mode: Required value: write GPUNumber, GPUSharing or VGPU"},
		"an unknown mode": {config.DeviceShareArgs{Mode: "VGPUs"}, `args.mode: Unsupported value: "VGPUs": did you mean "VGPU"?`},
		"an unknown policy": {
			config.DeviceShareArgs{Mode: config.DeviceVGPU, SchedulePolicy: "bin-pack"}, `args.schedulePolicy: Unsupported value: "bin-pack": did you mean "binpack"?`,
		},
		"a rule for all pods": {
			config.DeviceShareArgs{Mode: config.DeviceVGPU, ExclusiveRules: append(rules, nil)},
			"args.exclusiveRules[1]: Required value: name a label; a rule without one would hold for all pods",
		},
		"what is for vGPUs": {
			config.DeviceShareArgs{Mode: config.DeviceGPUSharing, SchedulePolicy: config.DeviceSpread, NodeLock: true, ExclusiveRules: rules},
			"[args.schedulePolicy: Forbidden: only mode VGPU has it; remove it, args.nodeLock: Forbidden: only mode VGPU has it; remove it, args.exclusiveRules: Forbidden: only mode VGPU has it; remove it]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := validation.ValidateDeviceShareArgs(field.NewPath("args"), &tc.args); err != nil {
				got = fmt.Sprint(err)
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
