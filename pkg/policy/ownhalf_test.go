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

// TestABrokenGangNeverExceedsACapability: whatever does not count of its own half, what its queue may hold at most does. What any other job
// might take, it may take, too.
func TestABrokenGangNeverExceedsACapability(t *testing.T) {
	for _, name := range []string{"proportion", "capacity", "tree"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				set, err := policy.Compile(&config.BatchQueueArgs{Tiers: tier(orderers[name])})
				if err != nil {
					t.Fatal(err)
				}
				draw := func(what string, most int64) int64 { return rapid.Int64Range(0, most).Draw(t, what) }
				capability := 1 + draw("capability", 12)
				set.SetCluster(cores(20))
				set.SetQueue(model.RootQueue, &model.Queue{Name: model.RootQueue})
				set.SetQueue("q", &model.Queue{Name: "q", Parent: model.RootQueue, Weight: 1, Capability: cores(capability), Deserved: cores(1)})
				set.SetQueue("other", &model.Queue{Name: "other", Parent: model.RootQueue, Weight: int32(1 + draw("weight", 9))})
				held := map[string]int64{"broken": draw("its own half", 6), "beside": draw("beside it", 6), "other": draw("other", 10)}
				for job, queue := range map[string]string{"broken": "q", "beside": "q", "other": "other"} {
					key := model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: job}
					set.SetJob(key, &model.Job{Key: key, Queue: queue, Usage: model.Usage{Allocated: cores(held[job]), Requested: cores(20)}})
				}
				set.Update()
				q, own, ask, borrowing := set.Book().Queue("q"), cores(held["broken"]), cores(1+draw("ask", 6)), rapid.Bool().Draw(t, "borrowing")
				refused := set.Refuses(q, own, ask, borrowing)
				if again := set.Budget(q, own, borrowing).Refuses(ask); again != refused {
					t.Fatalf("the policies say %q, a budget %q", refused.Message, again.Message)
				}
				if all := held["broken"] + held["beside"] + ask[0].Value/1000; refused == (model.Reason{}) && all > capability {
					t.Fatalf("queue q may hold %d cores, and its capability is %d", all, capability)
				}
				if set.Refuses(q, nil, ask, borrowing) == (model.Reason{}) && refused != (model.Reason{}) {
					t.Fatalf("any job may take %v, and the broken gang not: %s", ask, refused.Message)
				}
			})
		})
	}
}
