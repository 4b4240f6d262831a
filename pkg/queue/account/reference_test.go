// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"math"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/queue/proportion"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// The figures of queues once more, each found from the definitions by asking the world again and again.

var resources = []corev1.ResourceName{"cpu", "nvidia.com/gpu"}

// unlimited stands for no bound.
var unlimited = math.Inf(1)

// exists: the root always does where the tree is looked at.
func (w *world) exists(name string) bool {
	return w.queues[name] != nil || w.mode == account.Hierarchy && name == model.RootQueue
}

func (w *world) spec(name string) *model.Queue {
	if q := w.queues[name]; q != nil {
		return q
	}
	return &model.Queue{Name: name}
}

// named is the parent that a queue names, empty for none.
func (w *world) named(name string) string {
	switch q := w.queues[name]; {
	case q == nil || name == model.RootQueue:
		return ""
	case q.Parent == "":
		return model.RootQueue
	default:
		return q.Parent
	}
}

func (w *world) circles(name string) bool {
	above := w.named(name)
	for range len(w.queues) + 1 {
		if above == name {
			return true
		}
		above = w.named(above)
	}
	return false
}

// parent is a queue's place in the tree; empty for the root, and for what is outside the tree.
func (w *world) parent(name string) string {
	if above := w.named(name); above != "" && w.exists(above) && !w.circles(name) {
		return above
	}
	return ""
}

func (w *world) children(name string) []string {
	var list []string
	for child := range w.queues {
		if w.parent(child) == name {
			list = append(list, child)
		}
	}
	slices.Sort(list)
	return list
}

// bound is what a queue's object bounds a resource to.
func (w *world) bound(name string, r corev1.ResourceName) float64 {
	for _, a := range w.spec(name).Capability {
		if a.Name == r && (r != corev1.ResourceCPU || a.Value > 0) {
			return float64(a.Value)
		}
	}
	return unlimited
}

// contradictory: the object contradicts itself.
func (w *world) contradictory(name string) bool {
	q := w.spec(name)
	for _, list := range []resource.Vector{q.Capability, q.Guarantee, q.Deserved} {
		for _, a := range list {
			if a.Value < 0 {
				return true
			}
		}
	}
	for _, r := range resources {
		if float64(q.Guarantee.Get(r)) > w.bound(name, r) {
			return true
		}
	}
	return false
}

// faultyItself: the queue has a fault that is not its children's and not its parent's.
func (w *world) faultyItself(name string) bool {
	if w.contradictory(name) {
		return true
	}
	if w.mode != account.Hierarchy {
		return false
	}
	if above := w.named(name); above != "" && (!w.exists(above) || w.circles(name)) {
		return true
	}
	for above := w.parent(name); above != ""; above = w.parent(above) {
		for _, r := range resources {
			if w.contradictory(above) {
				continue
			}
			if float64(w.spec(name).Capability.Get(r)) > w.bound(above, r) {
				return true
			}
		}
	}
	return false
}

// overpromised: the queues below it that have no fault are promised more than it is.
func (w *world) overpromised(name string) bool {
	q := w.queues[name]
	if q == nil || name == model.RootQueue || w.mode != account.Hierarchy {
		return false
	}
	var guaranteed, deserved resource.Vector
	for _, child := range w.children(name) {
		if !w.faultyItself(child) && !w.overpromised(child) {
			guaranteed.Add(w.spec(child).Guarantee)
			deserved.Add(w.spec(child).Deserved)
		}
	}
	return above(guaranteed, q.Guarantee) || above(deserved, q.Deserved)
}

func above(sum, promised resource.Vector) bool {
	for _, a := range promised {
		if sum.Get(a.Name) > a.Value {
			return true
		}
	}
	return false
}

func (w *world) faulty(name string) bool {
	if w.faultyItself(name) || w.overpromised(name) {
		return true
	}
	parent := w.parent(name)
	return w.mode == account.Hierarchy && parent != "" && parent != model.RootQueue && w.faulty(parent)
}

func (w *world) counts(name string) bool { return w.queues[name] != nil && !w.faulty(name) }

func (w *world) guarantee(name string, r corev1.ResourceName) float64 {
	if !w.counts(name) {
		return 0
	}
	return float64(w.spec(name).Guarantee.Get(r))
}

// capability is a queue's bound with what it inherits.
func (w *world) capability(name string, r corev1.ResourceName) float64 {
	if w.counts(name) && !math.IsInf(w.bound(name, r), 1) {
		return w.bound(name, r)
	}
	if parent := w.parent(name); parent != "" && w.mode == account.Hierarchy {
		return w.capability(parent, r)
	}
	return unlimited
}

func (w *world) most(name string, r corev1.ResourceName) float64 {
	set, mine := 0.0, w.guarantee(name, r)
	if w.mode == account.Hierarchy {
		parent := w.parent(name)
		if parent == "" {
			return w.capability(name, r)
		}
		for _, sibling := range w.children(parent) {
			set += w.guarantee(sibling, r)
		}
		return min(w.capability(name, r), max(0, w.most(parent, r)-set)+mine)
	}
	for other := range w.queues {
		set += w.guarantee(other, r)
	}
	return min(w.capability(name, r), max(0, float64(w.total.Get(r))-set)+mine)
}

// jobsIn are the jobs of a queue, those of the queues below it included if below is set.
func (w *world) jobsIn(name string, below bool) []*model.Job {
	var list []*model.Job
	for _, job := range w.jobs {
		if job.Queue == name {
			list = append(list, job)
		}
	}
	if below {
		for _, child := range w.children(name) {
			list = append(list, w.jobsIn(child, true)...)
		}
	}
	return list
}

