// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// What a change can help decides which waiting jobs are tried again.
func TestEventsOfAChange(t *testing.T) {
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "down", Effect: corev1.TaintEffectNoSchedule}}
	}
	for name, tc := range map[string]struct {
		before, change func(*model.State) model.Change
		want           model.Event
	}{
		"a node comes": {
			change: func(s *model.State) model.Change { return s.UpsertNode(newNode("node-0")) },
			want:   model.NodeChanged,
		},
		"a node grows": {
			before: func(s *model.State) model.Change { return s.UpsertNode(newNode("node-0", having("cpu", "1"))) },
			change: func(s *model.State) model.Change { return s.UpsertNode(newNode("node-0", having("cpu", "2"))) },
			want:   model.NodeChanged,
		},
		"a node shrinks": {
			before: func(s *model.State) model.Change { return s.UpsertNode(newNode("node-0", having("cpu", "2"))) },
			change: func(s *model.State) model.Change { return s.UpsertNode(newNode("node-0", having("cpu", "1"))) },
			want:   model.NodeLost,
		},
		"a node reports that it is alive": {
			before: func(s *model.State) model.Change { return s.UpsertNode(newNode("node-0")) },
			change: func(s *model.State) model.Change {
				return s.UpsertNode(newNode("node-0", func(n *corev1.Node) { n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}} }))
			},
		},
		"a node is opened": {
			before: func(s *model.State) model.Change {
				return s.UpsertNode(newNode("node-0", func(n *corev1.Node) { n.Spec.Unschedulable = true }))
			},
			change: func(s *model.State) model.Change { return s.UpsertNode(newNode("node-0")) },
			want:   model.NodeChanged,
		},
		"a taint goes": {
			before: func(s *model.State) model.Change { return s.UpsertNode(newNode("node-0", tainted)) },
			change: func(s *model.State) model.Change { return s.UpsertNode(newNode("node-0")) },
			want:   model.NodeChanged,
		},
		"a label changes": {
			before: func(s *model.State) model.Change { return s.UpsertNode(newNode("node-0")) },
			change: func(s *model.State) model.Change {
				return s.UpsertNode(newNode("node-0", func(n *corev1.Node) { n.Labels["zone"] = "a" }))
			},
			want: model.NodeChanged,
		},
		"a node goes": {
			before: func(s *model.State) model.Change { return s.UpsertNode(newNode("node-0")) },
			change: func(s *model.State) model.Change { return s.DeleteNode("node-0") },
			want:   model.NodeLost,
		},
		"a pod comes and waits": {
			change: func(s *model.State) model.Change { return s.UpsertPod(newPod("p")) },
		},
		"a pod is placed": {
			before: func(s *model.State) model.Change { return s.UpsertPod(newPod("p")) },
			change: func(s *model.State) model.Change { return s.UpsertPod(newPod("p", running)) },
			want:   model.PodPlaced | model.PodStarted,
		},
		"a pod is given a reservation": {
			before: func(s *model.State) model.Change { return s.UpsertPod(newPod("p")) },
			change: func(s *model.State) model.Change { return s.Assume("p", "node-0") },
			want:   model.PodPlaced,
		},
		"a reservation is confirmed": {
			before: func(s *model.State) model.Change { s.UpsertPod(newPod("p")); return s.Assume("p", "node-0") },
			change: func(s *model.State) model.Change { return s.UpsertPod(newPod("p", on("node-0"))) },
		},
		"a reservation is taken back": {
			before: func(s *model.State) model.Change { s.UpsertPod(newPod("p")); return s.Assume("p", "node-0") },
			change: func(s *model.State) model.Change { return s.Forget("p") },
			want:   model.RoomMade,
		},
		"a running pod reports its status": {
			before: func(s *model.State) model.Change { return s.UpsertPod(newPod("p", running)) },
			change: func(s *model.State) model.Change {
				return s.UpsertPod(newPod("p", running, func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }))
			},
		},
		"the labels of a running pod change, which affinity may ask for": {
			before: func(s *model.State) model.Change { return s.UpsertPod(newPod("p", running)) },
			change: func(s *model.State) model.Change { return s.UpsertPod(newPod("p", running, labelled("app", "x"))) },
			want:   model.PodPlaced,
		},
		"a pod of another scheduler reports its status": {
			before: func(s *model.State) model.Change { return s.UpsertPod(newPod("p", running, of("other"))) },
			change: func(s *model.State) model.Change { return s.UpsertPod(newPod("p", running, of("other"))) },
		},
		"a running pod shrinks": {
			before: func(s *model.State) model.Change { return s.UpsertPod(newPod("p", running, asking("cpu", "2"))) },
			change: func(s *model.State) model.Change { return s.UpsertPod(newPod("p", running, asking("cpu", "1"))) },
			want:   model.RoomMade | model.PodPlaced,
		},
		"a running pod is told to terminate, and topology spread no longer counts it": {
			before: func(s *model.State) model.Change { return s.UpsertPod(newPod("p", running)) },
			change: func(s *model.State) model.Change { return s.UpsertPod(newPod("p", running, terminating)) },
			want:   model.PodPlaced,
		},
		"a running pod succeeds": {
			before: func(s *model.State) model.Change { return s.UpsertPod(newPod("p", running)) },
			change: func(s *model.State) model.Change { return s.UpsertPod(newPod("p", succeeded)) },
			want:   model.RoomMade,
		},
		"a running pod goes": {
			before: func(s *model.State) model.Change { return s.UpsertPod(newPod("p", running)) },
			change: func(s *model.State) model.Change { return s.LeavePod("p") },
			want:   model.RoomMade,
		},
		"a waiting pod goes": {
			before: func(s *model.State) model.Change { return s.UpsertPod(newPod("p")) },
			change: func(s *model.State) model.Change { return s.LeavePod("p") },
		},
		"a finished pod goes": {
			before: func(s *model.State) model.Change { return s.UpsertPod(newPod("p", in("train"), succeeded)) },
			change: func(s *model.State) model.Change { return s.DeletePod("p") },
		},
		"a queue comes": {
			change: func(s *model.State) model.Change { return s.UpsertQueue(&model.Queue{Name: "a"}) },
			want:   model.QueueChanged,
		},
		"a queue goes": {
			before: func(s *model.State) model.Change { return s.UpsertQueue(&model.Queue{Name: "a"}) },
			change: func(s *model.State) model.Change { return s.DeleteQueue("a") },
			want:   model.QueueChanged,
		},
		"something the model keeps no state for": {
			change: func(s *model.State) model.Change { return s.Raise(model.StorageChanged) },
			want:   model.StorageChanged,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var told []model.Change
			state := model.NewState(func(c model.Change) { told = append(told, c) })
			state.AddScheduler(batch)
			if tc.before != nil {
				tc.before(state)
			}
			told = nil
			got := tc.change(state)
			if got.Events != tc.want {
				t.Errorf("events %b, want %b", got.Events, tc.want)
			}
			var want []model.Change
			if !got.Empty() {
				want = []model.Change{got}
			}
			if diff := cmp.Diff(want, told); diff != "" {
				t.Errorf("what the observer is told is not what is returned (-returned,+told)\n%s", diff)
			}
		})
	}
}

