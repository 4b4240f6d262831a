// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/gang"
)

// TestWhatIsToldOfReservedRoom: a time is told only if somebody has said it, and how sure it is.
func TestWhatIsToldOfReservedRoom(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 11, 0, 0, 0, time.UTC)
	room := func(sure, guessed bool) gang.Ahead {
		return gang.Ahead{Placements: []gang.Placement{{Node: "n1"}, {Node: "n2"}, {Node: "n2"}}, Start: at, Sure: sure, Guessed: guessed}
	}
	for name, c := range map[string]struct {
		room   gang.Ahead
		within time.Duration
		want   string
	}{
		"a bound": {
			room(true, false), 10 * time.Minute,
			"room is reserved for 3 pods on 2 nodes: the job starts by 2026-01-02T11:00:00Z, when the last pod that is there is stopped",
		},
		"an estimate": {
			room(false, false), 10 * time.Minute,
			"room is reserved for 3 pods on 2 nodes: the job starts about 2026-01-02T11:00:00Z, when the last pod that is there is expected to end, or up to 10m later, as short jobs use the room until then",
		},
		"an estimate, and nobody may pass": {
			room(false, false), 0,
			"room is reserved for 3 pods on 2 nodes: the job starts about 2026-01-02T11:00:00Z, when the last pod that is there is expected to end",
		},
		"a guess": {
			room(false, true), 10 * time.Minute,
			"room is reserved for 3 pods on 2 nodes: the job starts when pods that are there end, which nobody has said",
		},
	} {
		if got := toldOf(c.room, c.within); got != c.want {
			t.Errorf("%s: told is %q, want %q", name, got, c.want)
		}
	}
}
