// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// TestWhichDevicesCount: those that the capability names, unless the arguments of the plugin capacity say that devices, or what they have, do
// not count.
func TestWhichDevicesCount(t *testing.T) {
	devices := resource.Vector{{Name: "deviceclass/gpu", Value: 1}}
	memory := resource.Vector{{Name: "memory.deviceclass/gpu", Value: 1}}
	for name, c := range map[string]struct {
		arguments       map[string]runtime.RawExtension
		devices, memory bool
	}{
		"nothing is said":               {devices: true, memory: true},
		"both are on":                   {map[string]runtime.RawExtension{"capacity.DynamicResourceAllocationEnable": {Raw: []byte("true")}, "capacity.DRAConsumableCapacityEnable": {Raw: []byte("true")}}, true, true},
		"devices do not count":          {map[string]runtime.RawExtension{"capacity.DynamicResourceAllocationEnable": {Raw: []byte("false")}}, false, false},
		"what they have does not count": {map[string]runtime.RawExtension{"capacity.DRAConsumableCapacityEnable": {Raw: []byte("false")}}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := policy.Compile(&config.BatchQueueArgs{Tiers: []config.Tier{{Plugins: []config.TierPlugin{{Name: config.PluginCapacity, Arguments: c.arguments}}}}})
			if err != nil {
				t.Fatal(err)
			}
			set.SetCluster(cores(8))
			set.SetQueue("q", &model.Queue{Name: "q", Weight: 1, Capability: resource.Vector{{Name: "deviceclass/gpu"}, {Name: "memory.deviceclass/gpu"}}})
			set.Update()
			q := set.Book().Queue("q")
			for ask, want := range map[string]bool{"devices": c.devices, "memory": c.memory} {
				v := map[string]resource.Vector{"devices": devices, "memory": memory}[ask]
				if got := set.Refuses(q, nil, v, false) != (model.Reason{}); got != want {
					t.Errorf("%s are refused: %t, want %t", ask, got, want)
				}
			}
			if reason := set.Refuses(q, nil, cores(1), false); reason != (model.Reason{}) {
				t.Errorf("a core is refused: %s", reason.Message)
			}
		})
	}
}
