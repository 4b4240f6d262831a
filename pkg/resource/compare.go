// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Portion is an amount of every resource that need not be whole: what a queue deserves of a cluster. Units are those of
// a Vector. Invariant: sorted by name, one entry a name.
type Portion []Quantity[float64]

// slack is the relative error that amounts carry from being divided; it counts for at most slackUnits, so that whole
// amounts are compared exactly.
const (
	slack      = 1e-9
	slackUnits = 0.5
)

// AtMost reports whether a is at most b. It is the one comparison of amounts that were divided with amounts that were counted.
func AtMost(a, b float64) bool { return a <= b || a-b <= min(slackUnits, slack*b) }

// Get returns the amount of one resource; zero when it is missing.
func (p Portion) Get(name corev1.ResourceName) float64 {
	if i, ok := find(p, name); ok {
		return p[i].Value
	}
	return 0
}

// Portion converts a vector.
func (v Vector) Portion() Portion {
	v = v.Counted()
	p := make(Portion, len(v))
	for i, a := range v {
		p[i] = Quantity[float64]{Name: a.Name, Value: float64(a.Value)}
	}
	return p
}

// PortionOf converts a list of quantities and leaves out what no node has, and what is less than nothing.
func PortionOf(list corev1.ResourceList) Portion {
	p := make(Portion, 0, len(list))
	for name, quantity := range list {
		value := quantity.AsApproximateFloat64()
		if name == corev1.ResourceCPU {
			value *= millis
		}
		if schedulable(name) && value > 0 {
			p = append(p, Quantity[float64]{Name: name, Value: min(value, float64(mostOfList))})
		}
	}
	slices.SortFunc(p, func(a, b Quantity[float64]) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

// List converts the portion back, to thousandths of a piece; resources of which there is less are left out.
func (p Portion) List() corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, a := range p {
		q := a.quantity()
		if q.Format == resource.DecimalSI && a.Name != corev1.ResourceCPU {
			q = *resource.NewMilliQuantity(int64(a.Value*millis), resource.DecimalSI)
		}
		if !q.IsZero() {
			list[a.Name] = q
		}
	}
	return list
}

// millis is how many thousandths there are of one.
const millis = 1000

// Within reports whether every amount of the portion is covered by the vector, in which a missing resource counts as
// zero. It is Volcano's LessEqual(deserved, allocated, Zero).
func (p Portion) Within(v Vector) bool {
	v = v.Counted()
	for _, a := range p {
		if !AtMost(a.Value, float64(v.Get(a.Name))) {
			return false
		}
	}
	return true
}

// Covers reports whether every amount of o is covered by p, in which a missing resource counts as zero.
func (p Portion) Covers(o Portion) bool {
	for _, a := range o {
		if !AtMost(a.Value, p.Get(a.Name)) {
			return false
		}
	}
	return true
}

// Unnamed says what a limit means for a resource that it does not name.
type Unnamed uint8

// What a limit means for a resource that it does not name.
const (
	// Nothing of it may be used.
	Nothing Unnamed = iota
	// Unlimited: any amount of it may be used.
	Unlimited
	// OnlyDevices: any amount of it may be used if it is devices, which nodes do not count, and nothing else.
	OnlyDevices
)

// Limit is a bound on amounts.
type Limit struct {
	Amounts Portion
	Unnamed Unnamed
}

// Of returns the bound of one resource, and whether there is one.
func (l Limit) Of(name corev1.ResourceName) (bound float64, limited bool) {
	if i, ok := find(l.Amounts, name); ok {
		return l.Amounts[i].Value, true
	}
	return 0, l.Unnamed == Nothing || l.Unnamed == OnlyDevices && !IsDevices(name)
}

// Refuses returns the resources of which ask wants some and would, on top of what is taken, get more than the limit.
// Pod slots are never refused: Volcano leaves them to the nodes (LessEqualWithDimensionAndResourcesName).
func (l Limit) Refuses(ask, taken Vector) []corev1.ResourceName {
	var over []corev1.ResourceName
	ask, taken = taken.More(ask), taken.Counted()
	for _, a := range ask {
		if a.Value <= 0 || a.Name == corev1.ResourcePods {
			continue
		}
		if bound, limited := l.Of(a.Name); limited && !AtMost(float64(taken.Get(a.Name))+float64(a.Value), bound) {
			over = append(over, a.Name)
		}
	}
	return over
}

// Admit raises the limit, where there is one, to what is held, in place.
func (l *Limit) Admit(held Vector) {
	for _, a := range held.Counted() {
		if bound, limited := l.Of(a.Name); limited && bound < float64(a.Value) {
			l.Amounts = l.Amounts.AtLeast(Vector{a})
		}
	}
}

// Tighten lowers the limit to another one, in place. A resource that only the other names is added if it was unlimited.
func (l *Limit) Tighten(o Portion) {
	for _, a := range o {
		i, named := find(l.Amounts, a.Name)
		_, limited := l.Of(a.Name)
		switch {
		case named:
			l.Amounts[i].Value = min(l.Amounts[i].Value, a.Value)
		case !limited:
			l.Amounts = slices.Insert(l.Amounts, i, a)
		}
	}
}

// Dominant is the greatest part, over the resources of which whole has any, that v has of whole; 0 of an empty whole
// (Volcano pkg/scheduler/plugins/drf/drf.go, calculateShare, and its like in proportion and capacity).
func (v Vector) Dominant(whole Portion) float64 { return dominant(v.Counted(), whole) }

// Dominant is the greatest part, over the resources of which whole has any, that p has of whole; 0 of an empty whole.
func (p Portion) Dominant(whole Portion) float64 { return dominant(p, whole) }

func dominant[N int64 | float64](parts []Quantity[N], whole Portion) float64 {
	share := 0.0
	i := 0
	for _, w := range whole {
		for i < len(parts) && parts[i].Name < w.Name {
			i++
		}
		if i < len(parts) && parts[i].Name == w.Name && w.Value > 0 {
			share = max(share, float64(parts[i].Value)/w.Value)
		}
	}
	return share
}

// Times returns the vector multiplied by a factor.
func (v Vector) Times(factor float64) Portion { return v.Portion().Times(factor) }

// Times returns the portion multiplied by a factor.
func (p Portion) Times(factor float64) Portion {
	product := slices.Clone(p)
	for i := range product {
		product[i].Value *= factor
	}
	return product
}

// Beyond returns what v has more than o, resource by resource; what it has less counts as zero. Resources of which
// nothing is left are kept as zeros, so that the result used as a limit still limits them.
func (v Vector) Beyond(o Vector) Vector {
	rest := v.Clone()
	for i := range rest {
		rest[i].Value = max(0, rest[i].Value-o.Get(rest[i].Name))
	}
	return rest
}

// IsZero reports whether no amount differs from zero.
func (v Vector) IsZero() bool {
	return !slices.ContainsFunc(v, func(a Amount) bool { return a.Value != 0 })
}

// Equal reports whether two vectors hold the same amounts; a missing resource counts as zero.
func (v Vector) Equal(o Vector) bool {
	covers := func(a, b Vector) bool {
		return !slices.ContainsFunc(a, func(x Amount) bool { return x.Value != b.Get(x.Name) })
	}
	return covers(v, o) && covers(o, v)
}

// AtLeast returns the portion raised to the amounts of v.
func (p Portion) AtLeast(v Vector) Portion {
	raised := slices.Clone(p)
	for _, a := range v {
		i, ok := find(raised, a.Name)
		switch {
		case ok:
			raised[i].Value = max(raised[i].Value, float64(a.Value))
		case a.Value > 0:
			raised = slices.Insert(raised, i, Quantity[float64]{Name: a.Name, Value: float64(a.Value)})
		}
	}
	return raised
}

// Plus returns the sum of two portions.
func (p Portion) Plus(o Portion) Portion {
	sum := slices.Clone(p)
	for _, a := range o {
		i, ok := find(sum, a.Name)
		if !ok {
			sum = slices.Insert(sum, i, Quantity[float64]{Name: a.Name})
		}
		sum[i].Value += a.Value
	}
	return sum
}

// Clone returns a copy that shares nothing with l.
func (l Limit) Clone() Limit { return Limit{Amounts: slices.Clone(l.Amounts), Unnamed: l.Unnamed} }

// Less returns the limit lowered by the amounts of v, but not below zero. What is unlimited stays so.
func (l Limit) Less(v Vector) Limit { return l.shifted(v, -1) }

// Plus returns the limit raised by the amounts of v. What is unlimited stays so.
func (l Limit) Plus(v Vector) Limit { return l.shifted(v, 1) }

func (l Limit) shifted(v Vector, sign float64) Limit {
	amounts := slices.Clone(l.Amounts)
	for i := range amounts {
		amounts[i].Value = max(0, amounts[i].Value+sign*float64(v.Get(amounts[i].Name)))
	}
	return Limit{Amounts: amounts, Unnamed: l.Unnamed}
}

// Inherit takes over the bounds of a parent for the resources that l does not bound, in place.
func (l *Limit) Inherit(parent Limit) {
	for _, a := range parent.Amounts {
		if i, ok := find(l.Amounts, a.Name); !ok {
			l.Amounts = slices.Insert(l.Amounts, i, a)
		}
	}
}
