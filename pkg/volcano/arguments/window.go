// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

// Window is a part of the day in local time, both ends included. Unless it ends after it starts, it ends the next day.
type Window struct {
	// Start and End are the time since midnight, in whole minutes, less than 24h.
	Start, End time.Duration
}

var errWindow = errors.New(`must be two times of day, such as "22:00-6:30"`)

// window is a Window as an argument has it.
func window(v runtime.RawExtension) (Window, error) { return ParseWindow(scalar(v)) }

// ParseWindow reads "HH:MM-HH:MM", where an hour below 10 needs no zero.
func ParseWindow(text string) (Window, error) {
	start, end, ok := strings.Cut(strings.TrimSpace(text), "-")
	if !ok {
		return Window{}, errWindow
	}
	var w Window
	for _, side := range []struct {
		text string
		into *time.Duration
	}{{start, &w.Start}, {end, &w.End}} {
		t, err := time.Parse("15:04", side.text)
		if err != nil {
			return Window{}, errWindow
		}
		*side.into = time.Duration(t.Hour())*time.Hour + time.Duration(t.Minute())*time.Minute
	}
	return w, nil
}

// String is the form that ParseWindow reads.
func (w Window) String() string {
	clock := func(d time.Duration) string { return fmt.Sprintf("%d:%02d", d/time.Hour, d%time.Hour/time.Minute) }
	return clock(w.Start) + "-" + clock(w.End)
}

// on are the ends of the window that starts on the day of a time, in the time's own zone. Where clocks are put forward or back
// in it, it is the times of day that hold.
func (w Window) on(day time.Time) (start, end time.Time) {
	y, m, d := day.Date()
	at := func(d int, since time.Duration) time.Time {
		return time.Date(y, m, d, int(since/time.Hour), int(since%time.Hour/time.Minute), 0, 0, day.Location())
	}
	if w.End <= w.Start {
		return at(d, w.Start), at(d+1, w.End)
	}
	return at(d, w.Start), at(d, w.End)
}

// Contains reports whether a time is in the window of its day or in that of the day before, which may end only now. Unlike
// in Volcano the hours after midnight belong to a window that began the evening before.
func (w Window) Contains(t time.Time) bool {
	for _, day := range []time.Time{t, t.AddDate(0, 0, -1)} {
		if start, end := w.on(day); !t.Before(start) && !t.After(end) {
			return true
		}
	}
	return false
}

// Next is the first time after t at which the window begins or has just ended.
func (w Window) Next(t time.Time) time.Time {
	var next time.Time
	for days := -1; days <= 2; days++ {
		start, end := w.on(t.AddDate(0, 0, days))
		// Both ends are included.
		for _, edge := range []time.Time{start, end.Add(time.Nanosecond)} {
			if edge.After(t) && (next.IsZero() || edge.Before(next)) {
				next = edge
			}
		}
	}
	return next
}
