// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID("uid-of-" + name)}}
}

// newRecorder returns a recorder with room for some events, the one it passes others on to, and its queue.
func newRecorder(t *testing.T, client *fake.Clientset, room int) (*recorder, *events.FakeRecorder) {
	logger, _ := ktesting.NewTestContext(t)
	direct := events.NewFakeRecorder(10)
	queue := &eventQueue{waiting: make(chan *eventsv1.Event, room), client: client.EventsV1(), clock: clock.RealClock{}}
	return &recorder{
		EventRecorderLogger: direct, queue: queue, logger: logger, controller: "volcano", instance: "volcano-host",
		hushed: func(uid types.UID) bool { return uid == "uid-of-hushed" },
	}, direct
}

func written(t *testing.T, client *fake.Clientset) []eventsv1.Event {
	list, err := client.EventsV1().Events("team").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func TestTheEventOfABindIsWrittenByTheQueueWithTheTimeOfTheBind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		r, direct := newRecorder(t, client, 10)
		bound := metav1.NowMicro()
		r.Eventf(pod("a"), nil, corev1.EventTypeNormal, "Scheduled", "Binding", "Successfully assigned %s to %s", "team/a", "n1")
		time.Sleep(time.Minute)
		if got := written(t, client); len(got) != 0 {
			t.Fatalf("written before the queue runs: %v", got)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.queue.run(ctx)
		synctest.Wait()
		got := written(t, client)
		if len(got) != 1 || len(direct.Events) != 0 {
			t.Fatalf("%d events written by the queue and %d directly, want one by the queue", len(got), len(direct.Events))
		}
		want := eventsv1.Event{
			TypeMeta:   got[0].TypeMeta,
			ObjectMeta: metav1.ObjectMeta{Name: got[0].Name, Namespace: "team", ManagedFields: got[0].ManagedFields}, EventTime: bound,
			ReportingController: "volcano", ReportingInstance: "volcano-host", Action: "Binding", Reason: "Scheduled",
			Regarding: corev1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: "team", Name: "a", UID: "uid-of-a"},
			Note:      "Successfully assigned team/a to n1", Type: corev1.EventTypeNormal,
		}
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Errorf("(-want,+got)\n%s", diff)
		}
	})
}

func TestOtherEventsAndThoseForWhichThereIsNoRoomAreWrittenAtOnce(t *testing.T) {
	r, direct := newRecorder(t, fake.NewClientset(), 1)
	r.Eventf(pod("a"), nil, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", "no room")
	r.Eventf(pod("a"), nil, corev1.EventTypeNormal, "Scheduled", "Binding", "first")
	r.Eventf(pod("b"), nil, corev1.EventTypeNormal, "Scheduled", "Binding", "second")
	close(direct.Events)
	var got []string
	for event := range direct.Events {
		got = append(got, event)
	}
	if diff := cmp.Diff([]string{"Warning FailedScheduling no room", "Normal Scheduled second"}, got); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
	if n := len(r.queue.waiting); n != 1 {
		t.Errorf("%d events wait, want 1", n)
	}
}

func TestTheEventOfAHushedPodIsLeftOut(t *testing.T) {
	r, direct := newRecorder(t, fake.NewClientset(), 10)
	r.Eventf(pod("hushed"), nil, corev1.EventTypeNormal, "Scheduled", "Binding", "bound")
	r.Eventf(pod("hushed"), nil, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", "no room")
	if len(r.queue.waiting) != 0 || len(direct.Events) != 1 {
		t.Errorf("%d events wait and %d were passed on, want only the one of another reason passed on", len(r.queue.waiting), len(direct.Events))
	}
}

// slowServer takes 3 ms to write an event, and counts how many it is given at a time.
type slowServer struct {
	typedeventsv1.EventInterface
	writing, most atomic.Int32
}

func (s *slowServer) Events(string) typedeventsv1.EventInterface { return s }

func (s *slowServer) Create(_ context.Context, event *eventsv1.Event, _ metav1.CreateOptions) (*eventsv1.Event, error) {
	s.most.Store(max(s.most.Load(), s.writing.Add(1)))
	time.Sleep(3 * time.Millisecond)
	s.writing.Add(-1)
	return event, nil
}

// TestEventsLeaveTheServerToTheBinds: one is written at a time while pods are being bound, and many when they are.
func TestEventsLeaveTheServerToTheBinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &slowServer{}
		r, _ := newRecorder(t, fake.NewClientset(), 1000)
		r.queue.client = server
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.queue.run(ctx)
		for range 200 {
			r.Eventf(pod("a"), nil, corev1.EventTypeNormal, "Scheduled", "Binding", "bound")
			time.Sleep(time.Millisecond)
		}
		if n := server.most.Load(); n != 1 {
			t.Errorf("%d events were written at a time while pods were bound, want 1", n)
		}
		left := len(r.queue.waiting)
		time.Sleep(quiet + 100*time.Millisecond)
		if n := server.most.Load(); left < 100 || len(r.queue.waiting) > 0 || n != eventWriters {
			t.Errorf("%d events waited after the last bind, %d still do, and %d were written at a time; want 100 or more, none, and %d",
				left, len(r.queue.waiting), n, eventWriters)
		}
	})
}

func TestAnEventIsTriedAgainUntilTheAPIServerAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{
		"no answer":  {errors.New("connection refused"), writeBackoff.Steps},
		"a refusal":  {apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "a", nil), 1},
		"no failure": {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				attempts := 0
				client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
					attempts++
					return true, &eventsv1.Event{}, tc.err
				})
				r, _ := newRecorder(t, client, 1)
				err := r.queue.write(t.Context(), &eventsv1.Event{})
				if attempts != tc.want || !errors.Is(err, tc.err) {
					t.Errorf("%d attempts that end in %v, want %d in %v", attempts, err, tc.want, tc.err)
				}
			})
		})
	}
}
