// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// waiter is the job that waits, in a cluster at rest. Its methods say what it lacks, and which changes would give it that. None of them is tried here.
type waiter struct {
	// objects are those of the cluster, all are the jobs in it.
	objects []scenario.Object
	all     map[model.JobKey]*model.Job
	job     *model.Job
	// chain is the queue of the job with those above it, itself first.
	chain []dispatch.QueueFigures
	now   time.Time
}

// pending are the job's tasks that wait for nodes.
func (w *waiter) pending() []*model.Task {
	var tasks []*model.Task
	for _, t := range w.job.Tasks {
		if t.Status == model.Pending {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// pods are the names of those of the job that wait for nodes.
func (w *waiter) pods() map[types.NamespacedName]bool { return namesOf(w.pending()) }

// least is how many of the pods that wait have to get nodes for the job to start.
func (w *waiter) least() int { return max(1, w.job.Min()-w.job.Placed()) }

// needed are the changes without which the job cannot start, whatever else is changed: a queue that is closed, gates, pods that are not there.
func (w *waiter) needed() step {
	open := w.opening()
	if len(open.changes) == 0 {
		open.kind = OfItself
	}
	return open.then(w.ungating().parts()).then(w.completing().parts())
}

// free yields names for so many new objects of the kind and in the namespace of another one, beginning with its name. No object has one of them.
func (w *waiter) free(like scenario.Object, n int) func(yield func(string) bool) {
	taken, kind := map[string]bool{}, scenario.KindOf(like)
	for _, o := range w.objects {
		if scenario.KindOf(o) == kind && o.GetNamespace() == like.GetNamespace() {
			taken[o.GetName()] = true
		}
	}
	return func(yield func(string) bool) {
		for i := 0; n > 0; i++ {
			name := fmt.Sprintf("%s-new-%d", like.GetName(), i)
			if taken[name] {
				continue
			}
			if n--; !yield(name) {
				return
			}
		}
	}
}
