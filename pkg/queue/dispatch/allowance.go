// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import "time"

// How much of the time plans may take that come to nothing: a tenth, at first and after a rest so much at once. What is spent beyond is
// made up for, as far as it is below a bound: first plans cannot be put off.
const (
	allowedPart  = 10
	allowedBurst = 50 * time.Millisecond
	mostDebt     = 100 * time.Millisecond
)

// allowance is the time that is left for plans which may come to nothing. The zero value is full.
type allowance struct {
	// spent is how much of the burst is used, as of the time at.
	spent time.Duration
	at    time.Time
}

// charge takes the cost of a plan off.
func (a *allowance) charge(now time.Time, cost time.Duration) {
	a.spent = min(allowedBurst+mostDebt, a.used(now)+cost)
	a.at = now
}

// used is how much of the burst is used.
func (a *allowance) used(now time.Time) time.Duration {
	return max(0, a.spent-now.Sub(a.at)/allowedPart)
}

// left reports whether there is time left.
func (a *allowance) left(now time.Time) bool { return a.used(now) < allowedBurst }

// until is how long there is none left.
func (a *allowance) until(now time.Time) time.Duration {
	return max(0, (a.used(now)-allowedBurst)*allowedPart+allowedPart)
}