func TestAMalformedPodIsToldOnce(t *testing.T) {
	malformed := annotated(model.TaskPriorityAnnotation, "high")
	for name, tc := range map[string]struct {
		before, now *corev1.Pod
		want        bool
	}{
		"it comes":                {nil, newPod("p", malformed), true},
		"it comes well":           {nil, newPod("p"), false},
		"it changes elsewhere":    {newPod("p", malformed), newPod("p", malformed, running), false},
		"it becomes malformed":    {newPod("p"), newPod("p", malformed), true},
		"the problem is another":  {newPod("p", malformed), newPod("p", annotated(model.TaskPriorityAnnotation, "low")), true},
		"the problem is mended":   {newPod("p", malformed), newPod("p"), false},
		"another scheduler's pod": {nil, newPod("p", malformed, of("other")), false},
	} {
		t.Run(name, func(t *testing.T) {
			state := model.NewState()
			state.AddScheduler(batch)
			if tc.before != nil {
				state.UpsertPod(tc.before)
			}
			if got := len(state.UpsertPod(tc.now).Malformed) == 1; got != tc.want {
				t.Errorf("told: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestTheObserverKnowsBeforeAnybodyElse has somebody read the model while the observer is told.
func TestTheObserverKnowsBeforeAnybodyElse(t *testing.T) {
	t.Parallel()
	s := model.NewState()
	told := 0
	read := make(chan struct{})
	s.ObserveFirst(func(c model.Change) {
		told++
		if len(c.Nodes) != 1 || c.Nodes[0].Name != "node-0" {
			t.Errorf("told of %v", c.Nodes)
		}
		go func() {
			s.Totals()
			close(read)
		}()
		select {
		case <-read:
			t.Error("somebody could read the model before the observer knew")
		case <-time.After(50 * time.Millisecond):
		}
	})
	s.UpsertNode(newNode("node-0"))
	<-read
	s.UpsertNode(newNode("node-0"))
	if told != 1 {
		t.Errorf("told %d times of one change", told)
	}
}
