// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// TestOrdinaryPodsTakeWhatTheGangGuardGives: all that may go of a gang may go together by the guard of gang, and nobody else besides them.
func TestOrdinaryPodsTakeWhatTheGangGuardGives(t *testing.T) {
	spared := 0
	rapid.Check(t, func(t *rapid.T) {
		d := crowd(t)
		d.args.Tiers = []config.Tier{{Plugins: []config.TierPlugin{switched(config.PluginGang)}}}
		set, state := d.make(t, nil, nil)
		protection := set.Protection(policy.EvictionWorld{Now: epoch})
		for _, key := range d.keys {
			job := state.Job(key)
			var on []*model.Task
			for _, task := range job.Tasks {
				if task.Status == model.Running {
					on = append(on, task)
				}
			}
			if job.Counts.Total() == 1 {
				// The guard lets go of who is alone where nobody needs the room.
				continue
			}
			spare := map[*model.Task]bool{}
			for _, task := range set.Ordinary(epoch, nil).Spare(job, on) {
				if why := protection.NeededBy(model.Victim{Task: task, Job: job}); why != "" {
					t.Fatalf("%s may go: %s", task.UID, why)
				}
				protection.Take(model.Victim{Task: task, Job: job})
				spare[task] = true
				spared++
			}
			for _, task := range on {
				if !spare[task] && protection.NeededBy(model.Victim{Task: task, Job: job}) == "" {
					t.Fatalf("%s may not go, though it is surplus still", task.UID)
				}
			}
		}
	})
	if spared == 0 {
		t.Fatal("nobody may go")
	}
}
