// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestNoMoreGoThanAreMissing: where all pods are alike, a gang has as many evicted as it lacks cores that are idle and kept for nobody.
func TestNoMoreGoThanAreMissing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		const nodes, cores = 6, 4
		size := rapid.IntRange(1, 8).Draw(r, "size")
		var on, kept []string
		idle := 0
		for i := range nodes {
			node := fmt.Sprintf("node-%d", i)
			running := rapid.IntRange(0, cores).Draw(r, "running")
			promised := rapid.IntRange(0, cores-running).Draw(r, "promised")
			for range running {
				on = append(on, node)
			}
			for range promised {
				kept = append(kept, node)
			}
			idle += cores - running - promised
		}
		if len(on) == 0 || len(kept) == 0 || len(on) < size {
			r.Skip()
		}
		others := gangOf("l", 0, len(on), "1")
		for i, p := range others.pods {
			onNode(p, on[i])
		}
		w := newBusy(t, nodeShapes{{count: nodes, cpu: fmt.Sprint(cores), memory: "64Gi"}}, in("default", "low", others))
		promised := w.job(in("default", "high", gangOf("k", len(kept), len(kept), "1")))
		job := w.job(in("default", "high", gangOf("h", size, size, "1")))
		var nominations []model.Nomination
		for i, task := range promised.Tasks {
			nominations = append(nominations, model.Nomination{UID: task.UID, Node: kept[i]})
		}
		w.state.Pipeline(nominations, nil)
		set := w.policies(t, tiers("preempt", preempting), queue("default", 1))
		st := w.evict(t, set, config.Preempt, job)
		if want := max(0, size-idle); len(st.Placements) != size || len(st.Victims) != want {
			r.Errorf("%d go and %d are placed (%s), want %d and %d: %d cores are idle", len(st.Victims), len(st.Placements), st.Why, want, size, idle)
		}
	})
}
