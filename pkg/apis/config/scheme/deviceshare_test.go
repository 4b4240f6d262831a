// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
)

func TestWhatKubeSchedulerReadsAboutCards(t *testing.T) {
	testReads(t, "DeviceShare", map[string]reads{
		"DeviceShare with a mode": {"  pluginConfig: [{name: DeviceShare, args: {mode: GPUNumber}}]", &config.DeviceShareArgs{Mode: config.DeviceGPUNumber}},
		"DeviceShare with all": {
			"  pluginConfig: [{name: DeviceShare, args: {mode: VGPU, schedulePolicy: spread, nodeLock: true, exclusiveRules: [{tier: gold}]}}]",
			&config.DeviceShareArgs{
				Mode: config.DeviceVGPU, SchedulePolicy: config.DeviceSpread, NodeLock: true, ExclusiveRules: []map[string]string{{"tier": "gold"}},
			},
		},
	})
}

func TestWhatKubeSchedulerRefusesAboutCards(t *testing.T) {
	testRefuses(t, "DeviceShare", map[string]refuses{"a key of Volcano's file": {"{deviceshare.VGPUEnable: true}", `unknown field "deviceshare.VGPUEnable"`}})
}

func TestArgsAboutCardsSurviveConversion(t *testing.T) {
	labels := rapid.MapOfN(rapid.StringMatching(`[a-z]{1,3}`), rapid.StringMatching(`[a-z]{0,3}`), 1, 3)
	rapid.Check(t, func(t *rapid.T) {
		survives(t, &config.DeviceShareArgs{
			Mode:           rapid.SampledFrom(config.DeviceModes()).Draw(t, "mode"),
			SchedulePolicy: rapid.SampledFrom(config.DevicePolicies()).Draw(t, "policy"),
			NodeLock:       rapid.Bool().Draw(t, "lock"),
			ExclusiveRules: rapid.SliceOfN(labels, 1, 3).Draw(t, "rules"),
		}, &v1.DeviceShareArgs{}, &config.DeviceShareArgs{})
	})
}
