// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// TestWhatPredicatesSaysReachesThePlugins: its arguments are those of kube-scheduler's plugins.
func TestWhatPredicatesSaysReachesThePlugins(t *testing.T) {
	type result struct {
		// Timeout is how long volumes may take, in seconds, and Filter how long a node may take with devices.
		Timeout int64
		Filter  time.Duration
		Shape   []schedulerconfig.UtilizationShapePoint
		// Volumes and Devices are the weights of the scores; 0: they are off.
		Volumes, Devices int32
	}
	usual := []schedulerconfig.UtilizationShapePoint{{Utilization: 0, Score: 10}, {Utilization: 100, Score: 0}}
	shape := []schedulerconfig.UtilizationShapePoint{{Utilization: 0, Score: 1}, {Utilization: 100, Score: 9}}
	for name, tc := range map[string]struct {
		entry string
		want  result
	}{
		"the defaults": {"{name: predicates}", result{600, 10 * time.Second, usual, 1, 1}},
		"everything": {
			"{name: predicates, arguments: {volumebinding.bindTimeoutSeconds: 60, volumebinding.weight: 3, dynamicresources.filterTimeoutSeconds: 0, " +
				"volumebinding.shape: [{utilization: 0, score: 1}, {utilization: 100, score: 9}]}}",
			result{60, 0, shape, 3, 1},
		},
		"no scores":             {"{name: predicates, enableNodeOrder: false}", result{600, 10 * time.Second, usual, 0, 0}},
		"no binding of volumes": {"{name: predicates, arguments: {predicate.VolumeBindingEnable: false}}", result{600, 10 * time.Second, usual, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := profile.Read("v", []byte(fmt.Sprintf("tiers: [{plugins: [{name: gang}, %s]}]", tc.entry)), profile.Second)
			if err != nil {
				t.Fatal(err)
			}
			p := &c.Profiles[0]
			var got result
			for _, args := range p.PluginConfig {
				switch a := args.Args.(type) {
				case *schedulerconfig.VolumeBindingArgs:
					got.Timeout, got.Shape = a.BindTimeoutSeconds, a.Shape
				case *schedulerconfig.DynamicResourcesArgs:
					if a.FilterTimeout == nil {
						a.FilterTimeout = &metav1.Duration{Duration: -1}
					}
					got.Filter = a.FilterTimeout.Duration
				}
			}
			got.Volumes, got.Devices = weight(p, "VolumeBinding"), weight(p, "DynamicResources")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

// TestEachSwitchTurnsItsFilterOff: that filter, and no other one.
func TestEachSwitchTurnsItsFilterOff(t *testing.T) {
	for argument, filter := range map[string]string{
		"predicate.NodeAffinityEnable":      "NodeAffinity",
		"predicate.NodePortsEnable":         "NodePorts",
		"predicate.NodeVolumeLimitsEnable":  "NodeVolumeLimits",
		"predicate.PodAffinityEnable":       "InterPodAffinity",
		"predicate.PodTopologySpreadEnable": "PodTopologySpread",
		"predicate.TaintTolerationEnable":   "TaintToleration",
		"predicate.VolumeBindingEnable":     "VolumeBinding",
		"predicate.VolumeZoneEnable":        "VolumeZone",
	} {
		conf := fmt.Sprintf(`tiers: [{plugins: [{name: gang}, {name: predicates, arguments: {%s: "false"}}]}]`, argument)
		c, err := profile.Read("v", []byte(conf), profile.Second)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]schedulerconfig.Plugin{{Name: filter}}, c.Profiles[0].Plugins.Filter.Disabled); diff != "" {
			t.Errorf("filters that %s turns off (-want,+got)\n%s", argument, diff)
		}
	}
}

// weight is that of a score as the profile overrides it; 0 when it is off.
func weight(p *schedulerconfig.KubeSchedulerProfile, name string) int32 {
	is := func(e schedulerconfig.Plugin) bool { return e.Name == name }
	if slices.ContainsFunc(p.Plugins.Score.Disabled, is) {
		return 0
	}
	if i := slices.IndexFunc(p.Plugins.Score.Enabled, is); i >= 0 {
		return p.Plugins.Score.Enabled[i].Weight
	}
	return -1
}
