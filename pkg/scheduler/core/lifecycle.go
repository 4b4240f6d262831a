// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import "sync"

// lifecycle is how far a scheduler has come: it watches, its model is complete, it leads.
type lifecycle struct {
	complete chan struct{}
	leading  chan struct{}
	leadOnce *sync.Once
}

func newLifecycle() lifecycle {
	return lifecycle{complete: make(chan struct{}), leading: make(chan struct{}), leadOnce: &sync.Once{}}
}

// Complete is closed once the model holds all that was there at the start. Nothing has been decided by then unless the scheduler leads.
func (l lifecycle) Complete() <-chan struct{} { return l.complete }

// Lead lets the scheduler act: hand out turns and write to the API server. Before, it only watches. It may be called any number of times.
func (l lifecycle) Lead() { l.leadOnce.Do(func() { close(l.leading) }) }
