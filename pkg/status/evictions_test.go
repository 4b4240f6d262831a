// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// single is the job that the pod "single", which has no PodGroup, is.
var single = model.JobKey{Source: model.FromPod, Namespace: "ns", Name: "single"}

func TestEvictionsAreToldOnWhatTheyConcern(t *testing.T) {
	const forTrain, forSingle = "because of reclaim: PodGroup ns/train in queue q needs ", "because of preempt: pod ns/single in queue default needs "
	reclaim := status.Taking{Action: "reclaim", For: train, Queue: "q"}
	preempt := status.Taking{Action: "preempt", For: single, Queue: "default"}
	for name, tc := range map[string]struct {
		tell func(d *fixture)
		// objects are the events in the namespace, queues those of queues.
		objects, queues []string
	}{
		"a pod of a PodGroup, and its PodGroup": {
			func(d *fixture) { d.Evicted(member("train-0"), train, preempt) },
			[]string{
				"Normal Evict on PodGroup train: Pod train-0 is evicted, " + forSingle + "its room",
				"Warning Evict on Pod train-0: Pod is evicted, " + forSingle + "its room",
			},
			nil,
		},
		"a pod without one": {
			func(d *fixture) { d.Evicted(newPod("single"), single, reclaim) },
			[]string{"Warning Evict on Pod single: Pod is evicted, " + forTrain + "its room"},
			nil,
		},
		"a PodGroup that gets the room, and the queues": {
			func(d *fixture) { d.Evicting(reclaim, map[string]int{"default": 4, "q": 1}) },
			[]string{"Normal Evicting on PodGroup train: evicting 4 pods of queue default, 1 pod of queue q to start (reclaim)"},
			[]string{
				"Normal Evict on Queue default: 4 pods evicted, " + forTrain + "the room",
				"Normal Evicting on Queue q: evicting 4 pods of queue default, 1 pod of queue q for PodGroup ns/train (reclaim)",
			},
		},
		"a pod that gets the room inside its queue": {
			func(d *fixture) { d.Evicting(preempt, map[string]int{"default": 1}) },
			[]string{"Normal Evicting on Pod single: evicting 1 pod of queue default to start (preempt)"},
			[]string{"Normal Evicting on Queue default: evicting 1 pod of queue default for pod ns/single (preempt)"},
		},
		"a pod whose room nobody needs": {
			func(d *fixture) {
				d.Evicted(member("train-0"), train, status.Taking{Action: "shuffle", Why: "node n is full"})
				d.Evicting(status.Taking{Action: "shuffle"}, map[string]int{"default": 1, "q": 2})
			},
			[]string{
				"Normal Evict on PodGroup train: Pod train-0 is evicted, because of shuffle: node n is full",
				"Warning Evict on Pod train-0: Pod is evicted, because of shuffle: node n is full",
			},
			[]string{
				"Normal Evict on Queue default: 1 pod evicted, because of shuffle",
				"Normal Evict on Queue q: 2 pods evicted, because of shuffle",
			},
		},
		"a job and a queue that are gone": {
			func(d *fixture) {
				d.Evicting(status.Taking{Action: "reclaim", For: model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: "gone"}, Queue: "gone"},
					map[string]int{"lost": 2})
			}, nil, nil,
		},
		"a broken gang that is whole again": {
			func(d *fixture) { d.Whole(train, 95400*time.Millisecond) },
			[]string{"Normal GangWhole on PodGroup train: its gang is whole; it was broken for 1m35s"},
			nil,
		},
		"nobody was evicted": {func(d *fixture) { d.Evicting(reclaim, nil) }, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			listFirst(t)
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t, podGroup(1), newPod("single"), queue("q", volcano.QueueStateOpen))
				d.StartEvents()
				defer d.Close()
				tc.tell(d)
				synctest.Wait()
				if diff := cmp.Diff(tc.objects, d.events()); diff != "" {
					t.Errorf("events (-want,+got)\n%s", diff)
				}
				if diff := cmp.Diff(tc.queues, d.eventsIn("default")); diff != "" {
					t.Errorf("events on queues (-want,+got)\n%s", diff)
				}
			})
		})
	}
}

func TestAnEvictedPodSaysForWhom(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		byAPI := func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue},
				{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting"},
			}
		}
		d := newFixture(t, newPod("victim", running, byAPI))
		defer d.Close()
		taking := status.Taking{Action: "reclaim", For: train, Queue: "q"}
		d.check(d.Disrupts(t.Context(), newPod("victim"), taking))
		d.check(d.Disrupts(t.Context(), newPod("gone"), taking))
		p, err := d.kube.CoreV1().Pods("ns").Get(t.Context(), "victim", metav1.GetOptions{})
		d.check(err)
		var got []string
		for _, c := range p.Status.Conditions {
			got = append(got, string(c.Type)+" "+string(c.Status)+" "+c.Reason+": "+c.Message)
		}
		want := []string{
			"Ready True : ",
			"DisruptionTarget True PreemptionByScheduler: caldera-scheduler: evicting to make room for PodGroup ns/train in queue q (reclaim)",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("conditions (-want,+got)\n%s", diff)
		}
	})
}
