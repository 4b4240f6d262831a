// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

func TestWindows(t *testing.T) {
	at := func(clock string) time.Time {
		parsed, err := time.Parse("2006-01-02 15:04:05", clock)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for name, tc := range map[string]struct {
		window, now string
		open        bool
		next        string
	}{
		"before it begins":             {"9:00-17:00", "2026-05-01 08:59:59", false, "2026-05-01 09:00:00"},
		"when it begins":               {"9:00-17:00", "2026-05-01 09:00:00", true, "2026-05-01 17:00:00"},
		"when it ends":                 {"9:00-17:00", "2026-05-01 17:00:00", true, "2026-05-01 17:00:00"},
		"after it has ended":           {"9:00-17:00", "2026-05-01 17:00:01", false, "2026-05-02 09:00:00"},
		"before midnight":              {"22:00-6:30", "2026-05-01 23:00:00", true, "2026-05-02 06:30:00"},
		"after midnight":               {"22:00-6:30", "2026-05-01 03:00:00", true, "2026-05-01 06:30:00"},
		"between two nights":           {"22:00-6:30", "2026-05-01 12:00:00", false, "2026-05-01 22:00:00"},
		"always":                       {"0:00-0:00", "2026-05-01 12:00:00", true, "2026-05-02 00:00:00"},
		"always, not from midnight on": {"12:00-12:00", "2026-05-01 11:00:00", true, "2026-05-01 12:00:00"},
		"the last night of a year":     {"22:00-6:30", "2026-12-31 23:00:00", true, "2027-01-01 06:30:00"},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := arguments.ParseWindow(tc.window)
			if err != nil {
				t.Fatal(err)
			}
			if w.String() != tc.window {
				t.Errorf("it is written as %s", w)
			}
			if got := w.Contains(at(tc.now)); got != tc.open {
				t.Errorf("open: %t, want %t", got, tc.open)
			}
			if got := w.Next(at(tc.now)).Truncate(time.Second); !got.Equal(at(tc.next)) {
				t.Errorf("the next change is at %s, want %s", got, tc.next)
			}
		})
	}
}

// TestNothingChangesBeforeTheNextTime: between a time and the next one at which a window begins or ends it is all open, or
// all shut.
func TestNothingChangesBeforeTheNextTime(t *testing.T) {
	zone := time.FixedZone("east", 5*3600+1800)
	rapid.Check(t, func(t *rapid.T) {
		minutes := func(name string) time.Duration {
			return time.Duration(rapid.IntRange(0, 24*60-1).Draw(t, name)) * time.Minute
		}
		w := arguments.Window{Start: minutes("start"), End: minutes("end")}
		now := time.Date(2026, 3, 1, 0, 0, 0, 0, zone).Add(time.Duration(rapid.IntRange(0, 3*24*3600).Draw(t, "now")) * time.Second)
		next := w.Next(now)
		if !next.After(now) || next.Sub(now) > 25*time.Hour {
			t.Fatalf("%s at %s: the next change is at %s", w, now, next)
		}
		between := now.Add(time.Duration(rapid.Int64Range(0, int64(next.Sub(now))-1).Draw(t, "between")))
		if w.Contains(between) != w.Contains(now) {
			t.Fatalf("%s is open %t at %s and %t at %s, before %s", w, w.Contains(now), now, w.Contains(between), between, next)
		}
	})
}
