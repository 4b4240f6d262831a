// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction_test

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
)

// Decisions, cancellations and what becomes of pods meet in any order; in the end every pod that was evicted is counted
// once.
func TestManyAtOnce(t *testing.T) {
	play(t, 8, func(s *stage) {
		s.before = func(name string) error {
			time.Sleep(time.Duration(len(name)%3) * time.Millisecond)
			if strings.HasSuffix(name, "7") {
				return apierrors.NewTooManyRequests("budget", 0)
			}
			return nil
		}
		var running sync.WaitGroup
		for i := range 20 {
			var names []string
			for j := range 10 {
				names = append(names, fmt.Sprintf("a-%d%d", i, j))
			}
			list := victims(strings.Join(names, ","), "a")
			list[i%10].Budgeted = true
			s.add(list...)
			running.Go(func() {
				key := job(fmt.Sprintf("x%d", i))
				s.executor.Execute(s.ledger.Begin(time.Now(), eviction.Decision{Action: eviction.Reclaim, Beneficiary: key, Queue: "b", Victims: list}))
				time.Sleep(time.Duration(i) * time.Millisecond)
				for _, v := range list {
					s.ledger.Gone(v.UID)
				}
				if i%2 == 0 {
					s.ledger.Cancel(key, time.Now())
				} else {
					s.ledger.Started(key, time.Now())
				}
			})
		}
		running.Wait()
		s.rest()
		evicted := 0
		for _, d := range s.ledger.Decisions() {
			if d.Outcome == eviction.Pending {
				t.Errorf("decision %d is pending", d.ID)
			}
			for _, v := range d.Victims {
				if v.Evicted {
					evicted++
				}
			}
		}
		counted := uint64(0)
		for n := range maps.Values(s.ledger.Figures().Evictions) {
			counted += n
		}
		if int(counted) != evicted || len(s.api.Disruptions(0)) > evicted {
			t.Errorf("%d pods were evicted, the ledger has %d and counted %d", len(s.api.Disruptions(0)), evicted, counted)
		}
	})
}
