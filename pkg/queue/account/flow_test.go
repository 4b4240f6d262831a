// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"maps"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// drawTree draws queues on two levels below the root, none of them at fault, with jobs in the leaves.
func drawTree(t *rapid.T) *world {
	w := &world{
		mode: account.Hierarchy, total: resource.Vector{{Name: "cpu", Value: 100}},
		queues: map[string]*model.Queue{"root": {Name: "root"}}, jobs: map[model.JobKey]*model.Job{},
	}
	cores := func(label string, most int64) resource.Vector {
		return resource.Vector{{Name: "cpu", Value: rapid.Int64Range(0, most).Draw(t, label)}}
	}
	above := map[string]*model.Queue{"x": {Name: "x", Weight: 1}, "y": {Name: "y", Weight: 1}}
	for i, name := range []string{"a", "b", "c", "d"} {
		parent := []string{"x", "x", "x", "y"}[i]
		q := &model.Queue{Name: name, Parent: parent, Weight: 1, Deserved: cores("deserved", 9)}
		if rapid.Bool().Draw(t, "bounded") {
			q.Capability = resource.Vector{{Name: "cpu", Value: q.Deserved.Get("cpu") + 1 + rapid.Int64Range(0, 9).Draw(t, "capability")}}
		}
		if rapid.Bool().Draw(t, "guaranteed") {
			q.Guarantee = resource.Vector{{Name: "cpu", Value: rapid.Int64Range(0, q.Deserved.Get("cpu")).Draw(t, "guarantee")}}
			above[parent].Guarantee.Add(q.Guarantee)
		}
		above[parent].Deserved.Add(q.Deserved)
		w.queues[name] = q
		job := &model.Job{Key: keyOf(i), Queue: name, Group: &model.Group{MinMember: 1}}
		job.Usage.Requested = cores("requests", 20)
		w.jobs[job.Key] = job
	}
	for name, q := range above {
		q.Deserved.Add(cores("more", 9))
		w.queues[name] = q
	}
	return w
}

// byRounds is what flows to the children of a queue, found a little at a time: in each round those that want more get as much as what they deserve is
// worth, until nothing is left.
func byRounds(q *account.Queue) map[string]float64 {
	const grain = 1e-4
	got, most := map[string]float64{}, map[string]float64{}
	left := q.Flow().Get("cpu")
	for _, c := range q.Children {
		least := max(min(c.Deserved.Get("cpu"), float64(c.Total.Requested.Get("cpu"))), float64(c.Guarantee.Get("cpu")))
		most[c.Name] = float64(c.Total.Requested.Get("cpu"))
		if bound, limited := c.Real.Of("cpu"); limited {
			most[c.Name] = min(most[c.Name], bound)
		}
		got[c.Name] = least
		left -= least
	}
	for gave := true; gave && left > 0; {
		gave = false
		deserved := 0.0
		for _, c := range q.Children {
			if most[c.Name] > got[c.Name] {
				deserved += c.Deserved.Get("cpu")
			}
		}
		for _, c := range q.Children {
			rate := c.Deserved.Get("cpu")
			if deserved == 0 {
				rate = 1
			}
			if more := min(rate*grain, most[c.Name]-got[c.Name], left); more > 0 {
				got[c.Name] += more
				left -= more
				gave = true
			}
		}
	}
	return got
}

// TestFlowIsWhatRoundsComeTo: nobody gets less than what he deserves and asks for, none more than he asks for and may hold, and all together no more than the
// queue above them.
func TestFlowIsWhatRoundsComeTo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := drawTree(t).anew()
		for _, name := range []string{"x", "y"} {
			q := b.Queue(name)
			if want := max(min(q.Deserved.Get("cpu"), float64(q.Total.Requested.Get("cpu"))), float64(q.Guarantee.Get("cpu"))); q.Flow().Get("cpu") != want {
				t.Fatalf("%g flow to %s, want %g", q.Flow().Get("cpu"), name, want)
			}
			for child, want := range byRounds(q) {
				if got := b.Queue(child).Flow().Get("cpu"); math.Abs(got-want) > 0.01 {
					t.Fatalf("%g flow to %s, and %g in rounds", got, child, want)
				}
			}
		}
	})
}

// TestWhoAsksForMoreRaisesNobodyElse: what flows to a queue never grows by what a sibling asks for more, up to what that makes the queue above them due.
func TestWhoAsksForMoreRaisesNobodyElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawTree(t)
		before := map[string]float64{}
		b := w.anew()
		for _, q := range b.Queues() {
			before[q.Name] = q.Flow().Get("cpu")
		}
		above := b.Queue("x").Flow().Get("cpu")
		more := *w.jobs[keyOf(0)]
		more.Usage.Requested = resource.Vector{{Name: "cpu", Value: more.Usage.Requested.Get("cpu") + rapid.Int64Range(1, 9).Draw(t, "more")}}
		jobs := maps.Clone(w.jobs)
		jobs[more.Key] = &more
		w.jobs = jobs
		after := w.anew()
		if after.Queue("x").Flow().Get("cpu") > above {
			// The queue above them asks for more of what it deserves, and gets it.
			return
		}
		for _, name := range []string{"b", "c", "d"} {
			if now := after.Queue(name).Flow().Get("cpu"); now > before[name]+1e-6 {
				t.Fatalf("%g flow to %s because a asks for more, and %g did", now, name, before[name])
			}
		}
	})
}

// TestWhatNobodyWhoDeservesItWantsGoesToTheOthers: x1 is idle, x2 asks for one more than it deserves, and x3, which deserves nothing, gets the rest.
func TestWhatNobodyWhoDeservesItWantsGoesToTheOthers(t *testing.T) {
	cores := func(n int64) resource.Vector { return resource.Vector{{Name: "cpu", Value: n}} }
	b := account.NewBook(account.Hierarchy)
	b.SetCluster(cores(24))
	for _, q := range []*model.Queue{
		{Name: "root"},
		{Name: "x", Deserved: cores(12)},
		{Name: "x1", Parent: "x", Deserved: cores(8)},
		{Name: "x2", Parent: "x", Deserved: cores(4)},
		{Name: "x3", Parent: "x"},
	} {
		b.SetQueue(q.Name, q)
	}
	for i, asks := range map[string]int64{"x2": 5, "x3": 10} {
		job := &model.Job{Key: model.JobKey{Name: i}, Queue: i, Group: &model.Group{MinMember: 1}}
		job.Usage.Requested = cores(asks)
		b.SetJob(job.Key, job)
	}
	b.Update()
	if x2, x3 := b.Queue("x2").Flow().Get("cpu"), b.Queue("x3").Flow().Get("cpu"); x2 != 5 || x3 != 7 {
		t.Errorf("%g flow to x2 and %g to x3, want 5 and 7", x2, x3)
	}
}

// TestNothingThatIsUsableIsNotAllOfIt: where no node can be used no queue is due anything.
func TestNothingThatIsUsableIsNotAllOfIt(t *testing.T) {
	b := account.NewBook(account.Proportion)
	b.SetCluster(resource.Vector{{Name: "cpu", Value: 8}})
	b.SetUsable(nil)
	b.SetQueue("a", &model.Queue{Name: "a", Weight: 1})
	job := &model.Job{Key: keyOf(0), Queue: "a", Group: &model.Group{MinMember: 1}}
	job.Usage.Requested = resource.Vector{{Name: "cpu", Value: 8}}
	b.SetJob(job.Key, job)
	if b.Update(); b.Queue("a").Due() {
		t.Errorf("it is due %v of nothing", b.Queue("a").Deserved)
	}
}
