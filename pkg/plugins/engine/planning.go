// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// MayRefuse is for plugins that may refuse, at Reserve, a node that their Filter takes: it tells for which pods. Only
// factories may call it.
func (e *Engine) MayRefuse(pods func(*corev1.Pod) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refusers = append(e.refusers, pods)
}

// Confine has gangs planned inside of domains. Only factories may call it.
func (e *Engine) Confine(domains gang.Domains) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.confines = domains
}

// DomainsOf says inside of which domains a turn of a job may be planned, and why in none; nil: anywhere.
func (e *Engine) DomainsOf(job *model.Job, nodes []fwk.NodeInfo) (domains []gang.Domain, refusal string) {
	if e.confines == nil {
		return nil, ""
	}
	return e.confines.DomainsOf(job, nodes)
}

// EvictingDomains is in how many of the domains of a job evictions are tried.
func (e *Engine) EvictingDomains() int { return e.confines.EvictingDomains() }

// ReservationCanFail reports whether some plugin may refuse a reservation for the pod, so that the members of its gang must
// wait for each other before they bind.
func (e *Engine) ReservationCanFail(pod *corev1.Pod) bool {
	return slices.ContainsFunc(e.refusers, func(refuses func(*corev1.Pod) bool) bool { return refuses(pod) })
}
