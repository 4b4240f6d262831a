// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package heap_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/heap"
)

type element struct{ key, at int }

func (e *element) Position() *int { return &e.at }

// TestHeapAgreesWithSorting puts, changes, removes and pops at random and compares with a slice that is sorted each time.
func TestHeapAgreesWithSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := heap.New(func(a, b *element) bool { return a.key < b.key })
		var all []*element
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			var picked *element
			if len(all) > 0 {
				picked = rapid.SampledFrom(all).Draw(t, "element")
			}
			switch op := rapid.IntRange(0, 3).Draw(t, "op"); {
			case op == 0 || picked == nil:
				e := &element{key: rapid.IntRange(0, 20).Draw(t, "key"), at: -1}
				h.Put(e)
				all = append(all, e)
			case op == 1:
				picked.key = rapid.IntRange(0, 20).Draw(t, "key")
				h.Put(picked)
			case op == 2:
				h.Remove(picked)
				h.Remove(picked)
				all = slices.DeleteFunc(all, func(e *element) bool { return e == picked })
				if h.Has(picked) {
					t.Fatal("a removed element is still in")
				}
			default:
				top := h.Pop()
				all = slices.DeleteFunc(all, func(e *element) bool { return e == top })
				for _, e := range all {
					if e.key < top.key {
						t.Fatalf("popped %d before %d", top.key, e.key)
					}
				}
			}
			if h.Len() != len(all) {
				t.Fatalf("%d elements, want %d", h.Len(), len(all))
			}
			for _, e := range all {
				if !h.Has(e) || h.Top().key > e.key {
					t.Fatalf("top is %d with %d in the heap", h.Top().key, e.key)
				}
			}
		}
	})
}
