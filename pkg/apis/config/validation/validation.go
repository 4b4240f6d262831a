// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package validation checks the arguments of Caldera's plugins and reports all errors at once.
package validation

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// longestReservation is the scheduler framework's limit on waiting in Permit
// (k8s.io/kubernetes/pkg/scheduler/framework/runtime/framework.go, maxTimeout).
const longestReservation = 15 * time.Minute

// ValidateGangArgs checks the arguments of the plugin Gang.
func ValidateGangArgs(path *field.Path, args *config.GangArgs) error {
	var all field.ErrorList
	if args.BindConcurrency < 1 {
		all = append(all, field.Invalid(path.Child("bindConcurrency"), args.BindConcurrency, "must be at least 1"))
	}
	if d := args.ReservationTimeout.Duration; d <= 0 || d > longestReservation {
		all = append(all, field.Invalid(path.Child("reservationTimeout"), d.String(), "must be more than 0s and at most 15m"))
	}
	return all.ToAggregate()
}
