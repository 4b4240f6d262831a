// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestWhenTheMinimumOfABrokenGangLapses: of one whose release was refused it has lapsed, though its next release is some time away.
func TestWhenTheMinimumOfABrokenGangLapses(t *testing.T) {
	since := time.Unix(1000, 0)
	key := func(name string) model.JobKey {
		return model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: name}
	}
	five := terms{after: 5 * time.Minute}
	g := &brokenGangs{gangs: map[model.JobKey]broken{
		key("half"):     {how: Half, since: since},
		key("lost"):     {how: Lost, since: since, terms: five},
		key("refused"):  {how: Lost, since: since, terms: five, asked: true},
		key("released"): {how: Half, released: 1},
	}}
	want := map[model.JobKey]time.Time{key("half"): since, key("lost"): since.Add(5 * time.Minute), key("refused"): since}
	if diff := cmp.Diff(want, g.lapses()); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
}
