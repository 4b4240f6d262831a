// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// Trust says what is believed of how long pods run.
type Trust string

// What may be believed.
const (
	// Enforced is activeDeadlineSeconds of the pod.
	Enforced Trust = "Enforced"
	// Declared is also what the annotation caldera.dev/expected-runtime says.
	Declared Trust = "Declared"
)

// Reservation are the arguments of the plugin reservation.
type Reservation struct {
	// After is how long nodes must have refused a job for room to be reserved for it; from 0s to 720h.
	After time.Duration
	// Holders is for how many jobs room may be reserved at a time; from 1 to 16.
	Holders int
	// BackfillWithin is how long a job may run that uses reserved room while it is not known when that will be needed; from 0s to 24h.
	BackfillWithin time.Duration
	// Trust is what is believed of how long pods run: activeDeadlineSeconds (Enforced), or caldera.dev/expected-runtime, too (Declared).
	Trust Trust
	// GiveUpAfter is for how long room is reserved at most; from 0, which is for ever, to 720h.
	GiveUpAfter time.Duration
}

// DecodeReservation reads the arguments of the plugin reservation; path is that of the plugin's entry.
func DecodeReservation(p *config.TierPlugin, path *field.Path) (Reservation, field.ErrorList) {
	const longest = 720 * time.Hour
	d := newDecoder(path, p.Arguments)
	decoded := Reservation{
		After:          value(d, "reservation.after", 30*time.Minute, between(longest, "from 0s to 720h")),
		Holders:        value(d, "reservation.holders", 1, integer(1, 16)),
		BackfillWithin: value(d, "reservation.backfillWithin", 10*time.Minute, between(24*time.Hour, "from 0s to 24h")),
		Trust:          value(d, "reservation.trust", Enforced, oneOf(Enforced, Declared)),
		GiveUpAfter:    value(d, "reservation.giveUpAfter", 24*time.Hour, between(longest, "from 0s, which is never, to 720h")),
	}
	return decoded, d.finish(p.Name)
}

// between parses a duration from 0 to a greatest.
func between(most time.Duration, limits string) func(runtime.RawExtension) (time.Duration, error) {
	return func(v runtime.RawExtension) (time.Duration, error) {
		d, err := duration(0, limits)(v)
		if err == nil && d > most {
			err = errors.New("must be " + limits)
		}
		return d, err
	}
}
