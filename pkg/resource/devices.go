// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Devices that pods hold by claims (resource.k8s.io) are amounts like others: so many of a class, so much of what they have. Nodes do not
// count them; queues do. Source of the names: Volcano's capacity plugin (reference section 4.7).
//
// A claim that several pods hold counts once for each queue. So a vector has an entry for the claim. Its value is the number of holders, and
// sums of vectors count holders. Counted makes devices of the claims that somebody holds.

const (
	deviceClass  = "deviceclass/"
	ofDevices    = "." + deviceClass
	sharedPrefix = "~"
)

// DevicesOf names devices of a class.
func DevicesOf(class string) corev1.ResourceName { return corev1.ResourceName(deviceClass + class) }

// DeviceCapacityOf names what devices of a class have of something, such as memory.
func DeviceCapacityOf(what, class string) corev1.ResourceName {
	return corev1.ResourceName(what + ofDevices + class)
}

// IsDevices reports whether a name is that of devices, or of what they have, and not of something that nodes have.
func IsDevices(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), deviceClass) || isShared(name) || IsDeviceCapacity(name)
}

// IsDeviceCapacity reports whether a name is that of what devices have, such as memory.
func IsDeviceCapacity(name corev1.ResourceName) bool {
	return strings.Contains(string(name), ofDevices)
}

// isShared reports whether a name is that of devices of a claim that pods share. It comes after all other names.
func isShared(name corev1.ResourceName) bool { return strings.HasPrefix(string(name), sharedPrefix) }

// SharesDevices reports whether there are entries of claims that pods share: the last ones.
func (v Vector) SharesDevices() bool { return len(v) > 0 && isShared(v[len(v)-1].Name) }

// OfShared returns the entries of claims that pods share.
func (v Vector) OfShared() Vector {
	first := slices.IndexFunc(v, func(a Amount) bool { return isShared(a.Name) })
	if first < 0 {
		return nil
	}
	return v[first:]
}

// Shared returns what a pod is charged for the devices of a claim that it shares with others. The claim is named by a string that no other has.
func (v Vector) Shared(claim string) Vector {
	shared := make(Vector, 0, len(v))
	for _, a := range v {
		name := sharedPrefix + strconv.FormatInt(a.Value, 10) + " " + string(a.Name) + " " + claim
		shared = append(shared, Amount{Name: corev1.ResourceName(name), Value: 1})
	}
	slices.SortFunc(shared, func(a, b Amount) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return shared
}

// ofShared is what a claim has that pods share, by the name of its entry.
func ofShared(name corev1.ResourceName) Amount {
	value, rest, _ := strings.Cut(strings.TrimPrefix(string(name), sharedPrefix), " ")
	devices, _, _ := strings.Cut(rest, " ")
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		// Not reachable: the name was made by Shared.
		return Amount{}
	}
	return Amount{Name: corev1.ResourceName(devices), Value: n}
}

// Counted returns the vector with devices in place of the claims that pods share: those of each that somebody holds, once. It is v itself
// where there are none.
func (v Vector) Counted() Vector {
	if !v.SharesDevices() {
		return v
	}
	shared := v.OfShared()
	counted := v[:len(v)-len(shared)].Clone()
	for _, a := range shared {
		if a.Value > 0 {
			counted.Add(Vector{ofShared(a.Name)})
		}
	}
	return counted
}

// More is what is held more once o is held, too: of claims that pods share, what nobody holds yet.
func (v Vector) More(o Vector) Vector {
	if !o.SharesDevices() {
		return o
	}
	both := v.Clone()
	both.Add(o)
	return both.countedBeyond(v)
}

// Fewer is what is held less once o is not held any more: of claims that pods share, what nobody else holds.
func (v Vector) Fewer(o Vector) Vector {
	if !o.SharesDevices() {
		return o
	}
	rest := v.Clone()
	rest.Sub(o)
	return v.countedBeyond(rest)
}

// countedBeyond is what v has more than o, devices of claims counted.
func (v Vector) countedBeyond(o Vector) Vector {
	beyond := v.Counted().Clone()
	beyond.Sub(o.Counted())
	return slices.DeleteFunc(beyond, func(a Amount) bool { return a.Value <= 0 })
}

// Devices returns the amounts of devices, those of claims that pods share included.
func (v Vector) Devices() Vector { return devices(v) }

// Devices returns the amounts of devices.
func (p Portion) Devices() Portion { return devices(p) }

func devices[N int64 | float64](list []Quantity[N]) []Quantity[N] {
	if !slices.ContainsFunc(list, func(a Quantity[N]) bool { return IsDevices(a.Name) }) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(list), func(a Quantity[N]) bool { return !IsDevices(a.Name) })
}

// WithoutDevices returns the amounts of what nodes have. It is v itself where there are no others.
func (v Vector) WithoutDevices() Vector {
	if !slices.ContainsFunc(v, func(a Amount) bool { return IsDevices(a.Name) }) {
		return v
	}
	return slices.DeleteFunc(v.Clone(), func(a Amount) bool { return IsDevices(a.Name) })
}
