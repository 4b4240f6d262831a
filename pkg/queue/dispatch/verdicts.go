// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// verdicts are applicants of one queue that were just rejected. Who claims no less than one of them is rejected, too, and need not be
// voted on. One tenant may make thousands of claims, each a little different, and all are looked at whenever a pod of the cluster ends.
type verdicts struct {
	// least are the smallest claims among all, outside the smallest among those that are not guests.
	least, outside []*applicants
	// guests are the greatest claims among the guests.
	guests []*applicants
}

// claim returns what each of the applicants claims; they claim the same.
func (a *applicants) claim() resource.Vector { return a.jobs.Top().job.Claim() }

// within reports whether applicants claim no more than others.
func (a *applicants) within(o *applicants) bool { return a.claim().Exceeding(o.claim()) == nil }

// note takes rejected applicants down.
func (v *verdicts) note(a *applicants) {
	less := func(a, b *applicants) bool { return a.within(b) }
	more := func(a, b *applicants) bool { return b.within(a) }
	v.least = keep(v.least, a, less)
	if a.guests {
		v.guests = keep(v.guests, a, more)
	} else {
		v.outside = keep(v.outside, a, less)
	}
}

// keep adds one to those that no other goes before, and takes those out that it goes before.
func keep(list []*applicants, a *applicants, before func(a, b *applicants) bool) []*applicants {
	if slices.ContainsFunc(list, func(o *applicants) bool { return before(o, a) }) {
		return list
	}
	return append(slices.DeleteFunc(list, func(o *applicants) bool { return before(a, o) }), a)
}

// imply tells, as far as it follows, that applicants are rejected again, and whether they are guests. Those that are new, or that may be
// trusted because their pods are yet to be created, are voted on.
func (v *verdicts) imply(a *applicants) (rejected, guests bool) {
	if a.asks || a.reason == (model.Reason{}) || a.jobs.Top().job.Counts.Total() == 0 {
		return false, false
	}
	covers := func(o *applicants) bool { return o.within(a) }
	if slices.ContainsFunc(v.outside, covers) {
		return true, false
	}
	if slices.ContainsFunc(v.guests, a.within) && slices.ContainsFunc(v.least, covers) {
		return true, true
	}
	return false, false
}
