// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import "sync/atomic"

// mostUnbound is how many pods that have their nodes may wait to be bound when a turn begins: a quarter of a second's binds at the thousand
// a second that an API server takes, and more than are on at a time by default. They do not run dry while the next turn is planned.
const mostUnbound = 256

// unbound counts the pods that have their nodes and wait for others to be bound first. Turns that began while many do would be carried out only
// after all of these: a job that comes meanwhile and goes before the others would wait for their binds, the plan would be as old, and each pod
// holds memory while it waits. Its methods may be called by any goroutine.
type unbound struct{ waiting atomic.Int64 }

// change adds to them, and reports whether a turn may begin that might not before.
func (u *unbound) change(by int) (eased bool) {
	now := u.waiting.Add(int64(by))
	return now < mostUnbound && now-int64(by) >= mostUnbound
}

// tooMany reports whether no turn is to begin.
func (u *unbound) tooMany() bool { return u.waiting.Load() >= mostUnbound }

// Unbound is told that more pods, or fewer, wait to be bound: they have their nodes, and others are bound first.
func (d *Dispatcher) Unbound(more int) {
	if d.unbound.change(more) {
		d.wake()
	}
}
