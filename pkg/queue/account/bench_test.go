// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"fmt"
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// thousand returns a book of 1,000 queues in a tree of four levels, with ten jobs in each leaf.
func thousand(mode account.Mode) (book *account.Book, leaves []string) {
	book = account.NewBook(mode)
	book.SetCluster(resource.Vector{{Name: "cpu", Value: 1e7}, {Name: "memory", Value: 1e15}, {Name: "nvidia.com/gpu", Value: 8000}, {Name: "pods", Value: 1e5}})
	queue := func(name, parent string, share int64) {
		book.SetQueue(name, &model.Queue{
			Name: name, Parent: parent, Weight: int32(1 + len(leaves)%7),
			Deserved: resource.Vector{{Name: "cpu", Value: 1e7 / share}, {Name: "nvidia.com/gpu", Value: 8000 / share}},
		})
	}
	queue("root", "", 1)
	for i := range 9 {
		division := fmt.Sprintf("d%d", i)
		queue(division, "root", 10)
		for k := range 10 {
			team := fmt.Sprintf("%s-t%d", division, k)
			queue(team, division, 100)
			for m := range 10 {
				leaf := fmt.Sprintf("%s-q%d", team, m)
				queue(leaf, team, 1000)
				leaves = append(leaves, leaf)
			}
		}
	}
	for i := range 10 * len(leaves) {
		job := jobIn(i, leaves[i%len(leaves)])
		book.SetJob(job.Key, job)
	}
	book.Update()
	return book, leaves
}

func jobIn(i int, queue string) *model.Job {
	held := resource.Vector{{Name: "cpu", Value: 1000}, {Name: "memory", Value: 1 << 30}, {Name: "pods", Value: 1}}
	job := &model.Job{Key: keyOf(i), Queue: queue, Group: &model.Group{MinMember: 1}}
	job.Usage.Allocated, job.Usage.Requested = held, held.Clone()
	job.Usage.Requested.Add(held)
	return job
}

// BenchmarkUpdate measures what it costs to find anew what 1,000 queues are due, after a job asks for more and after a
// queue changed.
func BenchmarkUpdate(b *testing.B) {
	for _, bench := range []struct {
		name  string
		mode  account.Mode
		queue bool
	}{
		{"proportion/a job asks for more", account.Proportion, false},
		{"proportion/a queue changed", account.Proportion, true},
		{"capacity/a queue changed", account.Capacity, true},
		{"hierarchy/a job asks for more", account.Hierarchy, false},
		{"hierarchy/a queue changed", account.Hierarchy, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			book, leaves := thousand(bench.mode)
			jobs := []*model.Job{jobIn(-1, leaves[0]), jobIn(-1, leaves[0])}
			jobs[1].Usage.Requested = jobs[1].Usage.Allocated
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				book.SetJob(keyOf(-1), jobs[i%2])
				if bench.queue {
					book.SetQueue(leaves[0], book.Queue(leaves[0]).Spec)
				}
				book.Update()
			}
		})
	}
}

// BenchmarkSetJob measures what it costs to follow one job that changes.
func BenchmarkSetJob(b *testing.B) {
	book, leaves := thousand(account.Hierarchy)
	jobs := []*model.Job{jobIn(0, leaves[0]), jobIn(0, leaves[0])}
	jobs[1].Usage.Allocated = nil
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		book.SetJob(jobs[0].Key, jobs[i%2])
	}
}
