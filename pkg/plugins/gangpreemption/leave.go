// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gangpreemption

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// preemptedWithin is how long pods that are preempted for an ordinary pod are believed to go before the API server confirms it. Upstream asks
// it at once, and does not tell when that fails.
const preemptedWithin = 10 * time.Second

// leave records that pods are preempted for a pod of another profile, so that nobody counts on them. Those that the API server has not
// made to leave after a while stay. Pods that are nobody's tasks are passed over.
func (pl *GangPreemption) leave(victims []types.UID) {
	pl.parts.State.Pipeline(nil, victims)
	go func() {
		select {
		case <-pl.done:
		case <-pl.parts.Clock.After(preemptedWithin):
		}
		for _, uid := range victims {
			pl.parts.State.Spare(uid)
		}
	}()
}
