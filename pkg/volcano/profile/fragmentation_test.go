// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// fragmentationOf are the arguments and the weight of the plugin in the profile that tiers become; nil and 0: it is not there.
func fragmentationOf(t *testing.T, tiers string) (args *config.FragmentationArgs, weight int32) {
	t.Helper()
	c, err := profile.Read("volcano-scheduler.conf", []byte(tiers), profile.Only)
	if err != nil {
		t.Fatal(err)
	}
	p := &c.Profiles[0]
	for _, enabled := range p.Plugins.MultiPoint.Enabled {
		if enabled.Name == names.Fragmentation {
			weight = enabled.Weight
		}
	}
	for _, given := range p.PluginConfig {
		if given.Name == names.Fragmentation {
			args, _ = given.Args.(*config.FragmentationArgs)
		}
	}
	return args, weight
}

// TestFragmentationIsThereWhereItScores: the profile has it for nothing but its score.
func TestFragmentationIsThereWhereItScores(t *testing.T) {
	for name, tc := range map[string]struct {
		tiers  string
		weight int32
	}{
		"by default":       {`tiers: [{plugins: [{name: fragmentation}]}]`, 10},
		"with a weight":    {`tiers: [{plugins: [{name: fragmentation, arguments: {fragmentation.weight: 3}}]}]`, 3},
		"without a weight": {`tiers: [{plugins: [{name: fragmentation, arguments: {fragmentation.weight: 0}}]}]`, 0},
		"turned off":       {`tiers: [{plugins: [{name: fragmentation, enabledNodeOrder: false}]}]`, 0},
		"not there":        {`tiers: [{plugins: [{name: gang}]}]`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if args, weight := fragmentationOf(t, tc.tiers); weight != tc.weight || (args != nil) != (tc.weight > 0) {
				t.Errorf("weight %d, arguments %+v, want weight %d", weight, args, tc.weight)
			}
		})
	}
}

// TestFragmentationCountsWhatDeviceShareGivesOut, whichever of the two comes first; a mode is needed for that.
func TestFragmentationCountsWhatDeviceShareGivesOut(t *testing.T) {
	const before, after, idle = `tiers: [{plugins: [{name: deviceshare, arguments: {deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: spread}}, {name: fragmentation}]}]`,
		`tiers: [{plugins: [{name: fragmentation}, {name: deviceshare, arguments: {deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: spread}}]}]`,
		`tiers: [{plugins: [{name: fragmentation}, {name: deviceshare}]}]`
	for _, tiers := range []string{before, after} {
		if args, _ := fragmentationOf(t, tiers); args.Cards == nil || args.Cards.Mode != config.DeviceVGPU || args.Cards.SchedulePolicy != config.DeviceSpread {
			t.Errorf("%s: cards are %+v", tiers, args.Cards)
		}
	}
	if args, _ := fragmentationOf(t, idle); args.Cards != nil {
		t.Errorf("cards are %+v, and deviceshare gives none out", args.Cards)
	}
}
