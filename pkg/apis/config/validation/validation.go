// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation checks the arguments of Caldera's plugins and reports all errors at once.
package validation

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulervalidation "k8s.io/kubernetes/pkg/scheduler/apis/config/validation"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// longestReservation is the scheduler framework's limit on waiting in Permit
// (k8s.io/kubernetes/pkg/scheduler/framework/runtime/framework.go, maxTimeout).
const longestReservation = 15 * time.Minute

// The largest values of ReclaimArgs: more evictions at a time only wait in the API server, and a larger ledger is not
// read by anybody.
const (
	mostEvictions = 1000
	largestLedger = 100000
)

// ValidateGangArgs checks the arguments of the plugin Gang.
func ValidateGangArgs(path *field.Path, args *config.GangArgs) error {
	var all field.ErrorList
	if args.BindConcurrency < 1 {
		all = append(all, field.Invalid(path.Child("bindConcurrency"), args.BindConcurrency, "must be at least 1"))
	}
	if d := args.ReservationTimeout.Duration; d <= 0 || d > longestReservation {
		all = append(all, field.Invalid(path.Child("reservationTimeout"), d.String(), "must be more than 0s and at most 15m"))
	}
	if kinds := []config.ScheduledEvents{config.PerGang, config.PerPod}; !slices.Contains(kinds, args.ScheduledEvents) {
		all = append(all, field.NotSupported(path.Child("scheduledEvents"), args.ScheduledEvents, kinds))
	}
	return all.ToAggregate()
}

// ValidateGangPreemptionArgs checks the arguments of the plugin GangPreemption, as upstream does those of DefaultPreemption.
func ValidateGangPreemptionArgs(path *field.Path, args *config.GangPreemptionArgs) error {
	return schedulervalidation.ValidateDefaultPreemptionArgs(path, &schedulerconfig.DefaultPreemptionArgs{
		MinCandidateNodesPercentage: args.MinCandidateNodesPercentage, MinCandidateNodesAbsolute: args.MinCandidateNodesAbsolute,
	})
}

// ValidateReclaimArgs checks the arguments of the plugin Reclaim.
func ValidateReclaimArgs(path *field.Path, args *config.ReclaimArgs) error {
	var all field.ErrorList
	if n := args.EvictionConcurrency; n < 1 || n > mostEvictions {
		all = append(all, field.Invalid(path.Child("evictionConcurrency"), n, fmt.Sprintf("must be at least 1 and at most %d", mostEvictions)))
	}
	if d := args.QueueCooldown.Duration; d < 0 {
		all = append(all, field.Invalid(path.Child("queueCooldown"), d.String(), "must be at least 0s"))
	}
	if d := args.VictimTimeout.Duration; d <= 0 {
		all = append(all, field.Invalid(path.Child("victimTimeout"), d.String(), "must be more than 0s"))
	}
	if n := args.LedgerSize; n < 1 || n > largestLedger {
		all = append(all, field.Invalid(path.Child("ledgerSize"), n, fmt.Sprintf("must be at least 1 and at most %d", largestLedger)))
	}
	return all.ToAggregate()
}
