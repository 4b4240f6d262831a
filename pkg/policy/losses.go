// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// losses are what queues lose of their dues in a trial, beside what its beneficiary's queue gains of its own. The zero value is that of a trial in
// which nobody may.
type losses struct {
	accounts *account.Copy
	taker    *account.Queue
	wanted   resource.Vector
	gain     resource.Portion
	// before is what queues held that have given something up since.
	before map[*account.Queue]resource.Vector
}

// newLosses returns the losses of a trial in which nothing is taken yet. Half is what the beneficiary holds that does not count.
func newLosses(accounts *account.Copy, taker *account.Queue, half, need resource.Vector) losses {
	l := losses{accounts: accounts, taker: taker, wanted: need, before: map[*account.Queue]resource.Vector{}}
	held := without(accounts.Held(taker), half).Counted()
	for _, a := range held.More(need) {
		due, now := taker.Deserved.Get(a.Name), float64(held.Get(a.Name))
		if more := min(now+float64(a.Value), due) - min(now, due); more > 0 {
			l.gain = append(l.gain, resource.Quantity[float64]{Name: a.Name, Value: more})
		}
	}
	return l
}

// note remembers what a queue held before it gave something up.
func (l *losses) note(q *account.Queue) {
	if l.before == nil || q == l.taker {
		return
	}
	if _, known := l.before[q]; !known {
		l.before[q] = l.accounts.Held(q).Clone()
	}
}

// settle forgets what a queue held before once it holds that again: most that is tried is taken back.
func (l *losses) settle(q *account.Queue) {
	if before, known := l.before[q]; known && l.accounts.Held(q).Equal(before) {
		delete(l.before, q)
	}
}

// judge says why a queue may not give up a request; empty when it may: all queues together lose no more than is gained, of any resource, and less of
// one that is asked for. For example, two queues hold three pods of a core each and are due 2.5. A third one is due one, holds nothing, and asks
// for a pod: half a core is lost, and one is gained.
func (l *losses) judge(q *account.Queue, request, ask resource.Vector) string {
	less := false
	for _, name := range l.resources(request) {
		lost, gain := l.of(q, request, name), l.gain.Get(name)
		if !resource.AtMost(lost, gain) {
			return whyLoss
		}
		less = less || ask.Get(name) > 0 && !resource.AtMost(gain, lost)
	}
	if !less {
		return whyLoss
	}
	return ""
}

// resources are those that anybody gives up, or gains.
func (l *losses) resources(request resource.Vector) []corev1.ResourceName {
	sum := request.Counted().Clone()
	sum.Add(l.wanted.Counted())
	for q, held := range l.before {
		more := held.Counted().Clone()
		more.Sub(l.accounts.Held(q).Counted())
		sum.Add(more)
	}
	var names []corev1.ResourceName
	for _, a := range sum {
		if a.Value > 0 && a.Name != corev1.ResourcePods {
			names = append(names, a.Name)
		}
	}
	return names
}

// of is what queues have lost of their dues of a resource, with a request of one of them on top.
func (l *losses) of(giver *account.Queue, request resource.Vector, name corev1.ResourceName) (lost float64) {
	seen := false
	for q, before := range l.before {
		now := l.accounts.Held(q).Counted().Get(name)
		if q == giver {
			seen = true
			now -= request.Get(name)
		}
		lost += lostOf(q.Deserved.Get(name), before.Counted().Get(name), now)
	}
	if !seen {
		held := l.accounts.Held(giver).Counted().Get(name)
		lost += lostOf(giver.Deserved.Get(name), held, held-request.Get(name))
	}
	return lost
}

// lostOf is what is lost of a due.
func lostOf(due float64, before, now int64) float64 {
	return max(0, min(float64(before), due)-min(float64(now), due))
}

// toll is what a queue would lose of its due with a task alone, as a part of what is gained; infinite if that is nothing. It does not change while
// victims are taken.
func (l *losses) toll(q *account.Queue, task *model.Task) (toll float64) {
	if q == l.taker {
		// Nobody of it goes.
		return math.Inf(1)
	}
	held, known := l.before[q]
	if !known {
		held = l.accounts.Held(q)
	}
	held = held.Counted()
	for _, a := range task.Charge.Counted() {
		if a.Name == corev1.ResourcePods || a.Value <= 0 {
			continue
		}
		now := held.Get(a.Name)
		switch lost, gain := lostOf(q.Deserved.Get(a.Name), now, now-a.Value), l.gain.Get(a.Name); {
		case lost > 0 && gain > 0:
			toll = max(toll, lost/gain)
		case lost > 0:
			return math.Inf(1)
		}
	}
	return toll
}
