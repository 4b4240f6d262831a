// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"testing"
	"testing/synctest"

	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// TestNoTurnBeginsWhileTooManyWaitToBeBound: the next begins as soon as they are fewer, though nothing else happens. A turn that is on goes on.
func TestNoTurnBeginsWhileTooManyWaitToBeBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("first", 2, 3, "1")
		d.want("first-0")
		d.Unbound(dispatch.MostUnbound)
		d.plan("first-0")
		d.want("first-1")
		d.place("first-0")
		d.place("first-1")
		d.submit("second", 1, 2, "1")
		d.submit("third", 1, 1, "1")
		d.want()
		d.Unbound(1)
		d.Unbound(-1)
		d.Between()
		d.want()

		d.Unbound(-1)
		d.want("second-0")
		d.Unbound(-dispatch.MostUnbound + 1)
		d.plan("second-0")
		d.place("second-0")
		d.want("third-0")
	})
}
