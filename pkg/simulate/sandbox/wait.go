// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// glance is how often it is looked whether something is still moving, but for the first eager times: most of what moves comes to rest sooner than
// a timer fires. What goes on and on is not worth looking at so often: looking takes a core from it.
const (
	glance = 100 * time.Microsecond
	eager  = 50
)

// bounds are when waiting is given up.
type bounds struct {
	// patience is how long nothing may happen.
	patience time.Duration
	// cycles is the scheduling cycle beyond which there is no progress any more, only going round in circles.
	cycles int64
}

// progress is how far a scheduler has come.
type progress struct {
	// version is the resource version of the last write, cycle the number of the last scheduling cycle.
	version uint64
	cycle   int64
}

// wait waits until nothing is moving. The error says what still is.
func wait(ctx context.Context, b bounds, moving func() string, reached func() progress) error {
	patience := time.NewTimer(b.patience)
	defer patience.Stop()
	look := time.NewTimer(glance)
	defer look.Stop()
	looks := 0
	var what string
	var far progress
	for {
		beforeWhat, beforeFar := what, far
		what, far = moving(), reached()
		switch {
		case what == "":
			return nil
		case far.cycle > b.cycles:
			return fmt.Errorf("the scheduler does not come to rest: at scheduling cycle %d, %s", far.cycle, what)
		case what != beforeWhat || far != beforeFar:
			patience.Reset(b.patience)
			if what != beforeWhat {
				looks = 0
			}
		}
		if looks++; looks < eager && ctx.Err() == nil {
			runtime.Gosched()
			continue
		}
		look.Reset(glance)
		select {
		case <-look.C:
		case <-patience.C:
			return fmt.Errorf("nothing has happened for %s, and yet %s", b.patience, what)
		case <-ctx.Done():
			return fmt.Errorf("%w while %s", context.Cause(ctx), what)
		}
	}
}
