// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resource holds resource vectors: the only arithmetic on quantities in Caldera.
//
// The API server lets anybody ask for 5Ei of memory, and two such requests are more than an int64 holds. So amounts are
// bounded when they are read, by who wrote them:
//
//	a pod       2^47   128Ti of memory, 140 thousand million cores
//	a PodGroup  2^53   8Pi: a gang of 4,000 whole nodes of 2Ti
//	all else    2^56   64Pi: nodes, queues and quotas, which administrators write
//
// Sums stop at 2^62-1 instead of turning negative. That is more than 32,000 pods come to that ask for the most there is,
// and millions of those that fit on a node: up to there sums are exact, and taking away what was added leaves what was
// there before. Beyond it they tell only "too much". Two sums can be added once more without care.
package resource

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	podresource "k8s.io/component-helpers/resource"
)

// Quantity is so much of one resource: millicores of cpu, base units (bytes, counts) of everything else.
type Quantity[N int64 | float64] struct {
	Name  corev1.ResourceName
	Value N
}

// Amount is a whole quantity of one resource.
type Amount = Quantity[int64]

// Vector is an amount of every resource. Invariant: sorted by name, one entry a name.
// A missing name means zero. Values may be negative (a node that is overcommitted has negative idle).
type Vector []Amount

// The bounds of amounts; see the description of the package.
const (
	MostOfPod   int64 = 1 << 47
	MostOfGroup int64 = 1 << 53
	mostOfList  int64 = 1 << 56
	MostOfSum   int64 = 1<<62 - 1
)

// FromList converts a list of quantities.
func FromList(list corev1.ResourceList) Vector {
	v := make(Vector, 0, len(list)+1)
	for name, quantity := range list {
		v = append(v, Amount{Name: name, Value: value(name, &quantity, mostOfList)})
	}
	slices.SortFunc(v, func(a, b Amount) int { return cmp.Compare(a.Name, b.Name) })
	return v
}

// Schedulable converts a list of quantities and leaves out what no node has: names that only quotas use, such as
// "requests.cpu" or "count/pods" (Volcano pkg/scheduler/api/resource_info.go, NewResource), what can be no name of a resource, and ShareOfCard.
func Schedulable(list corev1.ResourceList) Vector {
	return slices.DeleteFunc(FromList(list), func(a Amount) bool { return !schedulable(a.Name) })
}

// ShareOfCard says which part of the memory of a card a pod wants, in percent. It is written as a resource and is none: no node has any.
const ShareOfCard corev1.ResourceName = "volcano.sh/vgpu-memory-percentage"

func schedulable(name corev1.ResourceName) bool {
	switch name {
	case ShareOfCard:
		return false
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return true
	}
	s := string(name)
	switch {
	case strings.ContainsFunc(s, func(r rune) bool { return r >= '~' }):
		// Names are not checked where the API is somebody else's. In a vector such a name would be that of a claim, or come after those.
		return false
	case strings.HasPrefix(s, "count/"), strings.HasPrefix(s, corev1.DefaultResourceRequestsPrefix), strings.HasPrefix(s, "limits."):
		return false
	}
	return strings.Contains(s, "/") || strings.HasPrefix(s, corev1.ResourceHugePagesPrefix) ||
		strings.HasPrefix(s, corev1.ResourceAttachableVolumesPrefix)
}

// IsExtended reports whether a name is that of an extended resource, such as devices that a device plugin counts on its node.
func IsExtended(name corev1.ResourceName) bool {
	domain, _, named := strings.Cut(string(name), "/")
	return named && schedulable(name) && !IsDevices(name) && domain != kubernetesDomain && !strings.HasSuffix(domain, "."+kubernetesDomain) &&
		!strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) && !strings.HasPrefix(string(name), corev1.ResourceAttachableVolumesPrefix)
}

// kubernetesDomain is that of names which Kubernetes keeps for itself.
const kubernetesDomain = "kubernetes.io"

// value reads a quantity, of which no more than the most counts, nor less than its negative. The quantity's own
// conversions to whole numbers are wrong for what does not fit into an int64, as 1E of cpu does not in millicores.
func value(name corev1.ResourceName, quantity *resource.Quantity, most int64) int64 {
	scale, bound := resource.Scale(0), most
	if inMillis(name) {
		scale, bound = resource.Milli, most/1000
	}
	switch {
	case quantity.CmpInt64(bound) > 0:
		return most
	case quantity.CmpInt64(-bound) < 0:
		return -most
	}
	return quantity.ScaledValue(scale)
}

// inMillis reports whether a resource is counted in thousandths.
func inMillis(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceRequestsCPU, corev1.ResourceLimitsCPU:
		return true
	}
	return false
}

