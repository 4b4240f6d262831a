// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Hush has the event of a pod that was just bound left out, if the scheduler's recorder knows how.
func (e *Engine) Hush(uid types.UID) {
	if e.hushed != nil {
		e.hushed.Store(uid, nil)
	}
}

// Hushed returns a function for a recorder that reports, once for each pod, whether its event is to be left out. It must be called
// before the scheduler runs.
func (e *Engine) Hushed() func(types.UID) bool {
	e.hushed = &sync.Map{}
	return func(uid types.UID) bool {
		_, hushed := e.hushed.LoadAndDelete(uid)
		return hushed
	}
}
