// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"

	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
)

// preemptedWithin is how long pods that are preempted for an ordinary pod are believed to go before the API server confirms it. Upstream asks
// it at once, and does not tell when that fails.
const preemptedWithin = 10 * time.Second

// Preempted records that pods are preempted for a pod of another profile, so that nobody counts on them. Those that the API server has not
// made to leave after a while stay. Pods that are nobody's tasks are passed over.
func (e *Engine) Preempted(ctx context.Context, victims []types.UID) {
	e.State.Pipeline(nil, victims)
	go func() {
		select {
		case <-ctx.Done():
		case <-e.options.Clock.After(preemptedWithin):
		}
		for _, uid := range victims {
			e.State.Spare(uid)
		}
	}()
}

// warnOfPreemption tells once of each profile of ordinary pods that breaks the gangs of others.
func (e *Engine) warnOfPreemption(logger klog.Logger) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range e.sorted {
		_, batch := e.profiles[f.ProfileName()]
		plain := slices.ContainsFunc(f.ListPlugins().PostFilter.Enabled, func(p schedulerconfig.Plugin) bool { return p.Name == defaultpreemption.Name })
		if len(e.profiles) > 0 && !batch && plain {
			logger.Info("Pods of this profile preempt single members of gangs, which breaks these: disable DefaultPreemption at multiPoint, and enable the other plugin in its place",
				"profile", f.ProfileName(), "instead", names.GangPreemption)
		}
	}
	e.sorted = nil
}
