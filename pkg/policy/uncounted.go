// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// uncounted says which devices do not count for queues, whatever these say: by the arguments of the plugin capacity. Without them all do, as
// in a Kubernetes whose feature gates are on.
type uncounted struct{ devices, capacities bool }

func uncountedBy(c arguments.Capacity) uncounted {
	off := func(counts *bool) bool { return counts != nil && !*counts }
	return uncounted{devices: off(c.DynamicResourceAllocation), capacities: off(c.DRAConsumableCapacity)}
}

// without returns a queue that says nothing of what does not count.
func (u uncounted) without(q *model.Queue) *model.Queue {
	if q == nil || u == (uncounted{}) {
		return q
	}
	counted := *q
	for _, amounts := range []*resource.Vector{&counted.Capability, &counted.Guarantee, &counted.Deserved} {
		*amounts = slices.DeleteFunc(amounts.Clone(), func(a resource.Amount) bool {
			return u.devices && resource.IsDevices(a.Name) || u.capacities && resource.IsDeviceCapacity(a.Name)
		})
	}
	return &counted
}
