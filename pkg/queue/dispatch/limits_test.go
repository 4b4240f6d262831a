// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

func cores(n int64) resource.Vector { return resource.Vector{{Name: "cpu", Value: n}} }

// gangOfOne is a job with one task that waits and asks for so many cores.
func gangOfOne(name, queue string, n int64) *model.Job {
	job := &model.Job{Key: model.JobKey{Name: name}, Queue: queue, Group: &model.Group{MinMember: 1}}
	job.Pending = []model.Demand{{Count: 1, Charge: cores(n)}}
	job.Counts.ByStatus[model.Pending] = 1
	job.Usage.Requested = cores(n)
	return job
}

// holderOf is a job that holds so many cores of a queue.
func holderOf(queue string, n int64) *model.Job {
	job := &model.Job{Key: model.JobKey{Name: "holder-" + queue}, Queue: queue, Admitted: true, Group: &model.Group{MinMember: 1}}
	job.Counts.ByStatus[model.Running] = 1
	job.Usage.Allocated, job.Usage.Requested = cores(n), cores(n)
	return job
}

// compiled are the policies of one plugin, in a cluster of eight cores that two queues share: "bounded", whose capability is four, and "free".
func compiled(t *testing.T, plugin string, jobs ...*model.Job) *policy.Set {
	policies, err := policy.Compile(&config.BatchQueueArgs{Tiers: []config.Tier{{Plugins: []config.TierPlugin{{Name: plugin}}}}})
	if err != nil {
		t.Fatal(err)
	}
	policies.SetQueue("bounded", &model.Queue{Name: "bounded", Weight: 1, Capability: cores(4)})
	policies.SetQueue("free", &model.Queue{Name: "free", Weight: 1})
	policies.SetCluster(cores(8))
	for _, job := range jobs {
		policies.SetJob(job.Key, job)
	}
	policies.Update()
	return policies
}

// TestWhatQueuesLetJobsHave: a queue that is full keeps a job out whether or not it borrows if its capability is what it has reached, and
// unless it borrows if that is what it is due. Who asks for nothing is kept out by nothing.
func TestWhatQueuesLetJobsHave(t *testing.T) {
	for name, c := range map[string]struct {
		holds               int64
		queue               string
		asks                int64
		refused, ifBorrowed bool
		bounded             bool
	}{
		"there is room":                 {holds: 2, queue: "bounded", asks: 2},
		"one core more than capability": {holds: 2, queue: "bounded", asks: 3, refused: true, ifBorrowed: true, bounded: true},
		"it asks for nothing":           {holds: 4, queue: "bounded", asks: 0},
		"all that is due is held":       {holds: 6, queue: "free", asks: 1, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			job := gangOfOne("job", c.queue, c.asks)
			other := map[string]string{"free": "bounded", "bounded": "free"}[c.queue]
			// The other queue wants all it can get, so that neither is due the other's part.
			policies := compiled(t, config.PluginProportion, job, holderOf(c.queue, c.holds), gangOfOne("wants", other, 8))
			l := limits{&Config{State: model.NewState(), Rules: Rules{Policies: policies}}}
			if got := l.refuses(job, false); (got != model.Reason{}) != c.refused {
				t.Errorf("it is told %+v, want a reason: %t", got, c.refused)
			}
			if got := l.refuses(job, true); (got != model.Reason{}) != c.ifBorrowed {
				t.Errorf("it is told %+v though it borrows, want a reason: %t", got, c.ifBorrowed)
			}
			if got := l.bounded(job); got != c.bounded {
				t.Errorf("the capability bounds it: %t, want %t", got, c.bounded)
			}
		})
	}
}

// TestAQueueThatIsLeftOutIsToldOfOnce: the answers of queues are asked for anew, and those that changed are told, and no others.
func TestAQueueThatIsLeftOutIsToldOfOnce(t *testing.T) {
	policies := compiled(t, config.PluginCapacity)
	var told outbox
	blocks := queueBlocks{&Config{Rules: Rules{Policies: policies}}, &told, map[string]model.Reason{}}
	changed := func(what string, faults int, queues ...string) {
		t.Helper()
		got := blocks.renew()
		if len(got) != len(queues) || len(told.next.faults) != faults {
			t.Errorf("%s: changed are %v with %d faults told, want %v and %d", what, got, len(told.next.faults), queues, faults)
		}
		for _, q := range queues {
			if !got[q] {
				t.Errorf("%s: %s has not changed, want it to have", what, q)
			}
		}
		told.next.faults = nil
	}
	blocks.renew()
	told.next.faults = nil
	changed("nothing happens", 0)
	policies.SetQueue("free", &model.Queue{Name: "free", Weight: 1, State: model.QueueShut})
	policies.Update()
	changed("a queue is closed", 0, "free")
	policies.SetQueue("bounded", &model.Queue{Name: "bounded", Weight: 1, Capability: cores(4), Guarantee: cores(6)})
	policies.Update()
	changed("a queue contradicts itself", 1, "bounded")
	changed("it still does", 0)
	policies.SetQueue("bounded", &model.Queue{Name: "bounded", Weight: 1, Capability: cores(4)})
	policies.Update()
	changed("it is mended", 1, "bounded")
	policies.SetQueue("free", nil)
	policies.Update()
	changed("a queue is deleted", 0, "free")
}
