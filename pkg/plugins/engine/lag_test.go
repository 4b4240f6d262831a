// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

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
	grown := model.Change{Nodes: []*corev1.Node{node(version)}}
	for name, c := range map[string]struct {
		change model.Change
		pods   []*corev1.Pod
		nodes  []*corev1.Node
		task   *model.Task
		want   bool
	}{
		"the pod is still there":  {left, []*corev1.Pod{pod("gone"), pod("other")}, []*corev1.Node{node(version)}, nil, true},
		"the pod is gone":         {left, []*corev1.Pod{pod("other")}, []*corev1.Node{node(version)}, nil, false},
		"it got the node again":   {left, []*corev1.Pod{pod("gone")}, []*corev1.Node{node(version)}, &model.Task{Node: "n", Status: model.Allocated}, false},
		"it has finished":         {left, []*corev1.Pod{pod("gone")}, []*corev1.Node{node(version)}, &model.Task{Node: "n", Status: model.Succeeded}, true},
		"so is its node":          {left, nil, nil, nil, false},
		"the node is yet to come": {grown, nil, nil, nil, true},
		"the node is yet to grow": {grown, nil, []*corev1.Node{node("6")}, nil, true},
		"the node has grown":      {grown, nil, []*corev1.Node{node(version)}, nil, false},
		"the node is ahead":       {grown, nil, []*corev1.Node{node("10")}, nil, false},
		"nothing is expected":     {model.Change{}, []*corev1.Pod{pod("other")}, []*corev1.Node{node("6")}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			learned := time.Now()
			l := lag{clock: clocktesting.NewFakePassiveClock(learned), task: func(types.UID) *model.Task { return c.task }}
			l.notify(c.change)
			snapshot := cache.NewSnapshot(c.pods, c.nodes).NodeInfos()
			if l.behind(snapshot, learned.Add(-time.Millisecond), anyNode) {
				t.Error("behind with what happened after the snapshot was taken")
			}
			if got := l.behind(snapshot, learned, anyNode); got != c.want {
				t.Errorf("behind: %t, want %t", got, c.want)
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

	l := lag{clock: clock, task: func(types.UID) *model.Task { return nil }}
	l.notify(left)
	for range lagLooks {
		if !l.behind(snapshot, clock.Now(), anyNode) {
			t.Fatal("not waited for")
		}
	}
	if l.behind(snapshot, clock.Now(), anyNode) {
		t.Errorf("waited for after %d plans", lagLooks)
	}

	l.notify(left)
	clock.SetTime(clock.Now().Add(lagPatience + time.Millisecond))
	if l.behind(snapshot, clock.Now(), anyNode) {
		t.Error("waited for after the time is over")
	}
	l.notify(left)
	clock.SetTime(clock.Now().Add(lagPatience + time.Millisecond))
	l.notify(left)
	if n := len(l.expected); n != 1 {
		t.Errorf("%d expectations are kept, want the one whose time is not over", n)
	}
}
