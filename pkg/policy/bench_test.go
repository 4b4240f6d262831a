// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
)

// BenchmarkCompareQueues compares the queues of a tree of four levels, 900 leaves in all, one with another.
func BenchmarkCompareQueues(b *testing.B) {
	for name, plugin := range orderers {
		b.Run(name+"/queues=1000", func(b *testing.B) {
			set, err := policy.Compile(&config.BatchQueueArgs{Tiers: tier(plugin)})
			if err != nil {
				b.Fatal(err)
			}
			leaves := forest(set)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				set.CompareQueues(leaves[i%len(leaves)], leaves[(7*i+1)%len(leaves)])
			}
		})
	}
}

// forest makes the queues, with one job in each leaf, and returns the leaves' accounts.
func forest(set *policy.Set) []*account.Queue {
	set.SetCluster(cores(100_000))
	set.SetQueue(model.RootQueue, &model.Queue{Name: model.RootQueue})
	var leaves []string
	for i := range 9 {
		division := fmt.Sprintf("d%d", i)
		set.SetQueue(division, &model.Queue{Name: division, Weight: 1, Deserved: cores(10_000)})
		for k := range 10 {
			team := fmt.Sprintf("%s-t%d", division, k)
			set.SetQueue(team, &model.Queue{Name: team, Parent: division, Weight: 1, Deserved: cores(1000)})
			for m := range 10 {
				leaf := fmt.Sprintf("%s-q%d", team, m)
				set.SetQueue(leaf, &model.Queue{
					Name: leaf, Parent: team, Weight: int32(1 + m), Deserved: cores(100),
					Hierarchy: []string{"root", division, team, leaf}, HierarchyWeights: []float64{1, 1, 2, 3},
				})
				key := model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: leaf}
				held := cores(int64(10*k + m))
				set.SetJob(key, &model.Job{Key: key, Queue: leaf, Usage: model.Usage{Allocated: held, Requested: cores(200)}})
				leaves = append(leaves, leaf)
			}
		}
	}
	set.Update()
	accounts := make([]*account.Queue, len(leaves))
	for i, leaf := range leaves {
		accounts[i] = set.Book().Queue(leaf)
	}
	return accounts
}
