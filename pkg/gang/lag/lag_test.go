// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package lag

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

func anyNode(string) bool { return true }

// TestACacheIsBehindUntilItShowsTheRoom has the model know that a pod left the node n, and that n has grown to version 7.
func TestACacheIsBehindUntilItShowsTheRoom(t *testing.T) {
	t.Parallel()
	const version = "7"
	node := func(version string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: version}}
	}
	pod := func(uid types.UID) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid}, Spec: corev1.PodSpec{NodeName: "n"}}
	}
	left := model.Change{Left: []model.Departure{{Pod: "gone", Node: "n"}}}
	resized := model.Change{Resized: []model.Resize{{Pod: "small", Node: "n", Version: version}}}
	small := func(version string) *corev1.Pod {
		p := pod("small")
		p.ResourceVersion = version
		return p
	}
	grown := model.Change{Nodes: []*corev1.Node{node(version)}}
	for name, c := range map[string]struct {
		change model.Change
		pods   []*corev1.Pod
		nodes  []*corev1.Node
		task   *model.Task
		want   bool
	}{
		"the pod is still there":   {left, []*corev1.Pod{pod("gone"), pod("other")}, []*corev1.Node{node(version)}, nil, true},
		"the pod is gone":          {left, []*corev1.Pod{pod("other")}, []*corev1.Node{node(version)}, nil, false},
		"it got the node again":    {left, []*corev1.Pod{pod("gone")}, []*corev1.Node{node(version)}, &model.Task{Node: "n", Status: model.Allocated}, false},
		"it has finished":          {left, []*corev1.Pod{pod("gone")}, []*corev1.Node{node(version)}, &model.Task{Node: "n", Status: model.Succeeded}, true},
		"the pod is yet to shrink": {resized, []*corev1.Pod{small("6")}, []*corev1.Node{node(version)}, nil, true},
		"the pod has shrunk":       {resized, []*corev1.Pod{small(version)}, []*corev1.Node{node(version)}, nil, false},
		"the pod is ahead":         {resized, []*corev1.Pod{small("10")}, []*corev1.Node{node(version)}, nil, false},
		"it is gone since":         {resized, []*corev1.Pod{pod("other")}, []*corev1.Node{node(version)}, nil, false},
		"nobody numbers it":        {resized, []*corev1.Pod{small("")}, []*corev1.Node{node(version)}, nil, false},
		"it has no version":        {model.Change{Resized: []model.Resize{{Pod: "small", Node: "n"}}}, []*corev1.Pod{small("")}, []*corev1.Node{node(version)}, nil, false},
		"so is its node":           {left, nil, nil, nil, false},
		"the node is yet to come":  {grown, nil, nil, nil, true},
		"the node is yet to grow":  {grown, nil, []*corev1.Node{node("6")}, nil, true},
		"the node has grown":       {grown, nil, []*corev1.Node{node(version)}, nil, false},
		"the node is ahead":        {grown, nil, []*corev1.Node{node("10")}, nil, false},
		"nothing is expected":      {model.Change{}, []*corev1.Pod{pod("other")}, []*corev1.Node{node("6")}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			learned := time.Now()
			l := New(clocktesting.NewFakePassiveClock(learned), func(types.UID) *model.Task { return c.task })
			l.Notify(c.change)
			snapshot := cache.NewSnapshot(c.pods, c.nodes).NodeInfos()
			if behind, late := l.Behind(snapshot, learned.Add(-time.Millisecond), anyNode); behind || late {
				t.Error("behind with what happened after the snapshot was taken")
			}
			if got, late := l.Behind(snapshot, learned, anyNode); got != c.want || late {
				t.Errorf("behind: %t, late: %t, want %t and not late", got, late, c.want)
			}
		})
	}
}

// TestACacheIsNotWaitedForWithoutEnd: some pods stay in it long after the API server has deleted them.
func TestACacheIsNotWaitedForWithoutEnd(t *testing.T) {
	t.Parallel()
	snapshot := cache.NewSnapshot([]*corev1.Pod{{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p"}, Spec: corev1.PodSpec{NodeName: "n"},
	}}, []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}).NodeInfos()
	left := model.Change{Left: []model.Departure{{Pod: "p", Node: "n"}}}
	clock := clocktesting.NewFakePassiveClock(time.Now())

	l := New(clock, func(types.UID) *model.Task { return nil })
	l.Notify(left)
	for range mostLooks {
		if behind, late := l.Behind(snapshot, clock.Now(), anyNode); !behind || late {
			t.Fatal("not waited for")
		}
	}
	if behind, late := l.Behind(snapshot, clock.Now(), anyNode); behind || !late {
		t.Errorf("after %d plans it is waited for: %t, and looked at now and then: %t", mostLooks, behind, late)
	}
	if !l.Doubted(snapshot, anyNode) {
		t.Errorf("after %d plans, but no time, somebody may be evicted for want of the room", mostLooks)
	}
	if l.Doubted(snapshot, func(node string) bool { return node != "n" }) {
		t.Error("nobody may be evicted for want of room that is none for the job")
	}

	l = New(clock, func(types.UID) *model.Task { return nil })
	l.Notify(left)
	clock.SetTime(clock.Now().Add(patience + time.Millisecond))
	if behind, late := l.Behind(snapshot, clock.Now(), anyNode); behind || !late {
		t.Errorf("after %s it is waited for: %t, and looked at now and then: %t", patience, behind, late)
	}
	if l.Doubted(snapshot, anyNode) {
		t.Errorf("after %s still nobody may be evicted", patience)
	}
	clock.SetTime(clock.Now().Add(memory))
	if behind, late := l.Behind(snapshot, clock.Now(), anyNode); behind || late {
		t.Errorf("after %s it is waited for: %t, and looked at now and then: %t", memory, behind, late)
	}
	l.Notify(left)
	clock.SetTime(clock.Now().Add(memory + time.Millisecond))
	l.Notify(left)
	if n := len(l.expected); n != 1 {
		t.Errorf("%d expectations are kept, want the one whose time is not over", n)
	}
	for range 2 * mostExpected {
		l.Notify(left)
	}
	if n := len(l.expected); n != mostExpected {
		t.Errorf("%d expectations are kept, want %d at most", n, mostExpected)
	}
}

// TestTheModelIsNeverWaitedForWithTheLagLocked: the model tells of its changes with its own lock held, so whoever asked it with that of lag held
// would wait for good.
func TestTheModelIsNeverWaitedForWithTheLagLocked(t *testing.T) {
	t.Parallel()
	var l *Lag
	asked := false
	l = New(clocktesting.NewFakePassiveClock(time.Now()), func(types.UID) *model.Task {
		asked = true
		if !l.mu.TryLock() {
			t.Error("locked")
			return nil
		}
		l.mu.Unlock()
		return nil
	})
	l.Notify(model.Change{Left: []model.Departure{{Pod: "p", Node: "n"}}})
	l.Behind(cache.NewSnapshot(nil, nil).NodeInfos(), time.Now(), anyNode)
	if !asked {
		t.Error("the model was not asked")
	}
}
