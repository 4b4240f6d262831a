// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package proportion

// Part is what somebody has of an amount that is to be divided, and how much more it may get.
type Part struct {
	// Weight is the rate at which it rises; 0: not at all. It is not negative.
	Weight float64
	// Least is what it has, whatever the amount; Most is what it gets at most, if that is more.
	Least, Most float64
}

// Wants reports whether it may get more than it has.
func (p Part) Wants() bool { return p.Most > p.Least }

// Rise divides what an amount leaves of what all have: they rise at the rates of their weights until it is used up, or nobody wants more. It returns
// what each has then. If they have more than the amount to begin with, nobody gets more.
func Rise(total float64, parts []Part) []float64 {
	spans := make([]span, 0, len(parts))
	rising := make([]int, 0, len(parts))
	all := make([]float64, len(parts))
	for i, p := range parts {
		all[i] = p.Least
		total -= p.Least
		if p.Weight > 0 && p.Wants() {
			spans = append(spans, span{weight: p.Weight, most: p.Most - p.Least})
			rising = append(rising, i)
		}
	}
	if total <= 0 || len(spans) == 0 {
		return all
	}
	at := level(total, spans, nil)
	for k, i := range rising {
		all[i] += spans[k].at(at)
	}
	return all
}
