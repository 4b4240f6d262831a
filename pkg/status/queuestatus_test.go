// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"encoding/json"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

// TestWhatIsReservedIsWritten: within a second, once it is known, and only when it changes. A write that fails is tried again at once, one that is refused after five minutes.
func TestWhatIsReservedIsWritten(t *testing.T) {
	listFirst(t)
	since := time.Date(2026, 1, 2, 15, 4, 5, 6, time.UTC)
	train := &model.Reservation{Job: "ns/train", UID: "u", Since: since, Start: since.Add(time.Hour), Pods: map[string][]types.UID{"n": {"p"}}}
	moved := &model.Reservation{Job: "ns/train", UID: "u", Since: since, Start: since.Add(2 * time.Hour), Pods: map[string][]types.UID{"n": {"p"}}}
	for name, tc := range map[string]struct {
		before, after *model.Reservation
		undecided     bool
		refused       bool
		// fails: the first write fails, and nobody knows why.
		fails bool
		// writes are how often it is written in nine minutes, and then it says after.
		writes int
	}{
		"room is reserved":             {after: train, writes: 1},
		"none is any more":             {before: train, writes: 1},
		"it is free later":             {before: train, after: moved, writes: 1},
		"it is the same":               {before: train, after: train},
		"nothing is known yet":         {before: train, undecided: true},
		"who may not write":            {after: train, refused: true, writes: 2},
		"the API server is away":       {after: train, fails: true, writes: 2},
		"there is none, and was none ": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := queue("q", volcano.QueueStateOpen)
				before.UID = "q-uid"
				d := newFixture(t, before)
				noted := func(r *model.Reservation) {
					object := *d.state.Queue("q")
					object.Reservation = r
					d.state.UpsertQueue(&object)
				}
				noted(tc.before)
				d.FollowQueues(func() []status.QueueFacts {
					return []status.QueueFacts{{Queue: d.state.Queue("q"), Reservation: tc.after, Decided: !tc.undecided}}
				})
				var writes atomic.Int32
				d.groups.PrependReactor("patch", "queues", func(action clienttesting.Action) (bool, runtime.Object, error) {
					patch := action.(clienttesting.PatchAction)
					if patch.GetSubresource() != "" {
						return false, nil, nil
					}
					switch n := writes.Add(1); {
					case tc.fails && n == 1:
						return true, nil, apierrors.NewServerTimeout(schema.GroupResource{Resource: "queues"}, "patch", 1)
					case tc.refused:
						return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "queues"}, "q", nil)
					}
					var written struct {
						Metadata struct {
							UID         string             `json:"uid"`
							Annotations map[string]*string `json:"annotations"`
						} `json:"metadata"`
					}
					d.check(json.Unmarshal(patch.GetPatch(), &written))
					value, there := written.Metadata.Annotations[model.ReservationAnnotation]
					var said *model.Reservation
					if value != nil {
						var err error
						said, err = model.ReservationOf(map[string]string{model.ReservationAnnotation: *value})
						d.check(err)
					}
					if !there || written.Metadata.UID != "q-uid" || !said.Same(tc.after) {
						t.Errorf("written is %s, want %v", patch.GetPatch(), tc.after)
					}
					noted(said)
					return false, nil, nil
				})
				go d.Run(t.Context())
				time.Sleep(3 * time.Second)
				synctest.Wait()
				soon := tc.writes
				if tc.refused {
					soon = 1
				}
				if got := int(writes.Load()); got != soon {
					t.Errorf("it was written %d times in 3 seconds, want %d", got, soon)
				}
				time.Sleep(9 * time.Minute)
				synctest.Wait()
				if got := int(writes.Load()); got != tc.writes {
					t.Errorf("it was written %d times in 9 minutes, want %d", got, tc.writes)
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
