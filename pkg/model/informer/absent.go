// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
)

// owner names a controller as its pods do.
type owner struct {
	kind, namespace, name string
	uid                   types.UID
}

// absentees are controllers that pods name and that have not been seen, with the pods that wait for them. They have no lock of their own.
type absentees struct {
	patience time.Duration
	// overdue are controllers that pods have waited for too long.
	overdue workqueue.TypedRateLimitingInterface[owner]
	all     map[types.UID]*absence
	// held says for each pod that waits for which controller.
	held map[types.UID]types.UID
}

// absence has the pods of one controller that was not seen.
type absence struct {
	pods map[types.UID]*corev1.Pod
	// passed: pods of it are on nodes, and do not wait.
	passed bool
}

func newAbsentees(now clock.WithTicker, patience time.Duration) absentees {
	return absentees{
		patience: patience, all: map[types.UID]*absence{}, held: map[types.UID]types.UID{},
		overdue: workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[owner](),
			workqueue.TypedRateLimitingQueueConfig[owner]{Clock: now}),
	}
}

// hold has a pod wait for its controller, and reports whether it has to. One that is on a node takes its room whatever its controller says.
func (a *absentees) hold(pod *corev1.Pod, by owner) bool {
	if a.patience == 0 {
		return false
	}
	missing := a.all[by.uid]
	if missing == nil {
		missing = &absence{pods: map[types.UID]*corev1.Pod{}}
		a.all[by.uid] = missing
		a.overdue.AddAfter(by, a.patience)
	}
	if pod.Spec.NodeName != "" {
		missing.passed = true
		return false
	}
	missing.pods[pod.UID], a.held[pod.UID] = pod, by.uid
	return true
}

// letGo has a pod not wait any more.
func (a *absentees) letGo(pod types.UID) {
	if by, ok := a.held[pod]; ok {
		delete(a.all[by].pods, pod)
		delete(a.held, pod)
	}
}

// waited reports whether pods wait for a controller, or have waited since it was last seen.
func (a *absentees) waited(by types.UID) bool { return a.all[by] != nil }

// passed reports whether pods of a controller that is absent did not wait for it.
func (a *absentees) passed(by types.UID) bool { return a.all[by] != nil && a.all[by].passed }

// came returns the pods that waited for a controller, by name. It is not absent any more.
func (a *absentees) came(by types.UID) []*corev1.Pod {
	missing := a.all[by]
	if missing == nil {
		return nil
	}
	delete(a.all, by)
	for pod := range missing.pods {
		delete(a.held, pod)
	}
	return slices.SortedFunc(maps.Values(missing.pods), func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
}