// OfPod is what a pod asks of its node: its containers, init containers, overhead and pod-level resources as
// kube-scheduler counts them, plus one pod. Amounts that are zero are left out.
func OfPod(pod *corev1.Pod) Vector {
	list, alone := ofOnlyContainer(pod)
	if !alone {
		list = podresource.PodRequests(pod, podresource.PodResourcesOptions{UseStatusResources: saysMore(pod)})
	}
	v := make(Vector, 0, len(list)+1)
	for name, quantity := range list {
		if n := value(name, &quantity, MostOfPod); n != 0 && name != ShareOfCard {
			v = append(v, Amount{Name: name, Value: n})
		}
	}
	v = append(v, Amount{Name: corev1.ResourcePods, Value: 1})
	slices.SortFunc(v, func(a, b Amount) int { return cmp.Compare(a.Name, b.Name) })
	return v
}

// ofOnlyContainer is what a pod asks for whose only container asks for all of it, and has it: most pods are such, and adding up takes five times as long.
func ofOnlyContainer(pod *corev1.Pod) (list corev1.ResourceList, alone bool) {
	spec := &pod.Spec
	if len(spec.Containers) != 1 || len(spec.InitContainers) > 0 || len(spec.Overhead) > 0 || spec.Resources != nil || podresource.IsPodResizeInfeasible(pod) {
		return nil, false
	}
	list = spec.Containers[0].Resources.Requests
	like := func(said corev1.ResourceList) bool { return said == nil || maps.Equal(said, list) }
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; !like(s.AllocatedResources) || s.Resources != nil && !like(s.Resources.Requests) {
			return nil, false
		}
	}
	return list, true
}

// saysMore reports whether a pod's status may say otherwise than its spec what it asks for; looking costs three times as much.
func saysMore(pod *corev1.Pod) bool {
	return len(pod.Status.ContainerStatuses)+len(pod.Status.InitContainerStatuses) > 0 || podresource.IsPodResizeInfeasible(pod)
}

// find returns the place of a resource in a list sorted by name, and whether it is there. Lists are short.
func find[N int64 | float64](list []Quantity[N], name corev1.ResourceName) (int, bool) {
	for i := range list {
		if list[i].Name >= name {
			return i, list[i].Name == name
		}
	}
	return len(list), false
}

func (v Vector) find(name corev1.ResourceName) (int, bool) { return find(v, name) }

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
		if (*v)[i].Value = PlusTimes((*v)[i].Value, a.Value, factor); (*v)[i].Value == 0 && isShared(a.Name) {
			// Claims come and go. A zero of another resource may be a limit.
			*v = slices.Delete(*v, i, i+1)
		}
	}
}

// PlusTimes is sum + n*amount; the product, and then the sum, are brought down to MostOfSum where they are beyond it, or up
// to its negative. Neither sum nor amount may be beyond it.
func PlusTimes(sum, amount, n int64) int64 {
	switch n {
	case 1:
	case -1:
		amount = -amount
	default:
		amount = times(amount, n)
	}
	return min(max(sum+amount, -MostOfSum), MostOfSum)
}

// times is a product as far as a sum can be.
func times(a, b int64) int64 {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	product := MostOfSum
	if high == 0 && low < uint64(MostOfSum) {
		product = int64(low)
	}
	if (a < 0) != (b < 0) {
		return -product
	}
	return product
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

// AtMost lowers every amount to the most there may be, in place, and returns the vector.
func (v Vector) AtMost(most int64) Vector {
	for i := range v {
		v[i].Value = min(v[i].Value, most)
	}
	return v
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
func (a Quantity[N]) Format() string {
	q := a.quantity()
	return q.String()
}

// quantity is the amount in the form of the API; a fraction of a unit is dropped.
func (a Quantity[N]) quantity() resource.Quantity {
	switch a.Name {
	case corev1.ResourceCPU, corev1.ResourceRequestsCPU, corev1.ResourceLimitsCPU:
		return *resource.NewMilliQuantity(int64(a.Value), resource.DecimalSI)
	case corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourceRequestsMemory, corev1.ResourceLimitsMemory:
		return *resource.NewQuantity(int64(a.Value), resource.BinarySI)
	default:
		if strings.HasPrefix(string(a.Name), string(corev1.ResourceMemory)+ofDevices) {
			return *resource.NewQuantity(int64(a.Value), resource.BinarySI)
		}
		return *resource.NewQuantity(int64(a.Value), resource.DecimalSI)
	}
}

// List converts the vector back; resources of which there is nothing are left out.
func (v Vector) List() corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, a := range v.Counted() {
		if a.Value != 0 {
			list[a.Name] = a.quantity()
		}
	}
	return list
}

// String lists the amounts by name, for messages.
func (v Vector) String() string {
	parts := make([]string, 0, len(v))
	for _, a := range v {
		parts = append(parts, fmt.Sprintf("%s=%s", a.Name, a.Format()))
	}
	return strings.Join(parts, " ")
}
