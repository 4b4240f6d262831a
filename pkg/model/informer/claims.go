// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// resourceClaim reads a ResourceClaim.
func resourceClaim(c *resourcev1.ResourceClaim) *model.Claim {
	claim := &model.Claim{Namespace: c.Namespace, Name: c.Name}
	if owner := metav1.GetControllerOf(c); owner != nil && owner.Kind == "Pod" {
		claim.Pod = owner.UID
	}
	if c.Status.Allocation != nil {
		claim.Devices = allocatedDevices(c)
	} else {
		claim.Devices = requestedDevices(c)
	}
	return claim
}

// allocatedDevices are those that a claim has. Access for administrators takes nothing from others.
func allocatedDevices(c *resourcev1.ResourceClaim) resource.Vector {
	var devices resource.Vector
	for i := range c.Status.Allocation.Devices.Results {
		r := &c.Status.Allocation.Devices.Results[i]
		if class := classOf(c, r.Request); class != "" && (r.AdminAccess == nil || !*r.AdminAccess) {
			devices.Add(devicesOf(class, 1, r.ConsumedCapacity))
		}
	}
	return devices.AtMost(resource.MostOfPod)
}

// classOf is the device class of a request of a claim, or of one of its alternatives ("request/alternative").
func classOf(c *resourcev1.ResourceClaim, request string) string {
	name, alternative, _ := strings.Cut(request, "/")
	for i := range c.Spec.Devices.Requests {
		r := &c.Spec.Devices.Requests[i]
		switch {
		case r.Name != name:
		case r.Exactly != nil:
			return r.Exactly.DeviceClassName
		default:
			for j := range r.FirstAvailable {
				if r.FirstAvailable[j].Name == alternative {
					return r.FirstAvailable[j].DeviceClassName
				}
			}
		}
	}
	return ""
}

// requestedDevices are those that a claim asks for: of a request for all devices of a node as many as a claim may have, of alternatives the
// most of each class. So counts the quota of the API server (k8s.io/kubernetes pkg/quota/v1/evaluator/core/resource_claims.go).
func requestedDevices(c *resourcev1.ResourceClaim) resource.Vector {
	var devices resource.Vector
	for i := range c.Spec.Devices.Requests {
		r := &c.Spec.Devices.Requests[i]
		if e := r.Exactly; e != nil {
			if e.AdminAccess == nil || !*e.AdminAccess {
				devices.Add(requested(e.DeviceClassName, e.AllocationMode, e.Count, e.Capacity))
			}
			continue
		}
		var most resource.Vector
		for j := range r.FirstAvailable {
			a := &r.FirstAvailable[j]
			most.Max(requested(a.DeviceClassName, a.AllocationMode, a.Count, a.Capacity))
		}
		devices.Add(most)
	}
	return devices.AtMost(resource.MostOfPod)
}

func requested(class string, mode resourcev1.DeviceAllocationMode, count int64, capacity *resourcev1.CapacityRequirements) resource.Vector {
	if mode == resourcev1.DeviceAllocationModeAll {
		count = resourcev1.AllocationResultsMaxSize
	}
	if capacity == nil {
		return devicesOf(class, count, nil)
	}
	return devicesOf(class, count, capacity.Requests)
}

// devicesOf is a number of devices of a class, and so much of what each of them has.
func devicesOf(class string, count int64, capacity map[resourcev1.QualifiedName]apiresource.Quantity) resource.Vector {
	list := make(corev1.ResourceList, len(capacity))
	for what, q := range capacity {
		list[resource.DeviceCapacityOf(string(what), class)] = q
	}
	var devices resource.Vector
	devices.AddTimes(resource.FromList(list), count)
	devices.Add(resource.Vector{{Name: resource.DevicesOf(class), Value: count}})
	return devices
}
