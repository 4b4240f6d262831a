// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reserve

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// expectations are the pods that were moved and that their controllers have yet to create again. The model keeps their room. The zero value is ready
// to use; no method calls out with the lock held.
type expectations struct {
	mu sync.Mutex
	of []expectation
}

// expectation is a pod that its controller is expected to create again, and until when.
type expectation struct {
	task       *model.Task
	controller types.UID
	until      time.Time
}

// expect keeps room for pods that are moved, until some time after they should have been created again.
func (k *Keeper) expect(moves []gang.Placement, now time.Time) {
	tasks := make([]*model.Task, len(moves))
	for i, m := range moves {
		tasks[i] = m.Task.ExpectedOn(m.Node)
		k.expectations.add(expectation{
			task: tasks[i], controller: m.Task.Controller().UID, until: now.Add(model.GracePeriod(m.Task.Pod) + k.timeout),
		})
	}
	k.state.Expect(tasks...)
}

// Kept are all tasks for which room is kept, those that are yet to be created again among them.
func (k *Keeper) Kept() []*model.Task { return append(k.state.Nominated(), k.state.Expected()...) }

// welcome gives pods that have come the room of those that were expected of their controllers.
func (k *Keeper) welcome(uids []types.UID) {
	if k.expectations.none() {
		return
	}
	for _, uid := range uids {
		t := k.state.Task(uid)
		if t == nil || t.Status != model.Pending || t.Nominated != "" {
			continue
		}
		if e, ok := k.expectations.take(t); ok {
			k.give(t, e)
		}
	}
}

// give gives a task the room of the pod that it was created in place of.
func (k *Keeper) give(t *model.Task, e expectation) {
	k.waits.join(t.Job, wait{members: []types.UID{t.UID}, pods: map[types.UID]string{}, until: k.clock.Now().Add(k.timeout)})
	k.state.Pipeline([]model.Nomination{{UID: t.UID, Node: e.task.Nominated}}, nil)
	k.state.Unexpect(e.task.UID)
	if err := k.nominate(klog.Background(), []gang.Placement{{Task: t, Node: e.task.Nominated}}); err != nil {
		klog.Background().Error(err, "Keeping the room of a pod that was moved")
	}
}

// unexpect gives up the room of pods that are not to be created again: they stay, or have ended by themselves.
func (k *Keeper) unexpect(uids ...types.UID) {
	if k.expectations.none() {
		return
	}
	var expected []types.UID
	for _, uid := range uids {
		expected = append(expected, model.ExpectedUID(uid))
	}
	k.state.Unexpect(k.expectations.drop(func(e expectation) bool { return slices.Contains(expected, e.task.UID) })...)
}

// expireExpected gives up the room of pods that should have been created again by now.
func (k *Keeper) expireExpected() {
	now := k.clock.Now()
	k.state.Unexpect(k.expectations.drop(func(e expectation) bool { return !e.until.After(now) })...)
}

func (x *expectations) add(e expectation) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.of = append(x.of, e)
}

func (x *expectations) none() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.of) == 0
}

// take returns what is expected of the controller of a task and asks for the same, and expects it no longer.
func (x *expectations) take(t *model.Task) (e expectation, ok bool) {
	controller := t.Controller()
	if controller == nil {
		return e, false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.IndexFunc(x.of, func(e expectation) bool { return e.controller == controller.UID && e.task.Request.Equal(t.Request) })
	if i < 0 {
		return e, false
	}
	e = x.of[i]
	x.of = slices.Delete(x.of, i, i+1)
	return e, true
}

// drop forgets some, and returns their UIDs.
func (x *expectations) drop(which func(expectation) bool) (uids []types.UID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.of = slices.DeleteFunc(x.of, func(e expectation) bool {
		if which(e) {
			uids = append(uids, e.task.UID)
			return true
		}
		return false
	})
	return uids
}
