// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// absence is why pods that wait for nodes are not in the active queue though they are to be.
type absence struct {
	// away are pods that the scheduling queue does not know: it is yet to learn of them, or their last cycle has not ended.
	away map[types.UID]away
	// held are pods that another plugin keeps out of the queue, with the plugin.
	held map[types.UID]string
}

// away is whose pod it is that the scheduling queue does not know, and until when that matters at most: what tells of the pod may be lost.
type away struct {
	job   model.JobKey
	until time.Time
}

func newAbsence() absence {
	return absence{away: map[types.UID]away{}, held: map[types.UID]string{}}
}

// ofJob returns until when a job waits for pods of it that the scheduling queue does not know; zero when it waits for none.
func (a absence) ofJob(key model.JobKey, now time.Time) (until time.Time) {
	for _, w := range a.away {
		if w.job == key && w.until.After(now) && w.until.After(until) {
			until = w.until
		}
	}
	return until
}

// forget drops a pod.
func (a absence) forget(uid types.UID) {
	delete(a.away, uid)
	delete(a.held, uid)
}
