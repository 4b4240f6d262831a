// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"
)

// trace is what the schedulers have sent, for the comparison of two plays of a scenario.
type trace []sending

// sending is a request of a scheduler: how long after the beginning who asked what of which object, and what it sent.
type sending struct {
	at   time.Duration
	what string
	body []byte
}

func (s sending) String() string { return fmt.Sprintf("%s %s %s", s.at, s.what, s.body) }

func (s sending) compare(other sending) int {
	return cmp.Or(cmp.Compare(s.at, other.at), cmp.Compare(s.what, other.what), bytes.Compare(s.body, other.body))
}

// sorted has what was sent at the same moment in the order of names: that of goroutines does not count.
func (t trace) sorted() trace { return slices.SortedFunc(slices.Values(t), sending.compare) }

// hash is equal for traces that are.
func (t trace) hash() uint64 {
	h := fnv.New64a()
	for _, s := range t {
		fmt.Fprintln(h, s)
	}
	return h.Sum64()
}

// differs says where a trace parts from another one of the same scenario; empty if nowhere. Both are sorted.
func (t trace) differs(from trace) string {
	for i := range max(len(t), len(from)) {
		switch {
		case i >= len(t):
			return fmt.Sprintf("it ends before %s", from[i])
		case i >= len(from):
			return fmt.Sprintf("it goes on with %s", t[i])
		case t[i].compare(from[i]) != 0:
			return fmt.Sprintf("%s, not %s", t[i], from[i])
		}
	}
	return ""
}
