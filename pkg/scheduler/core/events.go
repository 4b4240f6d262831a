// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Events are bound pods whose event is to be left out. The zero value remembers none, because nobody asks.
type Events struct {
	suppressed *sync.Map
}

// Suppress leaves out the event of a pod that was bound: one for the job tells of all of its pods.
func (e *Events) Suppress(uid types.UID) {
	if e.suppressed != nil {
		e.suppressed.Store(uid, nil)
	}
}

// Suppressed returns what tells, once for each pod, whether its event is to be left out. From now on these pods are remembered, until somebody asks.
// It must be called before the scheduler runs.
func (e *Events) Suppressed() func(types.UID) bool {
	e.suppressed = &sync.Map{}
	return func(uid types.UID) bool {
		_, suppressed := e.suppressed.LoadAndDelete(uid)
		return suppressed
	}
}
