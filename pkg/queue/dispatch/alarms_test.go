// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"slices"
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestAlarmsRingOnceAtTheFirstTime: of the times that were asked for a job the first one counts, and one that was dropped does not ring.
func TestAlarmsRingOnceAtTheFirstTime(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	job := func(name string) model.JobKey { return model.JobKey{Name: name} }
	s := newAlarms()
	if !s.next().IsZero() {
		t.Errorf("the first time is %s, nothing was asked for", s.next())
	}
	s.set(job("late"), at(9))
	s.set(job("sooner"), at(8))
	s.set(job("sooner"), at(2))
	s.set(job("sooner"), at(5))
	s.set(job("first"), at(1))
	s.set(job("dropped"), at(1))
	s.drop(job("dropped"))
	s.drop(job("unknown"))
	if !s.next().Equal(at(1)) {
		t.Errorf("the first time is %s, want %s", s.next(), at(1))
	}
	s.expect(t, at(0), nil)
	s.expect(t, at(2), []string{"first", "sooner"})
	s.expect(t, at(8), nil)
	s.set(job("first"), at(20))
	s.expect(t, at(30), []string{"late", "first"})
}

func (s alarms) expect(t *testing.T, now time.Time, want []string) {
	t.Helper()
	var rang []string
	s.ring(now, func(job model.JobKey) { rang = append(rang, job.Name) })
	if !slices.Equal(rang, want) {
		t.Errorf("at %s %v ring, want %v", now.UTC().Format(time.TimeOnly), rang, want)
	}
}
