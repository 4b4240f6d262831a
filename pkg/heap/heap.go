// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package heap is a priority queue whose elements know where they are, so that any of them can be moved or removed in
// logarithmic time.
package heap

import (
	stdheap "container/heap"
	"slices"
)

// Element is what a heap holds. Position points to where the heap keeps the element's place; it must be -1 at first.
type Element interface {
	comparable
	Position() *int
}

// Heap holds elements with the least one on top. Create it with New.
type Heap[T Element] struct{ h inner[T] }

// New returns an empty heap in the order of less.
func New[T Element](less func(a, b T) bool) *Heap[T] { return &Heap[T]{h: inner[T]{less: less}} }

// Len returns the number of elements.
func (h *Heap[T]) Len() int { return len(h.h.items) }

// Top returns the least element. The heap must not be empty.
func (h *Heap[T]) Top() T { return h.h.items[0] }

// Items returns all elements, in no particular order. The slice belongs to the heap.
func (h *Heap[T]) Items() []T { return h.h.items }

// Has reports whether an element is in the heap.
func (h *Heap[T]) Has(item T) bool {
	i := *item.Position()
	return i >= 0 && i < len(h.h.items) && h.h.items[i] == item
}

// Grow makes room for so many elements more.
func (h *Heap[T]) Grow(n int) { h.h.items = slices.Grow(h.h.items, n) }

// Put adds an element, or restores the order after an element that is in the heap has changed.
func (h *Heap[T]) Put(item T) {
	if h.Has(item) {
		stdheap.Fix(&h.h, *item.Position())
	} else {
		stdheap.Push(&h.h, item)
	}
}

// Pop removes and returns the least element. The heap must not be empty.
func (h *Heap[T]) Pop() T {
	item := h.Top()
	h.Remove(item)
	return item
}

// Remove takes an element out, if it is in.
func (h *Heap[T]) Remove(item T) {
	if h.Has(item) {
		stdheap.Remove(&h.h, *item.Position())
		*item.Position() = -1
	}
}

// Init restores the order after any number of elements have changed.
func (h *Heap[T]) Init() { stdheap.Init(&h.h) }

// inner implements container/heap's interface.
type inner[T Element] struct {
	items []T
	less  func(a, b T) bool
}

func (h *inner[T]) Len() int { return len(h.items) }

func (h *inner[T]) Less(i, j int) bool { return h.less(h.items[i], h.items[j]) }

func (h *inner[T]) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	*h.items[i].Position(), *h.items[j].Position() = i, j
}

func (h *inner[T]) Push(x any) {
	item := x.(T)
	*item.Position() = len(h.items)
	h.items = append(h.items, item)
}

func (h *inner[T]) Pop() any {
	var zero T
	last := len(h.items) - 1
	item := h.items[last]
	h.items[last] = zero
	h.items = h.items[:last]
	return item
}
