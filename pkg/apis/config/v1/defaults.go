// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// SetDefaults_GangArgs fills what the user left out.
func SetDefaults_GangArgs(args *GangArgs) { //nolint:revive // The defaulter generator prescribes the name.
	if args.BindConcurrency == nil {
		// Measured: 64 binds in flight give more pods a second than thousands (docs/design/0001-gangs.md).
		args.BindConcurrency = ptr.To[int32](64)
	}
	if args.ReservationTimeout == nil {
		args.ReservationTimeout = &metav1.Duration{Duration: 5 * time.Minute}
	}
	if args.ScheduledEvents == "" {
		args.ScheduledEvents = string(config.PerPod)
	}
}

// SetDefaults_GangPreemptionArgs fills what the user left out with upstream's defaults of DefaultPreemption.
func SetDefaults_GangPreemptionArgs(args *GangPreemptionArgs) { //nolint:revive // The defaulter generator prescribes the name.
	if args.MinCandidateNodesPercentage == nil {
		args.MinCandidateNodesPercentage = ptr.To[int32](10)
	}
	if args.MinCandidateNodesAbsolute == nil {
		args.MinCandidateNodesAbsolute = ptr.To[int32](100)
	}
}

// SetDefaults_ReclaimArgs fills what the user left out.
func SetDefaults_ReclaimArgs(args *ReclaimArgs) { //nolint:revive // The defaulter generator prescribes the name.
	if args.EvictionConcurrency == nil {
		args.EvictionConcurrency = ptr.To[int32](16)
	}
	if args.QueueCooldown == nil {
		args.QueueCooldown = &metav1.Duration{Duration: time.Minute}
	}
	if args.VictimTimeout == nil {
		args.VictimTimeout = &metav1.Duration{Duration: time.Minute}
	}
	if args.LedgerSize == nil {
		args.LedgerSize = ptr.To[int32](1000)
	}
}

// SetDefaults_BatchQueueArgs fills what the user left out with what Volcano has built in (pkg/scheduler/util.go,
// DefaultSchedulerConf).
func SetDefaults_BatchQueueArgs(args *BatchQueueArgs) { //nolint:revive // The defaulter generator prescribes the name.
	if args.Actions == nil {
		args.Actions = []string{string(config.Enqueue), string(config.Allocate), string(config.Backfill)}
	}
	if args.Tiers == nil {
		args.Tiers = []Tier{
			{Plugins: []TierPlugin{
				{Name: config.PluginPriority}, {Name: config.PluginGang}, {Name: config.PluginConformance},
			}},
			{Plugins: []TierPlugin{
				{Name: config.PluginOvercommit},
				{Name: config.PluginDRF},
				{Name: config.PluginPredicates},
				{Name: config.PluginProportion},
				{Name: config.PluginNodeOrder},
			}},
		}
	}
	if args.AdmissionTimeout == nil {
		args.AdmissionTimeout = &metav1.Duration{Duration: 10 * time.Minute}
	}
	if args.StalledAfter == nil {
		args.StalledAfter = &metav1.Duration{Duration: 10 * time.Second}
	}
	if args.PromiseGrace == nil {
		args.PromiseGrace = &metav1.Duration{Duration: 2 * time.Second}
	}
	if args.HalfTimeout == nil {
		args.HalfTimeout = &metav1.Duration{Duration: time.Minute}
	}
	if args.BrokenTimeout == nil {
		args.BrokenTimeout = &metav1.Duration{Duration: 5 * time.Minute}
	}
}
