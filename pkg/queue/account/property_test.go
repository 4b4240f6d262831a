// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// few amounts of two resources, of which one is often missing.
func few(t *rapid.T, label string, least, most int64) resource.Vector {
	var v resource.Vector
	for _, name := range []string{"cpu", "nvidia.com/gpu"} {
		if rapid.Bool().Draw(t, label+" has "+name) {
			v.Add(resource.Vector{{Name: corev1.ResourceName(name), Value: rapid.Int64Range(least, most).Draw(t, label)}})
		}
	}
	return v
}

var names = []string{"root", "a", "b", "c", "d", "e"}

func drawQueue(t *rapid.T, name string) *model.Queue {
	return &model.Queue{
		Name: name, Parent: rapid.SampledFrom(append([]string{"", "gone"}, names...)).Draw(t, "parent"),
		Weight: rapid.Int32Range(1, 9).Draw(t, "weight"), Deserved: few(t, "deserved", -1, 9),
		Guarantee: few(t, "guarantee", -1, 9), Capability: few(t, "capability", -1, 20),
	}
}

func drawJob(t *rapid.T, key model.JobKey) *model.Job {
	holds, waits := few(t, "holds", 0, 9), few(t, "waits", 0, 9)
	job := &model.Job{Key: key, Queue: rapid.SampledFrom(names).Draw(t, "queue"), Group: &model.Group{MinMember: 1}}
	job.Usage.Allocated, job.Usage.Requested = holds, holds.Clone()
	job.Usage.Requested.Add(waits)
	job.Admitted = rapid.Bool().Draw(t, "admitted")
	if rapid.Bool().Draw(t, "says its minimum") {
		job.Group.MinResources = few(t, "min", 0, 9)
	}
	return job
}

func keyOf(i int) model.JobKey {
	return model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: fmt.Sprintf("job-%d", i)}
}

// world is what a book was told.
type world struct {
	mode   account.Mode
	total  resource.Vector
	queues map[string]*model.Queue
	jobs   map[model.JobKey]*model.Job
}

// anew is a book that was told everything at once.
func (w *world) anew() *account.Book {
	b := account.NewBook(w.mode)
	b.SetCluster(w.total)
	for name, q := range w.queues {
		b.SetQueue(name, q)
	}
	for key, job := range w.jobs {
		b.SetJob(key, job)
	}
	b.Update()
	return b
}

// figures is what a book says of its queues.
type figures struct {
	Own, Total account.Usage
	Deserved   string
	Flow       string
	Real       string
	Share      float64
	Fault      model.Reason
	Parent     string
}

func figuresOf(b *account.Book) map[string]figures {
	all := map[string]figures{}
	for _, q := range b.Queues() {
		f := figures{
			Own: q.Own.Clone(), Total: q.Total.Clone(), Deserved: fmt.Sprint(q.Deserved), Flow: fmt.Sprint(q.Flow()), Real: fmt.Sprint(q.Real),
			Share: q.Share, Fault: q.Fault,
		}
		if q.Parent != nil {
			f.Parent = q.Parent.Name
		}
		all[q.Name] = f
	}
	return all
}

// TestABookThatFollowedEverythingEqualsOneMadeAnew replays random changes of jobs, queues and the cluster: the accounts
// that were kept up to date are those of a book that is told only how it ended. Queues may be broken in any way.
func TestABookThatFollowedEverythingEqualsOneMadeAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{
			mode:   rapid.SampledFrom([]account.Mode{account.Undivided, account.Proportion, account.Capacity, account.Hierarchy}).Draw(t, "mode"),
			queues: map[string]*model.Queue{}, jobs: map[model.JobKey]*model.Job{},
		}
		b := account.NewBook(w.mode)
		for range rapid.IntRange(1, 25).Draw(t, "changes") {
			w.change(t, b)
			if rapid.Bool().Draw(t, "update") {
				b.Update()
			}
		}
		b.Update()
		if diff := cmp.Diff(figuresOf(w.anew()), figuresOf(b)); diff != "" {
			t.Fatalf("made anew (-) and followed (+) differ:\n%s", diff)
		}
		for _, q := range b.Queues() {
			if math.IsNaN(q.Share) || math.IsInf(q.Share, 0) {
				t.Fatalf("the share of queue %s is %v", q.Name, q.Share)
			}
			for _, a := range q.Deserved {
				if math.IsNaN(a.Value) || math.IsInf(a.Value, 0) {
					t.Fatalf("queue %s is due %v of %s", q.Name, a.Value, a.Name)
				}
			}
		}
	})
}

// TestAddingAndRemovingAJobChangesNothing checks that a job leaves no trace.
func TestAddingAndRemovingAJobChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		b := w.anew()
		before := figuresOf(b)
		b.SetJob(keyOf(99), drawJob(t, keyOf(99)))
		b.Update()
		b.SetJob(keyOf(99), nil)
		b.Update()
		if diff := cmp.Diff(before, figuresOf(b)); diff != "" {
			t.Fatalf("(-before,+after)\n%s", diff)
		}
	})
}

// TestATreeOfOneLevelIsNoTree checks that with all queues directly below the root hierarchy changes nothing but that
// the cluster itself is no limit.
func TestATreeOfOneLevelIsNoTree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.queues["root"] = &model.Queue{Name: "root", Weight: 1}
		for name, q := range w.queues {
			sound := *q
			sound.Parent = ""
			sound.Capability, sound.Guarantee, sound.Deserved = positive(q.Capability), nil, positive(q.Deserved)
			w.queues[name] = &sound
		}
		w.queues["root"] = &model.Queue{Name: "root", Weight: 1}
		for key, job := range w.jobs {
			if job.Queue == "root" {
				delete(w.jobs, key)
			}
		}
		// A cluster that is no limit.
		w.total = resource.Vector{{Name: "cpu", Value: 1 << 30}, {Name: "nvidia.com/gpu", Value: 1 << 30}}
		w.mode = account.Capacity
		flat := figuresOf(w.anew())
		w.mode = account.Hierarchy
		tree := figuresOf(w.anew())
		for name, f := range flat {
			if name == "root" || w.queues[name] == nil {
				continue
			}
			if got := tree[name]; got.Deserved != f.Deserved && !deservedIsBounded(w.queues[name]) || cmp.Diff(got.Own, f.Own) != "" {
				t.Fatalf("queue %s: in a tree due %s, without due %s", name, got.Deserved, f.Deserved)
			}
		}
	})
}

// deservedIsBounded: without hierarchy what is deserved is cut to what the queue may hold, with it it is not.
func deservedIsBounded(q *model.Queue) bool {
	for _, a := range q.Deserved {
		for _, c := range q.Capability {
			if a.Name == c.Name && a.Value > c.Value {
				return true
			}
		}
	}
	return false
}

func positive(v resource.Vector) resource.Vector {
	var kept resource.Vector
	for _, a := range v {
		if a.Value > 0 {
			kept = append(kept, a)
		}
	}
	return kept
}

func drawWorld(t *rapid.T) *world {
	w := &world{
		mode:   rapid.SampledFrom([]account.Mode{account.Undivided, account.Proportion, account.Capacity, account.Hierarchy}).Draw(t, "mode"),
		total:  positive(few(t, "total", 0, 50)),
		queues: map[string]*model.Queue{}, jobs: map[model.JobKey]*model.Job{},
	}
	for _, name := range names {
		if rapid.Bool().Draw(t, "exists") {
			w.queues[name] = drawQueue(t, name)
		}
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "jobs") {
		w.jobs[keyOf(i)] = drawJob(t, keyOf(i))
	}
	return w
}
