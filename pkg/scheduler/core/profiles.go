// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"
	"sync"

	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/caldera-scheduler/caldera/pkg/gang/room"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
)

// profiles are those of the scheduler.
type profiles struct {
	mu sync.Mutex
	// attached are the batch profiles, by their names.
	attached map[string]framework.Framework
	// sorted are those whose pods are in the queue; nil after Start.
	sorted []framework.Framework
}

// attach adds a batch profile.
func (p *profiles) attach(f framework.Framework) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.attached[f.ProfileName()] = f
}

// sort adds a profile whose pods are in the queue.
func (p *profiles) sort(f framework.Framework) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sorted = append(p.sorted, f)
}

// warnOfPreemption tells once of each profile of ordinary pods that breaks the gangs of others.
func (p *profiles) warnOfPreemption(logger klog.Logger) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.sorted {
		_, batch := p.attached[f.ProfileName()]
		plain := slices.ContainsFunc(f.ListPlugins().PostFilter.Enabled, func(pl schedulerconfig.Plugin) bool { return pl.Name == defaultpreemption.Name })
		if len(p.attached) > 0 && !batch && plain {
			logger.Info("Pods of this profile preempt single members of gangs, which breaks these: disable DefaultPreemption at multiPoint, and enable the other plugin in its place",
				"profile", f.ProfileName(), "instead", names.GangPreemption)
		}
	}
	p.sorted = nil
}

// checks are the filters of a scheduler's profile by which places on nodes can be counted.
func (p *profiles) checks(scheduler string) room.Checks {
	p.mu.Lock()
	f := p.attached[scheduler]
	p.mu.Unlock()
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
