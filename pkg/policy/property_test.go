// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// orderers are the configurations that order queues.
var orderers = map[string]config.TierPlugin{
	"proportion": {Name: config.PluginProportion},
	"capacity":   {Name: config.PluginCapacity},
	"tree":       {Name: config.PluginCapacity, Switches: map[config.Switch]bool{config.EnableHierarchy: true}},
	"recent":     {Name: config.PluginCapacity, Arguments: map[string]runtime.RawExtension{arguments.UsageHalfLife: {Raw: []byte(`"1h"`)}}},
	"hdrf":       {Name: config.PluginDRF, Switches: map[config.Switch]bool{config.EnableHierarchy: true}},
	"age":        {Name: config.PluginGang},
}

// accountsOf draws queues, in a tree where one is looked at, whose shares, ages and priorities are often equal. It
// returns their accounts in no particular order.
func accountsOf(t *rapid.T, set *policy.Set) []*account.Queue {
	set.SetCluster(cores(20))
	set.Pass(epoch)
	set.SetQueue(model.RootQueue, &model.Queue{Name: model.RootQueue})
	parents := []string{model.RootQueue, model.RootQueue}
	for i := range rapid.IntRange(2, 8).Draw(t, "queues") {
		name := fmt.Sprintf("q%d", i)
		q := &model.Queue{
			Name: name, Parent: rapid.SampledFrom(parents).Draw(t, name+" parent"), Weight: 1,
			Priority: rapid.SampledFrom([]int32{0, 0, 0, 1}).Draw(t, "priority"),
			Created:  epoch.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Minute),
		}
		if deserved := rapid.SampledFrom([]int64{0, 0, 0, 1, 2}).Draw(t, "deserved"); deserved > 0 {
			// A queue that deserves nothing says nothing of its children, which may deserve something.
			q.Deserved = cores(deserved)
		}
		if depth := rapid.IntRange(0, 3).Draw(t, "depth"); depth > 0 {
			q.Hierarchy, q.HierarchyWeights = []string{"root"}, []float64{1}
			for range depth {
				q.Hierarchy = append(q.Hierarchy, rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "branch"))
				q.HierarchyWeights = append(q.HierarchyWeights, 1)
			}
		}
		set.SetQueue(name, q)
		parents = append(parents, name)
		held := cores(rapid.Int64Range(0, 3).Draw(t, "holds"))
		key := model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: name}
		set.SetJob(key, &model.Job{Key: key, Queue: name, Usage: model.Usage{Allocated: held, Requested: cores(9)}})
	}
	set.Update()
	for i, q := range set.Book().Queues() {
		// What they hold from now on is not what they held.
		set.Pass(epoch.Add(hours(i)))
		held := cores(rapid.Int64Range(0, 3).Draw(t, "holds then"))
		key := model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: q.Name}
		set.SetJob(key, &model.Job{Key: key, Queue: q.Name, Usage: model.Usage{Allocated: held, Requested: cores(9)}})
	}
	set.Update()
	return set.Book().Queues()
}

func TestQueuesHaveOneOrderWhateverTheyAreComparedBy(t *testing.T) {
	for name, plugin := range orderers {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				set, err := policy.Compile(&config.BatchQueueArgs{Tiers: tier(plugin)})
				if err != nil {
					t.Fatal(err)
				}
				all := accountsOf(t, set)
				for _, x := range all {
					for _, y := range all {
						if before, after := set.CompareQueues(x, y) < 0, set.CompareQueues(y, x) < 0; before == after && x != y {
							t.Fatalf("%s before %s: %t, and the other way round", x.Name, y.Name, before)
						}
						for _, z := range all {
							if set.CompareQueues(x, y) < 0 && set.CompareQueues(y, z) < 0 && set.CompareQueues(x, z) >= 0 {
								t.Fatalf("%s goes before %s, that before %s, and that before the first", x.Name, y.Name, z.Name)
							}
						}
					}
				}
			})
		})
	}
}
