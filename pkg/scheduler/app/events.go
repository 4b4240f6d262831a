// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	typedeventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
)

const (
	// scheduledReason is the reason of the event upstream's scheduler records for each pod it binds.
	scheduledReason = "Scheduled"
	// waitingEvents is how many of them may wait to be written; more are written at once, as upstream does.
	waitingEvents = 20000
	// eventWriters is how many are written at a time when nothing has been bound for the time quiet.
	eventWriters = 32
	quiet        = 20 * time.Millisecond
)

// writeBackoff bounds the attempts to write one event; the last comes after about 12 s.
var writeBackoff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 3, Steps: 6}

// eventsBehindBinds lets the events of bound pods wait for the binds. Writing such an event costs the API server as
// much as the bind itself: while pods are being bound one is written at a time, which takes a small part of the API
// server, and once they are, many. The events carry the time of the bind.
func eventsBehindBinds(ctx context.Context, config *rest.Config, c *core.Core, sched *scheduler.Scheduler) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building the client for events: %w", err)
	}
	instance, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("asking for the host name: %w", err)
	}
	queue := &eventQueue{waiting: make(chan *eventsv1.Event, waitingEvents), client: client.EventsV1(), clock: clock.RealClock{}}
	go queue.run(ctx)
	hushed := c.Events.Suppressed()
	for name, profile := range sched.Profiles {
		sched.Profiles[name] = recording{Framework: profile, recorder: &recorder{
			EventRecorderLogger: profile.EventRecorder(), queue: queue, logger: klog.FromContext(ctx),
			controller: name, instance: name + "-" + instance, hushed: hushed,
		}}
	}
	return nil
}

// recording is a profile whose events go through a recorder of ours.
type recording struct {
	framework.Framework
	recorder *recorder
}

// EventRecorder implements framework.Framework.
func (r recording) EventRecorder() events.EventRecorderLogger { return r.recorder }

// recorder queues the events of bound pods and passes on all others.
type recorder struct {
	events.EventRecorderLogger
	queue  *eventQueue
	logger klog.Logger
	// controller and instance are those that upstream's recorder writes.
	controller, instance string
	// hushed reports whether the event of a bound pod is to be left out.
	hushed func(types.UID) bool
}

// WithLogger implements events.EventRecorderLogger.
func (r *recorder) WithLogger(logger klog.Logger) events.EventRecorderLogger {
	c := *r
	c.EventRecorderLogger, c.logger = r.EventRecorderLogger.WithLogger(logger), logger
	return &c
}

// Eventf implements events.EventRecorder.
func (r *recorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	if reason == scheduledReason && related == nil {
		if pod, ok := regarding.(*corev1.Pod); ok && r.hushed(pod.UID) {
			return
		}
		if event := r.event(regarding, kind, reason, action, fmt.Sprintf(note, args...)); event != nil && r.queue.put(event) {
			return
		}
	}
	r.EventRecorderLogger.Eventf(regarding, related, kind, reason, action, note, args...)
}

// event is what upstream's recorder would write; nil when the object cannot be referred to.
func (r *recorder) event(regarding runtime.Object, kind, reason, action, note string) *eventsv1.Event {
	ref, err := reference.GetReference(kubescheme.Scheme, regarding)
	if err != nil {
		return nil
	}
	now := metav1.NowMicro()
	return &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: util.GenerateEventName(ref.Name, now.UnixNano()), Namespace: ref.Namespace},
		EventTime:           now,
		ReportingController: r.controller,
		ReportingInstance:   r.instance,
		Action:              action,
		Reason:              reason,
		Regarding:           *ref,
		Note:                note,
		Type:                kind,
	}
}

// eventQueue holds the events that wait to be written.
type eventQueue struct {
	waiting chan *eventsv1.Event
	client  typedeventsv1.EventsGetter
	clock   clock.PassiveClock
	// last is when an event last came, in nanoseconds since 1970.
	last atomic.Int64
}

// put queues an event and reports whether there was room.
func (q *eventQueue) put(event *eventsv1.Event) bool {
	// Before the event is seen, lest the first one is taken for one after a pause.
	q.last.Store(q.clock.Now().UnixNano())
	select {
	case q.waiting <- event:
		return true
	default:
		return false
	}
}

// run writes events until the context ends. What then still waits is lost, as it is upstream.
func (q *eventQueue) run(ctx context.Context) {
	var writers errgroup.Group
	writers.SetLimit(eventWriters)
	defer writers.Wait() //nolint:errcheck // the writers return no errors
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-q.waiting:
			if q.clock.Since(time.Unix(0, q.last.Load())) < quiet {
				q.attempt(ctx, event)
				continue
			}
			writers.Go(func() error {
				q.attempt(ctx, event)
				return nil
			})
		}
	}
}

// attempt writes one event, and gives it up if that fails for long.
func (q *eventQueue) attempt(ctx context.Context, event *eventsv1.Event) {
	if err := q.write(ctx, event); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).V(2).Info("Cannot write an event", "pod", klog.KRef(event.Regarding.Namespace, event.Regarding.Name), "err", err)
	}
}

// write writes one event. It tries again as long as the API server has not answered; a refusal is final.
func (q *eventQueue) write(ctx context.Context, event *eventsv1.Event) error {
	unanswered := func(err error) bool {
		return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown && ctx.Err() == nil
	}
	return retry.OnError(writeBackoff, unanswered, func() error {
		_, err := q.client.Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
		return err
	})
}
