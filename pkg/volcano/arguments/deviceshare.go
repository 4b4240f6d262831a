// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// DeviceShare are the arguments of the plugin deviceshare.
type DeviceShare struct {
	// Weight is how much the score counts; at least 0, which turns it off.
	Weight int64
	// Args are without a mode if the plugin does nothing.
	Args config.DeviceShareArgs
}

// deviceModes are the arguments that turn a mode on; at most one may.
var deviceModes = []struct {
	key  string
	mode config.DeviceMode
}{
	{"deviceshare.GPUSharingEnable", config.DeviceGPUSharing},
	{"deviceshare.GPUNumberEnable", config.DeviceGPUNumber},
	{"deviceshare.VGPUEnable", config.DeviceVGPU},
}

// DecodeDeviceShare reads the arguments of the plugin deviceshare; path is that of the plugin's entry. Volcano ends its process
// when two modes are turned on, and takes any other word than binpack and spread for no policy
// (pkg/scheduler/plugins/deviceshare/deviceshare.go); here both are errors. What Volcano reads about Ascend's NPUs and about MIG is
// accepted and has no effect. The policy, the lock and the rules are about vGPUs only, in Volcano too.
func DecodeDeviceShare(p *config.TierPlugin, path *field.Path) (DeviceShare, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	decoded := DeviceShare{Weight: weight(d, "deviceshare.ScheduleWeight", 0)}
	args := &decoded.Args
	var on []string
	for _, m := range deviceModes {
		if value(d, m.key, false, Bool) {
			on = append(on, m.key)
			args.Mode = m.mode
		}
	}
	if len(on) > 1 {
		d.errs = append(d.errs, field.Invalid(d.path.Key(on[1]), true, "cards are given in one way only; remove all but one of "+strings.Join(on, ", ")))
	}
	for _, key := range []string{"deviceshare.AscendMindClusterVNPUEnable", "deviceshare.AscendHAMiVNPUEnable"} {
		value(d, key, false, Bool)
	}
	for _, key := range []string{"deviceshare.KnownGeometriesCMName", "deviceshare.KnownGeometriesCMNamespace"} {
		value(d, key, "", given)
	}
	policy := value(d, "deviceshare.SchedulePolicy", "", devicePolicy)
	lock := value(d, "deviceshare.NodeLockEnable", false, Bool)
	rules := value(d, "deviceshare.GPUExclusiveRules", nil, labelSets)
	if args.Mode == config.DeviceVGPU {
		args.SchedulePolicy, args.NodeLock, args.ExclusiveRules = policy, lock, rules
	}
	return decoded, d.finish(p.Name)
}

func devicePolicy(v runtime.RawExtension) (config.DevicePolicy, error) {
	policy := config.DevicePolicy(scalar(v))
	if policy != "" && !slices.Contains(config.DevicePolicies(), policy) {
		return "", errors.New("must be binpack or spread, or empty for neither")
	}
	return policy, nil
}

// labelSets parses a list of maps from labels to values.
func labelSets(v runtime.RawExtension) ([]map[string]string, error) {
	var sets []map[string]string
	if json.Unmarshal(v.Raw, &sets) != nil || slices.ContainsFunc(sets, func(set map[string]string) bool { return len(set) == 0 }) {
		return nil, errors.New(`must be a list of labels with their values, such as [{"tier": "gold"}]`)
	}
	return sets, nil
}
