// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// absence is why pods that wait for nodes are not in the active queue though they are to be.
type absence struct {
	// away are pods that the scheduling queue does not know, with their jobs: it is yet to learn of them, or their last cycle has not ended.
	away map[types.UID]model.JobKey
	// held are pods that another plugin keeps out of the queue, with the plugin.
	held map[types.UID]string
}

func newAbsence() absence {
	return absence{away: map[types.UID]model.JobKey{}, held: map[types.UID]string{}}
}

// ofJob reports whether the scheduling queue does not know some pod of a job.
func (a absence) ofJob(key model.JobKey) bool {
	for _, of := range a.away {
		if of == key {
			return true
		}
	}
	return false
}

// forgive has a job wait no longer for pods that the queue does not know.
func (a absence) forgive(key model.JobKey) {
	maps.DeleteFunc(a.away, func(_ types.UID, of model.JobKey) bool { return of == key })
}

// forget drops a pod.
func (a absence) forget(uid types.UID) {
	delete(a.away, uid)
	delete(a.held, uid)
}
