// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"sync"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	configv1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
)

// setup is what the factories of plugins say, until the core starts.
type setup struct {
	mu     sync.Mutex
	start  func() error
	joined []fwk.Plugin
	// voters make those that the tiers ask and that have registered.
	voters map[string]VoterFactory
	// evictionArgs is nil when no plugin evicts for jobs.
	evictionArgs *config.ReclaimArgs
}

func (s *setup) join(plugin fwk.Plugin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined = append(s.joined, plugin)
}

func (s *setup) evictBy(args *config.ReclaimArgs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.evictionArgs == nil {
		s.evictionArgs = args
	}
}

// evicts reports whether some plugin evicts for jobs. It must not be called before all plugins exist.
func (s *setup) evicts() bool { return s.evictionArgs != nil }

// evictions is how evictions are carried out: as the plugin Reclaim is told, or by its defaults.
func (s *setup) evictions() *config.ReclaimArgs {
	if s.evictionArgs != nil {
		return s.evictionArgs
	}
	args := &configv1.ReclaimArgs{}
	configv1.SetDefaults_ReclaimArgs(args)
	return &config.ReclaimArgs{
		LedgerSize: *args.LedgerSize, EvictionConcurrency: *args.EvictionConcurrency, VictimTimeout: *args.VictimTimeout,
		QueueCooldown: *args.QueueCooldown,
	}
}
