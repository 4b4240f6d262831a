// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resource holds resource vectors: the only arithmetic on quantities in Caldera.
package resource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
)

// Amount is a quantity of one resource: millicores for cpu, base units (bytes, counts) for everything else.
type Amount struct {
	Name  corev1.ResourceName
	Value int64
}

// Vector is an amount of every resource. Invariant: sorted by name, one entry a name.
// A missing name means zero. Values may be negative (a node that is overcommitted has negative idle).
type Vector []Amount

// FromList converts a list of quantities.
func FromList(list corev1.ResourceList) Vector {
	v := make(Vector, 0, len(list)+1)
	for name, quantity := range list {
		v = append(v, Amount{Name: name, Value: value(name, &quantity)})
	}
	slices.SortFunc(v, func(a, b Amount) int { return cmp.Compare(a.Name, b.Name) })
	return v
}

func value(name corev1.ResourceName, quantity *resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// OfPod is what a pod asks of its node: its containers, init containers, overhead and pod-level resources as
// kube-scheduler counts them, plus one pod. Amounts that are zero are left out.
func OfPod(pod *corev1.Pod) Vector {
	list := podresource.PodRequests(pod, podresource.PodResourcesOptions{UseStatusResources: true})
	v := make(Vector, 0, len(list)+1)
	for name, quantity := range list {
		if n := value(name, &quantity); n != 0 {
			v = append(v, Amount{Name: name, Value: n})
		}
	}
	v = append(v, Amount{Name: corev1.ResourcePods, Value: 1})
	slices.SortFunc(v, func(a, b Amount) int { return cmp.Compare(a.Name, b.Name) })
	return v
}

func (v Vector) find(name corev1.ResourceName) (int, bool) {
	return slices.BinarySearchFunc(v, name, func(a Amount, n corev1.ResourceName) int { return cmp.Compare(a.Name, n) })
}

// Get returns the amount of one resource; zero when it is missing.
func (v Vector) Get(name corev1.ResourceName) int64 {
	if i, ok := v.find(name); ok {
		return v[i].Value
	}
	return 0
}

// Add adds o to v in place.
func (v *Vector) Add(o Vector) { v.accumulate(o, 1) }

// Sub subtracts o from v in place.
func (v *Vector) Sub(o Vector) { v.accumulate(o, -1) }

// AddTimes adds n times o to v in place.
func (v *Vector) AddTimes(o Vector, n int64) { v.accumulate(o, n) }

func (v *Vector) accumulate(o Vector, factor int64) {
	for _, a := range o {
		i, ok := v.find(a.Name)
		if !ok {
			*v = slices.Insert(*v, i, Amount{Name: a.Name})
		}
		(*v)[i].Value += factor * a.Value
	}
}

// Max raises every amount of v to that of o, in place.
func (v *Vector) Max(o Vector) {
	for _, a := range o {
		i, ok := v.find(a.Name)
		switch {
		case !ok:
			*v = slices.Insert(*v, i, a)
		case (*v)[i].Value < a.Value:
			(*v)[i].Value = a.Value
		}
	}
}

// Clone returns a copy that shares nothing with v.
func (v Vector) Clone() Vector { return slices.Clone(v) }

// Exceeding returns the resources of which v asks a positive amount that is more than limit has, with the difference.
// A resource that limit does not name counts as zero there. The result is nil when v fits.
func (v Vector) Exceeding(limit Vector) Vector {
	var over Vector
	for _, a := range v {
		if has := limit.Get(a.Name); a.Value > 0 && a.Value > has {
			over = append(over, Amount{Name: a.Name, Value: a.Value - max(has, 0)})
		}
	}
	return over
}

// BestEffort reports whether v asks for nothing but pod slots (Volcano's Resource.IsEmpty, which ignores "pods").
func (v Vector) BestEffort() bool {
	for _, a := range v {
		if a.Name != corev1.ResourcePods && a.Value > 0 {
			return false
		}
	}
	return true
}

// Format writes an amount the way users write quantities: "500m" of cpu, "16Gi" of memory, "8" of a device.
func (a Amount) Format() string {
	switch a.Name {
	case corev1.ResourceCPU:
		return resource.NewMilliQuantity(a.Value, resource.DecimalSI).String()
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return resource.NewQuantity(a.Value, resource.BinarySI).String()
	default:
		return resource.NewQuantity(a.Value, resource.DecimalSI).String()
	}
}

// String lists the amounts by name, for messages.
func (v Vector) String() string {
	parts := make([]string, 0, len(v))
	for _, a := range v {
		parts = append(parts, fmt.Sprintf("%s=%s", a.Name, a.Format()))
	}
	return strings.Join(parts, " ")
}
