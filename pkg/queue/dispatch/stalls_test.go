// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestLotsThatNodesRefuseStallInTheirOrder: those that are gone by then are not kept until it is their time.
func TestLotsThatNodesRefuseStallInTheirOrder(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
	s := stalls{cfg: &Config{Clock: clock, Rules: Rules{StalledAfter: 10 * time.Second}}}
	b := &backlog{lots: map[lotKey]*lot{}}
	refused := func(queue string, there bool) *lot {
		l := &lot{key: lotKey{lineKey: lineKey{queue: queue}}}
		if there {
			b.lots[l.key] = l
		}
		s.note(l, model.Reason{FromNodes: true})
		clock.Step(time.Second)
		return l
	}
	gone, first, second := refused("gone", false), refused("first", true), refused("second", true)
	if due := s.due(clock.Now(), b); len(due) != 0 || len(s.refused) != 2 || s.refused[0].lot != first {
		t.Errorf("%d lots have stalled and %d may, want none and two: %s is gone", len(due), len(s.refused), gone.key.queue)
	}
	clock.SetTime(s.next())
	if due := s.due(clock.Now(), b); len(due) != 1 || due[0] != first {
		t.Errorf("%d lots have stalled, want the first one", len(due))
	}
	if want := second.refusedSince.Add(10 * time.Second); !s.next().Equal(want) {
		t.Errorf("the next is looked at at %s, want %s", s.next(), want)
	}
	s.note(second, model.Reason{FromNodes: true})
	if len(s.refused) != 1 {
		t.Errorf("%d lots may stall, want one: it was noted before", len(s.refused))
	}
}
