// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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
					Name: leaf, Parent: team, Reclaimable: true, Weight: int32(1 + m), Deserved: cores(100),
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

// BenchmarkTrial measures trials among 900 queues at the leaves of a tree: how long it takes to tell whether it is worth one, to
// begin one, to find and judge a victim, to judge and take one, and to compare two.
func BenchmarkTrial(b *testing.B) {
	for name, tc := range map[string]struct {
		plugin config.TierPlugin
		action config.Action
	}{
		"proportion": {orderers["proportion"], config.Reclaim},
		"tree":       {orderers["tree"], config.Reclaim},
		"hdrf":       {orderers["hdrf"], config.Reclaim},
		"priority":   {config.TierPlugin{Name: config.PluginPriority}, config.Preempt},
	} {
		set, err := policy.Compile(&config.BatchQueueArgs{
			Actions: []config.Action{tc.action}, Tiers: tier(tc.plugin, config.TierPlugin{Name: config.PluginGang}, config.TierPlugin{Name: config.PluginPDB}),
		})
		if err != nil {
			b.Fatal(err)
		}
		leaves := forest(set)
		job := &model.Job{
			Key: model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: "mine"}, Queue: leaves[0].Name, Priority: 1,
			Pending: []model.Demand{{Count: 1, Request: cores(1), Charge: cores(1)}},
		}
		set.SetJob(job.Key, job)
		set.Update()
		victims := tasksOn(leaves, tc.action == config.Preempt)
		b.Run(name+"/begin", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				set.Trial(tc.action, job, policy.EvictionWorld{})
			}
		})
		b.Run(name+"/may", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				set.MayEvict(job)
			}
		})
		b.Run(name+"/judge", func(b *testing.B) {
			tr := set.Trial(tc.action, job, policy.EvictionWorld{})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if v := victims[i%len(victims)]; tr.Candidate(v) == "" {
					tr.Evaluate(v)
				}
			}
		})
		b.Run(name+"/take", func(b *testing.B) {
			tr := set.Trial(tc.action, job, policy.EvictionWorld{})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				v := victims[i%len(victims)]
				if tr.Evaluate(v) == "" {
					tr.Take(v)
					tr.Return(v)
				}
			}
		})
		b.Run(name+"/compare", func(b *testing.B) {
			tr := set.Trial(tc.action, job, policy.EvictionWorld{})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				tr.Compare(victims[i%len(victims)], victims[(7*i+1)%len(victims)])
			}
		})
	}
}

// tasksOn makes a running task of 10 for each leaf, or for the first as often.
func tasksOn(leaves []*account.Queue, inFirst bool) []model.Victim {
	victims := make([]model.Victim, len(leaves))
	for i, leaf := range leaves {
		if inFirst {
			leaf = leaves[0]
		}
		job := &model.Job{
			Key: model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: fmt.Sprintf("%s-%d", leaf.Name, i/10)}, Queue: leaf.Name,
			Usage: model.Usage{Allocated: cores(100)},
		}
		job.Counts.ByStatus[model.Running] = 10
		name := fmt.Sprintf("%s-%d", job.Key.Name, i)
		victims[i] = model.Victim{Job: job, Task: &model.Task{
			UID: types.UID(name), Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}, Job: job.Key,
			Status: model.Running, Request: cores(10), Charge: cores(10),
		}}
	}
	return victims
}
