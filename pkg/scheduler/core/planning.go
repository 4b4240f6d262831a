// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/gang/room"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// DomainsOf says inside of which domains a turn of a job may be planned, and why in none; nil: anywhere.
func (e *Engine) DomainsOf(job *model.Job, nodes []fwk.NodeInfo) (domains []gang.Domain, refusal string) {
	if d := e.rules.Load().domains; d != nil {
		return d.DomainsOf(job, nodes)
	}
	return nil, ""
}

// EvictingDomains is in how many of the domains of a job evictions are tried.
func (e *Engine) EvictingDomains() int { return e.rules.Load().domains.EvictingDomains() }

// ReservationCanFail reports whether some plugin may refuse a reservation for the pod, so that the members of its gang must
// wait for each other before they bind.
func (e *Engine) ReservationCanFail(pod *corev1.Pod) bool {
	return slices.ContainsFunc(e.rules.Load().refusers, func(r Refuser) bool { return r.MayRefuse(pod) })
}

// Behind reports whether a snapshot of the scheduler's cache lacks room that the model knew of when it was taken, on a node that concerns
// the turn, so that one which was refused by it is to be planned again: at once, or, if it is late, after a while.
func (e *Engine) Behind(snapshot fwk.NodeInfoLister, taken time.Time, concerns func(node string) bool) (behind, late bool) {
	return e.lag.behind(snapshot, taken, concerns)
}

// Doubted reports whether a snapshot of the scheduler's cache lacks room, on a node that concerns the turn, of which the model has learned
// within the last second: nobody is to be evicted by it.
func (e *Engine) Doubted(snapshot fwk.NodeInfoLister, concerns func(node string) bool) bool {
	return e.lag.doubted(snapshot, concerns)
}

// checks are the filters of a scheduler's profile by which places on nodes can be counted.
func (e *Engine) checks(scheduler string) room.Checks {
	e.mu.Lock()
	f := e.profiles[scheduler]
	e.mu.Unlock()
	if f == nil {
		return room.Checks{}
	}
	enabled := map[string]bool{}
	for _, pl := range f.ListPlugins().Filter.Enabled {
		enabled[pl.Name] = true
	}
	return room.Checks{
		Resources: enabled[upstream.NodeResourcesFit], Affinity: enabled[upstream.NodeAffinity],
		Taints: enabled[upstream.TaintToleration], Unschedulable: enabled[upstream.NodeUnschedulable],
	}
}
