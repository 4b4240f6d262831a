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
		room  gang.Ahead
		terms Terms
		want  string
	}{
		"a bound": {
			room:  room(true, false),
			terms: Terms{Within: 10 * time.Minute},
			want:  "room is reserved for 3 pods on 2 nodes: the job starts by 2026-01-02T11:00:00Z, when the last pod that is there is stopped",
		},
		"a bound, if others ask for no more": {
			room:  room(true, false),
			terms: Terms{IfDue: true},
			want:  "room is reserved for 3 pods on 2 nodes: the job starts by 2026-01-02T11:00:00Z, when the last pod that is there is stopped, if its queue is still due as much, which others may change by asking for more",
		},
		"an estimate": {
			room:  room(false, false),
			terms: Terms{Within: 10 * time.Minute},
			want:  "room is reserved for 3 pods on 2 nodes: the job starts about 2026-01-02T11:00:00Z, when the last pod that is there is expected to end, or up to 10m later, as short jobs use the room until then",
		},
		"an estimate, and nobody may pass": {
			room:  room(false, false),
			terms: Terms{},
			want:  "room is reserved for 3 pods on 2 nodes: the job starts about 2026-01-02T11:00:00Z, when the last pod that is there is expected to end",
		},
		"a guess": {
			room:  room(false, true),
			terms: Terms{Within: 10 * time.Minute},
			want:  "room is reserved for 3 pods on 2 nodes: the job starts when pods that are there end, which nobody has said",
		},
	} {
		if got := toldOf(c.room, c.terms); got != c.want {
			t.Errorf("%s: told is %q, want %q", name, got, c.want)
		}
	}
}
