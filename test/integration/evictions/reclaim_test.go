// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestAGangTakesWhatItIsDueAndNoMore has a queue fill the cluster, and a gang of 40 % of it arrive in another one of the
// same weight, while a controller brings back whoever is evicted.
func TestAGangTakesWhatItIsDueAndNoMore(t *testing.T) {
	st := open(t, 5)
	many := make([]env.Gang, 5)
	for i := range many {
		many[i] = job(fmt.Sprintf("crowd-%d", i), "a", 1, 4)
	}
	for _, c := range []struct {
		name string
		jobs []env.Gang
		// idle cores need no victims.
		idle     int
		sameName bool
		watch    time.Duration
	}{
		{name: "one job, new names", jobs: []env.Gang{job("big", "a", 1, 20)}, watch: 20 * time.Second},
		{name: "one job, the same names", jobs: []env.Gang{job("big", "a", 1, 20)}, sameName: true, watch: 2 * calm},
		{name: "many jobs", jobs: many, watch: 2 * calm},
		{name: "three idle cores", jobs: []env.Gang{job("big", "a", 1, 17)}, idle: 3, watch: calm},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := st.play(t, byShares)
			s.recreate(c.sameName)
			s.queues(map[string]queueSpec{"a": {weight: 1}, "b": {weight: 1}})
			s.fill(c.jobs...)
			s.Create(t, job("gang", "b", 8, 8))
			s.holds(map[string]int{"gang": 8})
			taken, left := 0, 0
			watch := func() string {
				taken, left = 0, 0
				for _, g := range c.jobs {
					taken += s.witness.counts()[g.Name]
					left += s.running()[g.Name]
				}
				if taken != 8-c.idle || left != 12 || s.running()["gang"] != 8 {
					return fmt.Sprintf("%d pods evicted, want %d; %d pods of queue a and %d of the gang run, want 12 and 8",
						taken, 8-c.idle, left, s.running()["gang"])
				}
				return ""
			}
			env.Consistently(t, c.watch, watch)
			if totals := s.totals(); totals.Decisions != 1 || totals.Evicted != int64(8-c.idle) || totals.Wasted != 0 || totals.Cycles != 0 {
				t.Errorf("the ledger has %+v, want one decision and %d evicted", totals, 8-c.idle)
			}
		})
	}
}

// TestSiblingsGiveBeforeCousins checks that of two queues that both hold more than they deserve the nearer one pays.
func TestSiblingsGiveBeforeCousins(t *testing.T) {
	s := single(t, 5, byTree)
	s.recreate(false)
	s.queues(map[string]queueSpec{
		"eng": {deserved: "14"}, "dev": {parent: "eng", deserved: "7"}, "prod": {parent: "eng", deserved: "7"},
		"sci": {deserved: "6"}, "lab": {parent: "sci", deserved: "6"},
	})
	s.fill(job("sibling", "dev", 1, 11), job("cousin", "lab", 1, 9))
	s.Create(t, job("gang", "prod", 4, 4))
	s.holds(map[string]int{"gang": 4})
	s.evicted(map[string]int{"sibling": 4}, 2*calm)
}

// TestJobsAtTheirMinimum checks what queues lose whose jobs have nothing to spare, or something.
func TestJobsAtTheirMinimum(t *testing.T) {
	st := open(t, 5)
	// play fills the cluster with jobs of four pods and lets a gang of eight arrive.
	play := func(t *testing.T, actions string, least int) *scene {
		t.Helper()
		s := st.play(t, in(byShares, actions))
		s.queues(map[string]queueSpec{"a": {weight: 1}, "b": {weight: 1}})
		var jobs []env.Gang
		for i := range 5 {
			jobs = append(jobs, job(fmt.Sprintf("four-%d", i), "a", least, 4))
		}
		s.fill(jobs...)
		s.Create(t, job("gang", "b", 8, 8))
		return s
	}
	t.Run("reclaim takes nothing", func(t *testing.T) {
		s := play(t, "enqueue, allocate, reclaim", 4)
		s.refused("gang", "reclaim: ", "20 because its job would fall below its minimum")
	})
	for _, least := range []int{4, 2} {
		t.Run(fmt.Sprintf("gangreclaim, minimum %d of 4", least), func(t *testing.T) {
			s := play(t, "enqueue, allocate, gangreclaim", least)
			s.recreate(false)
			s.holds(map[string]int{"gang": 8})
			counts, total := s.witness.counts(), 0
			for name, n := range counts {
				total += n
				if least == 4 && n != 4 || least == 2 && n > 2 {
					t.Errorf("%d pods of job %s were evicted, its minimum is %d of 4", n, name, least)
				}
			}
			if total != 8 {
				t.Errorf("evicted: %v, want 8 pods", counts)
			}
			s.evicted(maps.Clone(counts), 2*calm)
		})
	}
}
