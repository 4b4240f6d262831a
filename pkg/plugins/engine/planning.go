// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// MayRefuse is for plugins that may refuse, at Reserve, a node that their Filter takes: it tells for which pods. Only
// factories may call it.
func (e *Engine) MayRefuse(pods func(*corev1.Pod) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refusers = append(e.refusers, pods)
}

// ReservationCanFail reports whether some plugin may refuse a reservation for the pod, so that the members of its gang must
// wait for each other before they bind.
func (e *Engine) ReservationCanFail(pod *corev1.Pod) bool {
	return slices.ContainsFunc(e.refusers, func(refuses func(*corev1.Pod) bool) bool { return refuses(pod) })
}
