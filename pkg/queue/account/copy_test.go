// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// drawBook draws queues, broken in any way, and jobs.
func drawBook(t *rapid.T, modes ...account.Mode) *world {
	w := &world{
		mode: rapid.SampledFrom(modes).Draw(t, "mode"), total: few(t, "total", 1, 50),
		queues: map[string]*model.Queue{}, jobs: map[model.JobKey]*model.Job{},
	}
	for _, name := range names {
		if rapid.IntRange(0, 5).Draw(t, name+" exists") > 0 {
			w.queues[name] = drawQueue(t, name)
		}
	}
	for i := range rapid.IntRange(0, 6).Draw(t, "jobs") {
		w.jobs[keyOf(i)] = drawJob(t, keyOf(i))
	}
	return w
}

// saidOf is what a queue and those around it look like.
func saidOf(q *account.Queue, held resource.Vector) string {
	parent := "none"
	if q.Parent != nil {
		parent = q.Parent.Name
	}
	children := ""
	for _, c := range q.Children {
		children += c.Name + " "
	}
	return fmt.Sprint(q.Name, parent, children, q.Spec, q.Deserved, q.Flow(), q.Guarantee, q.Real, q.Share, q.Fault, q.Due(), held)
}

func TestACopySaysWhatTheBookDidWhenItWasMade(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawBook(t, account.Undivided, account.Proportion, account.Capacity, account.Hierarchy)
		b := w.anew()
		c := b.Copy()
		before := map[string]string{}
		for _, q := range b.Queues() {
			before[q.Name] = saidOf(q, b.UsageOf(q).Allocated)
			if got := saidOf(c.Queue(q.Name), c.Held(c.Queue(q.Name))); got != before[q.Name] {
				t.Fatalf("the copy says\n%s\nthe book\n%s", got, before[q.Name])
			}
		}
		for key := range w.jobs {
			b.SetJob(key, drawJob(t, key))
		}
		b.SetCluster(few(t, "total", 1, 50))
		b.SetQueue("c", nil)
		b.Update()
		for name, want := range before {
			if got := saidOf(c.Queue(name), c.Held(c.Queue(name))); got != want {
				t.Fatalf("once the book changed the copy says\n%s\nbefore\n%s", got, want)
			}
		}
	})
}

func TestHoldingInACopyIsHoldingInTheBook(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawBook(t, account.Undivided, account.Proportion, account.Capacity, account.Hierarchy)
		b := w.anew()
		if len(b.Queues()) == 0 {
			return
		}
		c, kept := b.Copy(), b.Copy()
		name, more := b.Queues()[rapid.IntRange(0, len(b.Queues())-1).Draw(t, "queue")].Name, few(t, "more", 1, 5)
		c.Hold(c.Queue(name), more, 2)
		job := &model.Job{Key: keyOf(99), Queue: name}
		job.Usage.Allocated = more.Clone()
		job.Usage.Allocated.Add(more)
		b.SetJob(job.Key, job)
		for _, q := range b.Queues() {
			if !c.Held(c.Queue(q.Name)).Equal(b.UsageOf(q).Allocated) {
				t.Fatalf("queue %s holds %s, want %s", q.Name, c.Held(c.Queue(q.Name)), b.UsageOf(q).Allocated)
			}
		}
		c.Hold(c.Queue(name), more, -2)
		for _, q := range b.Queues() {
			if !c.Held(c.Queue(q.Name)).Equal(kept.Held(kept.Queue(q.Name))) {
				t.Fatalf("undone, queue %s holds %s, and did %s", q.Name, c.Held(c.Queue(q.Name)), kept.Held(kept.Queue(q.Name)))
			}
		}
	})
}

func TestDueIfIsWhatWouldBeDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawBook(t, account.Proportion, account.Capacity)
		// The job that asks exists, without pods.
		asking := &model.Job{Key: keyOf(99), Queue: "a"}
		w.jobs[asking.Key] = asking
		b := w.anew()
		more := few(t, "more", 0, 9)
		due := b.DueIf(b.Queue("a"), more)
		then := *asking
		then.Usage.Requested = more
		w.jobs[asking.Key] = &then
		want := w.anew()
		for _, q := range b.Queues() {
			got := due(q)
			for _, name := range []corev1.ResourceName{"cpu", "nvidia.com/gpu"} {
				if x, y := got.Get(name), want.Queue(q.Name).Deserved.Get(name); x != y {
					t.Fatalf("queue %s would be due %g of %s, and is due %g", q.Name, x, name, y)
				}
			}
		}
	})
}

func TestDistancesInTheTree(t *testing.T) {
	b := account.NewBook(account.Hierarchy)
	for name, parent := range map[string]string{
		"root": "", "a": "root", "b": "root", "a1": "a", "a2": "a", "a11": "a1", "a12": "a1", "a21": "a2", "b1": "b", "b11": "b1",
	} {
		b.SetQueue(name, &model.Queue{Name: name, Parent: parent})
	}
	b.Update()
	for _, tc := range []struct {
		from, to string
		want     int
		apart    int
	}{
		{"a11", "a11", 0, 0}, {"a11", "a12", 0, 1}, {"a11", "a21", 1, 2}, {"a11", "b11", 2, 3}, {"a11", "b", 2, 3}, {"a", "b", 0, 1}, {"a", "b11", 0, 1},
	} {
		from, to := b.Queue(tc.from), b.Queue(tc.to)
		if got := from.Distance(to); got != tc.want {
			t.Errorf("from %s to %s: %d, want %d", tc.from, tc.to, got, tc.want)
		}
		if got := from.Apart(to); len(got) != tc.apart {
			t.Errorf("%s is apart from %s in %d queues, want %d", tc.from, tc.to, len(got), tc.apart)
		}
	}
}
