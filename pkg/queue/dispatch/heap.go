// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import "container/heap"

// positioned is an element that remembers where in a pile it is.
type positioned interface {
	comparable
	position() *int
}

// pile is a heap from which any element can be removed in logarithmic time.
type pile[T positioned] struct {
	items []T
	less  func(a, b T) bool
}

// Len implements heap.Interface.
func (p *pile[T]) Len() int { return len(p.items) }

// Less implements heap.Interface.
func (p *pile[T]) Less(i, j int) bool { return p.less(p.items[i], p.items[j]) }

// Swap implements heap.Interface.
func (p *pile[T]) Swap(i, j int) {
	p.items[i], p.items[j] = p.items[j], p.items[i]
	*p.items[i].position(), *p.items[j].position() = i, j
}

// Push implements heap.Interface.
func (p *pile[T]) Push(x any) {
	item := x.(T)
	*item.position() = len(p.items)
	p.items = append(p.items, item)
}

// Pop implements heap.Interface.
func (p *pile[T]) Pop() any {
	var zero T
	last := len(p.items) - 1
	item := p.items[last]
	p.items[last] = zero
	p.items = p.items[:last]
	return item
}

func (p *pile[T]) has(item T) bool {
	i := *item.position()
	return i >= 0 && i < len(p.items) && p.items[i] == item
}

// put adds an element, or restores the order after the element changed.
func (p *pile[T]) put(item T) {
	if p.has(item) {
		heap.Fix(p, *item.position())
	} else {
		heap.Push(p, item)
	}
}

// remove takes an element out if it is in.
func (p *pile[T]) remove(item T) {
	if p.has(item) {
		heap.Remove(p, *item.position())
		*item.position() = -1
	}
}
