// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	modelresource "github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

func amounts(cpu string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
}

func TestDesiredQueue(t *testing.T) {
	for name, tc := range map[string]struct {
		before volcano.QueueStatus
		facts  status.QueueFacts
		want   volcano.QueueStatus
	}{
		"a new queue is open": {
			want: volcano.QueueStatus{State: volcano.QueueStateOpen, Allocated: corev1.ResourceList{}},
		},
		"a closed queue stays closed": {
			before: volcano.QueueStatus{State: volcano.QueueStateClosed},
			want:   volcano.QueueStatus{State: volcano.QueueStateClosed, Allocated: corev1.ResourceList{}},
		},
		"what jobs hold, and how many PodGroups are in which phase": {
			before: volcano.QueueStatus{State: volcano.QueueStateOpen, Allocated: amounts("9"), Completed: 7},
			facts: status.QueueFacts{
				Allocated: modelresource.Vector{{Name: "cpu", Value: 1500}, {Name: "nvidia.com/gpu", Value: 0}},
				Groups:    account.Groups{Pending: 1, Inqueue: 2, Running: 3, Unknown: 4, Completed: 5},
			},
			want: volcano.QueueStatus{
				State: volcano.QueueStateOpen, Allocated: amounts("1500m"),
				Pending: 1, Inqueue: 2, Running: 3, Unknown: 4, Completed: 5,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, status.DesiredQueue(tc.before, tc.facts)); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestTheStatusOfAQueueIsPatchedWhenItDiffers(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		before := queue("q", "")
		before.UID = "q-uid"
		before.Status.Allocated = corev1.ResourceList{"cpu": resource.MustParse("2"), "nvidia.com/gpu": resource.MustParse("1")}
		d := newFixture(t, before)
		held := modelresource.Vector{{Name: "cpu", Value: 4000}}
		d.FollowQueues(func() []status.QueueFacts {
			return []status.QueueFacts{{Queue: d.state.Queue("q"), Allocated: held}}
		})
		go d.Run(t.Context())
		time.Sleep(10 * time.Second)
		var patches []any
		for _, action := range d.groups.Actions() {
			if patch, ok := action.(clienttesting.PatchAction); ok && patch.GetResource().Resource == "queues" {
				if patch.GetSubresource() != "status" {
					t.Errorf("the patch goes to %q, want the status", patch.GetSubresource())
				}
				var got any
				d.check(json.Unmarshal(patch.GetPatch(), &got))
				patches = append(patches, got)
			}
		}
		want := []any{map[string]any{
			"metadata": map[string]any{"uid": "q-uid"},
			"status": map[string]any{
				"allocated": map[string]any{"cpu": "4", "nvidia.com/gpu": nil}, "state": "Open",
				"pending": 0.0, "inqueue": 0.0, "running": 0.0, "unknown": 0.0, "completed": 0.0,
			},
		}}
		if diff := cmp.Diff(want, patches); diff != "" {
			t.Errorf("one write was wanted (-want,+got)\n%s", diff)
		}
	})
}

// What a queue has held is written when a restart would forget it, and every five minutes at most.
func TestWhatAQueueHasHeldIsWrittenWhenItWouldBeForgotten(t *testing.T) {
	listFirst(t)
	for name, tc := range map[string]struct {
		forgotten bool
		// refused: the API server does not let the scheduler write.
		refused bool
		writes  int
	}{
		"it would be forgotten":                       {forgotten: true, writes: 2},
		"nothing would":                               {},
		"who may not write does not try all the time": {forgotten: true, refused: true, writes: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := queue("q", volcano.QueueStateOpen)
				before.UID = "q-uid"
				d := newFixture(t, before)
				at := time.Now()
				d.FollowQueues(func() []status.QueueFacts {
					held := model.Recent{At: at, Average: modelresource.Portion{{Name: "cpu", Value: 8000}}}
					return []status.QueueFacts{{Queue: d.state.Queue("q"), Recent: held, Forgotten: tc.forgotten}}
				})
				if tc.refused {
					d.groups.PrependReactor("patch", "queues", func(clienttesting.Action) (bool, runtime.Object, error) {
						return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "queues"}, "q", nil)
					})
				}
				go d.Run(t.Context())
				time.Sleep(9 * time.Minute)
				writes := 0
				for _, action := range d.groups.Actions() {
					patch, ok := action.(clienttesting.PatchAction)
					if !ok || patch.GetResource().Resource != "queues" || patch.GetSubresource() != "" {
						continue
					}
					writes++
					var got *volcano.Queue
					d.check(json.Unmarshal(patch.GetPatch(), &got))
					said, err := model.RecentOf(got.Annotations)
					d.check(err)
					if got.UID != "q-uid" || said.Average.Get("cpu") != 8000 || !said.At.Equal(at.Truncate(time.Second)) {
						t.Errorf("written is %s", patch.GetPatch())
					}
				}
				if writes != tc.writes {
					t.Errorf("it was written %d times in 9 minutes, want %d", writes, tc.writes)
				}
			})
		})
	}
}

func TestAQueueThatIsLeftOutSaysSoOnItself(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := open(t, queue("q", volcano.QueueStateOpen))
		synctest.Wait()
		object := d.state.Queue("q")
		d.QueueFault(object, model.Reason{Kind: model.QueueMisconfigured, Message: "queue \"q\" is left out: its parent \"p\" does not exist"})
		time.Sleep(time.Millisecond)
		d.QueueFault(object, model.Reason{})
		time.Sleep(time.Second)
		want := []string{
			"Normal QueueAccepted on Queue q: the queue takes part in scheduling again",
			"Warning QueueMisconfigured on Queue q: queue \"q\" is left out: its parent \"p\" does not exist",
		}
		if diff := cmp.Diff(want, d.eventsIn("default")); diff != "" {
			t.Errorf("(-want,+got)\n%s", diff)
		}
	})
}
