// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

func quantity(n int64) apiresource.Quantity {
	return *apiresource.NewQuantity(n, apiresource.DecimalSI)
}

// claims are those of the tests: what each of them has.
var claims = map[string]resource.Vector{
	"team/one":   {{Name: "deviceclass/gpu", Value: 1}},
	"team/pair":  {{Name: "deviceclass/gpu", Value: 2}, {Name: "memory.deviceclass/gpu", Value: 80 << 30}},
	"other/pair": {{Name: "deviceclass/gpu", Value: 2}},
	"team/nic":   {{Name: "deviceclass/nic", Value: 1}},
}

// holder is somebody who holds things: amounts, and claims that others may hold, too.
type holder struct {
	amounts resource.Vector
	claims  []string
}

func holders() *rapid.Generator[[]holder] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) holder {
		return holder{
			amounts: resource.FromList(corev1.ResourceList{
				"cpu": quantity(rapid.Int64Range(0, 9).Draw(t, "cpu")), "deviceclass/gpu": quantity(rapid.Int64Range(0, 3).Draw(t, "own")),
			}),
			claims: rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(claims))), 0, 3, rapid.ID).Draw(t, "claims"),
		}
	}), 0, 6)
}

// charge is the holder in the form of a vector.
func (h holder) charge() resource.Vector {
	v := h.amounts.Clone()
	for _, c := range h.claims {
		v.Add(claims[c].Shared(c))
	}
	return v
}

// together is what all hold, each claim once.
func together(all []holder) (sum resource.Vector) {
	held := map[string]bool{}
	for _, h := range all {
		sum.Add(h.amounts)
		for _, c := range h.claims {
			if !held[c] {
				held[c] = true
				sum.Add(claims[c])
			}
		}
	}
	return sum
}

func charged(all []holder) (sum resource.Vector) {
	for _, h := range all {
		sum.Add(h.charge())
	}
	return sum
}

func TestAClaimThatPodsShareCountsOnceAsLongAsSomebodyHoldsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := holders().Draw(t, "holders")
		held := charged(all)
		if got, want := held.Counted(), together(all); !got.Equal(want) {
			t.Fatalf("%v hold %s together, not %s", all, want, got)
		}
		for _, h := range all {
			held.Sub(h.charge())
		}
		if len(held.OfShared()) > 0 {
			t.Fatalf("nobody holds anything, and %s is left", held)
		}
		held = charged(all)
		for i := range all {
			others := slices.Delete(slices.Clone(all), i, i+1)
			left := held.Clone()
			left.Sub(all[i].charge())
			if got, want := left.Counted(), together(others); !got.Equal(want) {
				t.Fatalf("without %v the others hold %s, not %s", all[i], want, got)
			}
			change := together(all)
			change.Sub(together(others))
			if got := held.Fewer(all[i].charge()); !got.Equal(change) {
				t.Fatalf("without %v it is %s less, not %s", all[i], change, got)
			}
			if got := left.More(all[i].charge()); !got.Equal(change) {
				t.Fatalf("with %v it is %s more, not %s", all[i], change, got)
			}
		}
	})
}

func TestALimitGoesByTheDevicesOfClaimsAndNotByWhoHoldsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, one := holders().Draw(t, "holders"), holders().Draw(t, "who asks")
		bound := rapid.Int64Range(0, 9).Draw(t, "bound")
		limit := resource.Limit{Amounts: resource.Portion{{Name: "deviceclass/gpu", Value: float64(bound)}}, Unnamed: resource.Unlimited}
		before, after := together(all).Get("deviceclass/gpu"), together(slices.Concat(all, one)).Get("deviceclass/gpu")
		if got, want := len(limit.Refuses(charged(one), charged(all))) > 0, after > before && after > bound; got != want {
			t.Fatalf("%v on top of %v, limit %d: refused is %t", one, all, bound, got)
		}
	})
}

func TestWhatOthersReadHasDevicesAndNoClaims(t *testing.T) {
	held := charged([]holder{{claims: []string{"team/pair"}}, {claims: []string{"team/pair", "team/one"}}})
	want := corev1.ResourceList{"deviceclass/gpu": quantity(3), "memory.deviceclass/gpu": quantity(80 << 30)}
	list := held.List()
	if len(list) != len(want) {
		t.Errorf("the list is %v", list)
	}
	for name, q := range want {
		if got := list[name]; got.Cmp(q) != 0 {
			t.Errorf("the list has %s of %s", got.String(), name)
		}
	}
	if got := held.Dominant(resource.Portion{{Name: "deviceclass/gpu", Value: 6}}); got != 0.5 {
		t.Errorf("3 of 6 devices are a share of %g", got)
	}
	if held.BestEffort() || len(held.WithoutDevices()) != 0 || !held.Devices().Equal(held) {
		t.Errorf("%s is devices and nothing else", held)
	}
}
