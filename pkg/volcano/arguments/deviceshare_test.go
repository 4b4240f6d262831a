// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

func TestDecodeDeviceShare(t *testing.T) {
	in := func(mode config.DeviceMode) config.DeviceShareArgs { return config.DeviceShareArgs{Mode: mode} }
	run(t, "deviceshare", arguments.DecodeDeviceShare, map[string]decodes[arguments.DeviceShare]{
		"no mode":     {"{}", arguments.DeviceShare{}, nil},
		"GPU sharing": {"{deviceshare.GPUSharingEnable: true}", arguments.DeviceShare{Args: in(config.DeviceGPUSharing)}, nil},
		"GPU number":  {"{deviceshare.GPUNumberEnable: 'true', deviceshare.GPUSharingEnable: false}", arguments.DeviceShare{Args: in(config.DeviceGPUNumber)}, nil},
		"vGPUs with all there is": {
			"{deviceshare.VGPUEnable: true, deviceshare.NodeLockEnable: true, deviceshare.SchedulePolicy: spread, deviceshare.ScheduleWeight: '10', " +
				"deviceshare.GPUExclusiveRules: [{a: b, c: d}, {e: f}], deviceshare.KnownGeometriesCMName: m, deviceshare.KnownGeometriesCMNamespace: kube-system, " +
				"deviceshare.AscendMindClusterVNPUEnable: false, deviceshare.AscendHAMiVNPUEnable: true}",
			arguments.DeviceShare{Weight: 10, Args: config.DeviceShareArgs{
				Mode: config.DeviceVGPU, SchedulePolicy: config.DeviceSpread, NodeLock: true, ExclusiveRules: []map[string]string{{"a": "b", "c": "d"}, {"e": "f"}},
			}},
			nil,
		},
		"what is for vGPUs only": {
			"{deviceshare.GPUNumberEnable: true, deviceshare.NodeLockEnable: true, deviceshare.SchedulePolicy: binpack, deviceshare.GPUExclusiveRules: [{a: b}]}",
			arguments.DeviceShare{Args: in(config.DeviceGPUNumber)},
			nil,
		},
		"two modes": {
			"{deviceshare.GPUNumberEnable: true, deviceshare.GPUSharingEnable: true}",
			arguments.DeviceShare{Args: in(config.DeviceGPUNumber)},
			[]string{"plugins[0].arguments[deviceshare.GPUNumberEnable]: Invalid value: true: cards are given in one way only; remove all but one of deviceshare.GPUSharingEnable, deviceshare.GPUNumberEnable"},
		},
		"what is wrong": {
			"{deviceshare.VGPUEnable: very, deviceshare.SchedulePolicy: pack, deviceshare.GPUExclusiveRules: {a: b}, deviceshare.Weight: 1}",
			arguments.DeviceShare{},
			[]string{
				`plugins[0].arguments[deviceshare.VGPUEnable]: Invalid value: "very": must be true or false`,
				`plugins[0].arguments[deviceshare.SchedulePolicy]: Invalid value: "pack": must be binpack or spread, or empty for neither`,
				`plugins[0].arguments[deviceshare.GPUExclusiveRules]: Invalid value: {"a":"b"}: must be a list of labels with their values, such as [{"tier": "gold"}]`,
				`plugins[0].arguments[deviceshare.Weight]: Forbidden: unknown key; did you mean "deviceshare.ScheduleWeight"?`,
			},
		},
	})
}