func usageOf(jobs []*model.Job) account.Usage {
	var u account.Usage
	for _, job := range jobs {
		u.Allocated.Add(job.Usage.Allocated)
		u.Requested.Add(job.Usage.Requested)
		u.Inqueue.Add(job.Inqueue())
		u.Elastic.Add(job.Elastic())
		u.Jobs++
	}
	return u
}

func (w *world) deserved(name string, r corev1.ResourceName) float64 {
	switch {
	case w.mode == account.Hierarchy && w.parent(name) == "" && len(w.children(name)) > 0:
		sum := 0.0
		for _, child := range w.children(name) {
			sum += w.deserved(child, r)
		}
		return sum
	case !w.counts(name) || w.mode == account.Undivided:
		return 0
	case w.mode == account.Proportion:
		return w.divided(name, r)
	}
	due := float64(w.spec(name).Deserved.Get(r))
	// Of a resource that no node has and nobody is guaranteed, what the object says stays.
	named := slices.ContainsFunc(w.spec(name).Guarantee, func(a resource.Amount) bool { return a.Name == r })
	if w.mode == account.Capacity && (w.total.Get(r) > 0 || named) {
		due = min(due, w.most(name, r))
	}
	return max(due, w.guarantee(name, r))
}

// divided asks the division, which has a reference of its own.
func (w *world) divided(name string, r corev1.ResourceName) float64 {
	at := -1
	var demands []proportion.Demand
	for _, other := range names {
		jobs := w.jobsIn(other, false)
		if !w.counts(other) || len(jobs) == 0 {
			continue
		}
		if other == name {
			at = len(demands)
		}
		d := proportion.Demand{
			Weight: int64(w.spec(other).Weight), Request: usageOf(jobs).Requested, Guarantee: w.spec(other).Guarantee,
			Limit: resource.Limit{Unnamed: resource.Nothing},
		}
		for _, r := range resources {
			d.Limit.Amounts = append(d.Limit.Amounts, resource.Quantity[float64]{Name: r, Value: w.most(other, r)})
		}
		demands = append(demands, d)
	}
	if at < 0 {
		return 0
	}
	return proportion.Divide(w.total, demands)[at].Get(r)
}

// share is the dominant part of what a queue is due that it holds.
func (w *world) share(name string) float64 {
	if w.mode == account.Undivided {
		return 0
	}
	held := usageOf(w.jobsIn(name, w.mode == account.Hierarchy)).Allocated
	share, due := 0.0, false
	for _, r := range resources {
		if d := w.deserved(name, r); d > 0 {
			due = true
			share = max(share, float64(held.Get(r))/d)
		}
	}
	if !due && w.mode != account.Proportion {
		return 1
	}
	return share
}

// check compares a book with the definitions.
func (w *world) check(t *rapid.T, b *account.Book) {
	for _, q := range b.Queues() {
		if got, want := q.Fault != (model.Reason{}), w.faulty(q.Name); got != want {
			t.Fatalf("queue %s is left out: %t (%s), want %t", q.Name, got, q.Fault.Message, want)
		}
		own, total := usageOf(w.jobsIn(q.Name, false)), usageOf(w.jobsIn(q.Name, true))
		if !same(&q.Own, &own) || !same(&q.Total, &total) {
			t.Fatalf("queue %s: usage is %+v, %+v; want %+v, %+v", q.Name, q.Own, q.Total, own, total)
		}
		if !near(q.Share, w.share(q.Name)) {
			t.Fatalf("queue %s: share is %g, want %g", q.Name, q.Share, w.share(q.Name))
		}
		for _, r := range resources {
			most, limited := q.Real.Of(r)
			if !limited {
				most = unlimited
			}
			if want := w.most(q.Name, r); w.mode != account.Undivided && most != want {
				t.Fatalf("queue %s may hold %g of %s, want %g", q.Name, most, r, want)
			}
			if got, want := q.Deserved.Get(r), w.deserved(q.Name, r); !near(got, want) {
				t.Fatalf("queue %s is due %g of %s, want %g", q.Name, got, r, want)
			}
		}
	}
	for name := range w.queues {
		if b.Queue(name) == nil {
			t.Fatalf("queue %s has no account", name)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

func same(a, b *account.Usage) bool {
	return a.Allocated.Equal(b.Allocated) && a.Requested.Equal(b.Requested) && a.Inqueue.Equal(b.Inqueue) &&
		a.Elastic.Equal(b.Elastic) && a.Jobs == b.Jobs
}

// TestFiguresAreThoseOfTheDefinitions follows random changes and compares all figures after each update.
func TestFiguresAreThoseOfTheDefinitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		b := w.anew()
		w.check(t, b)
		for range rapid.IntRange(0, 6).Draw(t, "changes") {
			w.change(t, b)
			b.Update()
			w.check(t, b)
		}
	})
}

// change makes one random change to the world and tells the book.
func (w *world) change(t *rapid.T, b *account.Book) {
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0:
		w.total = positive(few(t, "total", 0, 50))
		b.SetCluster(w.total)
	case 1, 2:
		name := rapid.SampledFrom(names).Draw(t, "name")
		w.queues[name] = drawQueue(t, name)
		b.SetQueue(name, w.queues[name])
	case 3:
		name := rapid.SampledFrom(names).Draw(t, "name")
		delete(w.queues, name)
		b.SetQueue(name, nil)
	case 4:
		key := keyOf(rapid.IntRange(0, 5).Draw(t, "job"))
		delete(w.jobs, key)
		b.SetJob(key, nil)
	default:
		key := keyOf(rapid.IntRange(0, 5).Draw(t, "job"))
		w.jobs[key] = drawJob(t, key)
		b.SetJob(key, w.jobs[key])
	}
}
