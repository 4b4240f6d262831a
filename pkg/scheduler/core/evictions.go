// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	configv1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
	"github.com/caldera-scheduler/caldera/pkg/preemption/reserve"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// ConfigureEvictions gives the engine what evictions are carried out by; the first call decides.
func (e *Engine) ConfigureEvictions(args *config.ReclaimArgs) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.evictionArgs == nil {
		e.evictionArgs = args
	}
}

// newEvictions builds what carries out evictions.
func (e *Engine) newEvictions(handle framework.Framework, writer *status.Writer) *reserve.Keeper {
	args := e.evictionArgs
	if args == nil {
		args = defaultEvictionArgs()
	}
	return reserve.New(reserve.Config{State: e.State, Writer: writer, Profile: handle, Clock: e.options.Clock, Args: args})
}

// defaultEvictionArgs are those of a profile that does not say how to evict.
func defaultEvictionArgs() *config.ReclaimArgs {
	args := &configv1.ReclaimArgs{}
	configv1.SetDefaults_ReclaimArgs(args)
	return &config.ReclaimArgs{
		LedgerSize: *args.LedgerSize, EvictionConcurrency: *args.EvictionConcurrency, VictimTimeout: *args.VictimTimeout,
		QueueCooldown: *args.QueueCooldown,
	}
}
