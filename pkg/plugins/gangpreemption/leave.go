// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gangpreemption

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// preemptedWithin is how long pods that are preempted for an ordinary pod are believed to go once upstream has asked the API server to delete
// them, if nothing confirms it. Upstream does not tell when that fails.
const preemptedWithin = 10 * time.Second

// leave records that pods are preempted for a pod of another profile, so that nobody counts on them. Those that the API server has not
// made to leave a while after it was asked stay. Pods that are nobody's tasks are passed over.
func (pl *GangPreemption) leave(preemptor types.UID, victims []types.UID) {
	pl.parts.State.Pipeline(nil, victims)
	go func() {
		// Upstream asks in a goroutine of its own, and an answer may take long.
		for asked := false; !asked; {
			asked = !pl.asking(preemptor)
			select {
			case <-pl.done:
				asked = true
			case <-pl.parts.Clock.After(preemptedWithin):
			}
		}
		for _, uid := range victims {
			pl.parts.State.Spare(uid)
		}
	}()
}
