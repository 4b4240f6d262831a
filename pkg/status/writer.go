// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status is the only writer of PodGroup and Queue status, of the pod conditions that say why a gang waits, and
// of events about gangs.
package status

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	native "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	coschedulingclient "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/requests"
)

const (
	// workers is how many jobs are written at a time, tellers how many have their pods told why they wait.
	workers, tellers = 4, 2
	// courtesy is how many times as long as a write to a waiting pod took a teller pauses: it asks the API server a quarter of the time.
	courtesy = 3
	// longestPause is the most it pauses, should the API server stand still for a while.
	longestPause = 5 * time.Second
	// promptly is the delay before a job that waits for its pods is written: its owner waits for the phase.
	promptly = 50 * time.Millisecond
	// collected is the delay before any other job is written, so that the steps of a gang's start make one write.
	collected = time.Second
	// glance is how often is looked for numbers that are out of date.
	glance = 30 * time.Second
	// untroubled is how long pods of a job wait for their queue before they say so: nodes would not help them, and the PodGroup says it at once.
	untroubled = 10 * time.Second
	// reporter names Caldera as the source of events.
	reporter = "caldera-scheduler"
)

// Writer brings what the API server shows in line with the model. Only the leader may run it.
type Writer struct {
	volcano volcanoclient.Interface
	// coscheduling is the API of scheduler-plugins' PodGroups; nil: their status is not written.
	coscheduling coschedulingclient.Interface
	kube         kubernetes.Interface
	state        *model.State
	queue        jobQueue
	// waiting are the jobs whose pods are to be told why they wait: thousands, which nobody else is to wait for.
	waiting jobQueue
	clock   clock.WithTickerAndDelayedExecution
	// queueFacts returns what the status of queues is to tell.
	queueFacts func() []QueueFacts
	// numbers returns why jobs wait, with the numbers of now.
	numbers  func() map[model.JobKey]model.Reason
	notices  *notices
	events   record.EventBroadcaster
	recorder record.EventRecorder
	// eventsOnce starts the events.
	eventsOnce sync.Once
	// noSubresource is set when the PodGroup definition, like Volcano's own, has no status subresource.
	noSubresource atomic.Bool

	// mu guards what follows.
	mu sync.Mutex
	// runs: jobs that change are written. Before, they are not remembered: Run looks at all of them.
	runs bool
}

// jobQueue is jobs that are to be written.
type jobQueue = workqueue.TypedRateLimitingInterface[model.JobKey]

func newJobQueue() jobQueue {
	return workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[model.JobKey]())
}

// FollowQueues has the writer keep the status of queues, which it asks for by the function. It must be called before
// Run.
func (w *Writer) FollowQueues(facts func() []QueueFacts) { w.queueFacts = facts }

// FollowNumbers has the writer keep the numbers up to date that objects show. It asks for them twice a minute. It must be called before Run.
func (w *Writer) FollowNumbers(now func() map[model.JobKey]model.Reason) { w.numbers = now }

// New returns a writer. It writes nothing before Run.
func New(groups volcanoclient.Interface, kube kubernetes.Interface, state *model.State) (*Writer, error) {
	return NewAt(clock.RealClock{}, groups, kube, state)
}

// NewAt returns a writer that lives by a clock of its own.
func NewAt(now clock.WithTickerAndDelayedExecution, groups volcanoclient.Interface, kube kubernetes.Interface, state *model.State) (*Writer, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kubescheme.AddToScheme, volcano.AddToScheme, coscheduling.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme of events: %w", err)
		}
	}
	broadcaster := record.NewBroadcaster()
	return &Writer{
		volcano:  groups,
		kube:     kube,
		state:    state,
		clock:    now,
		queue:    newJobQueue(),
		waiting:  newJobQueue(),
		events:   broadcaster,
		recorder: broadcaster.NewRecorder(scheme, corev1.EventSource{Component: reporter}),
		notices:  newNotices(now),
	}, nil
}

// Notify takes note of jobs that changed.
func (w *Writer) Notify(c model.Change) {
	for _, key := range c.Jobs {
		// What there is to write of a single pod, its reason says; without the pod that is to be forgotten.
		if key.Source != model.FromPod || w.notices.knows(key) && w.state.Summary(key) == nil {
			w.schedule(key)
		}
	}
	for _, t := range c.Malformed {
		w.event(t.Pod, corev1.EventTypeWarning, malformedReason, t.Problem)
	}
	for _, complaint := range c.Complaints {
		w.event(complaint.Object, corev1.EventTypeWarning, malformedReason, complaint.Problem)
	}
}

// Waits takes note of why a job waits; the zero Reason when it no longer does. Of two reports about a job the one with the greater number
// counts, 1 or more: they may overtake each other.
func (w *Writer) Waits(key model.JobKey, reason model.Reason, number uint64) {
	if w.notices.report(key, reason, number) {
		w.schedule(key)
	}
}

// schedule has a job written, once the writer runs, after a delay in which further changes join the write.
func (w *Writer) schedule(key model.JobKey) {
	w.mu.Lock()
	runs := w.runs
	w.mu.Unlock()
	if !runs {
		return
	}
	delay := collected
	if job := w.state.Summary(key); job != nil && job.Group != nil && job.Counts.Total() == 0 {
		delay = promptly
	}
	w.queue.AddAfter(key, delay)
}

// StartEvents has events written from now on; those recorded before are lost. Run does it if nobody did before.
func (w *Writer) StartEvents() {
	w.eventsOnce.Do(func() {
		// Core events with timestamps: Volcano's CLI and controllers look at lastTimestamp.
		w.events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: w.kube.CoreV1().Events("")})
	})
}

// Run writes until the context ends.
func (w *Writer) Run(ctx context.Context) {
	logger := klog.FromContext(ctx).WithName("status")
	ctx = klog.NewContext(ctx, logger)
	w.StartEvents()
	defer w.events.Shutdown()

	w.begin()
	var running sync.WaitGroup
	running.Go(func() { w.ensureQueues(ctx) })
	if w.queueFacts != nil {
		running.Go(func() { w.followQueues(ctx) })
	}
	if w.numbers != nil {
		running.Go(func() { w.keepNumbers(ctx) })
	}
	work := func(workers int, queue jobQueue, write func(context.Context, model.JobKey) error) {
		limiter := requests.NewLimiter(workers, w.clock, requests.Told{})
		running.Go(func() {
			defer limiter.Wait()
			for {
				key, quit := queue.Get()
				if quit {
					return
				}
				limiter.Go(key.Namespace, func() { settle(ctx, queue, key, write) })
			}
		})
	}
	work(workers, w.queue, func(ctx context.Context, key model.JobKey) error {
		if err := w.sync(ctx, key); err != nil {
			return err
		}
		w.waiting.Add(key)
		return nil
	})
	work(tellers, w.waiting, func(ctx context.Context, key model.JobKey) error { return w.tellPods(ctx, key, w.pause) })
	<-ctx.Done()
	w.queue.ShutDown()
	w.waiting.ShutDown()
	running.Wait()
}

// begin has all jobs looked at, and from now on those that change.
func (w *Writer) begin() {
	w.mu.Lock()
	w.runs = true
	w.mu.Unlock()
	keys := w.notices.keys()
	snapshot := w.state.Snapshot()
	for job := range snapshot.Jobs {
		if job.Key.Source != model.FromPod {
			keys = append(keys, job.Key)
		}
	}
	w.complain(snapshot)
	slices.SortFunc(keys, model.JobKey.Compare)
	for _, key := range keys {
		w.schedule(key)
	}
}

// complain tells what is wrong with objects that were there before events are written.
func (w *Writer) complain(snapshot *model.Snapshot) {
	var c model.Change
	for job := range snapshot.Jobs {
		if job.Group != nil && job.Group.Problem != "" {
			c.Complaints = append(c.Complaints, model.Complaint{Object: job.Group.Object, Problem: job.Group.Problem})
		}
		for _, t := range job.Tasks {
			if t.Problem != "" {
				c.Malformed = append(c.Malformed, t)
			}
		}
	}
	for q := range snapshot.Queues {
		if q.Problem != "" {
			c.Complaints = append(c.Complaints, model.Complaint{Object: q.Object, Problem: q.Problem})
		}
	}
	w.Notify(c)
}

// settle writes one job that was taken from a queue.
func settle(ctx context.Context, queue jobQueue, key model.JobKey, write func(context.Context, model.JobKey) error) {
	defer queue.Done(key)
	if err := write(ctx, key); err != nil {
		if ctx.Err() == nil {
			klog.FromContext(ctx).V(2).Info("Cannot write the state of a job; trying again", "job", key, "err", err)
			queue.AddRateLimited(key)
		}
		return
	}
	queue.Forget(key)
}

// show returns what the objects of a job are to say of why it waits.
func (w *Writer) show(key model.JobKey) showing {
	s, again := w.notices.show(key)
	if again > 0 {
		w.later(w.queue, key, again)
	}
	return s
}

// later has a job looked at after a time, if the writer runs.
func (w *Writer) later(queue jobQueue, key model.JobKey, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs {
		queue.AddAfter(key, wait)
	}
}

// keepNumbers brings what objects show up to date, until the context ends. What is found at once is written one by one until it looks again.
func (w *Writer) keepNumbers(ctx context.Context) {
	ticker := w.clock.NewTicker(glance)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		keys := w.notices.renumber(w.numbers())
		for i, key := range keys {
			w.later(w.queue, key, glance*time.Duration(i)/time.Duration(len(keys)))
		}
	}
}

// sync writes what differs: the PodGroup's status, the nominations of its pods, an event when the reason is new. Why they wait its pods are
// told by tellPods.
func (w *Writer) sync(ctx context.Context, key model.JobKey) error {
	job := w.state.Summary(key)
	s := w.show(key)
	if job == nil {
		w.notices.forget(key, func() bool { return w.state.Summary(key) == nil })
		return nil
	}
	if job.Group != nil {
		var err error
		switch group := job.Group.Object.(type) {
		case *volcano.PodGroup:
			err = w.writeGroup(ctx, job, group, s)
		case *native.PodGroup:
			err = w.writeNative(ctx, job, group, s.shown)
		case *coscheduling.PodGroup:
			err = w.writeCoscheduling(ctx, job, group)
		}
		if err != nil {
			return err
		}
	}
	w.say(job, s.shown)
	return w.writeNominations(ctx, job)
}

// say records an event on the PodGroup if the reason is new.
func (w *Writer) say(job *model.Job, reason model.Reason) {
	if job.Group == nil {
		return
	}
	if w.notices.say(job.Key, reason) {
		w.event(job.Group.Object, corev1.EventTypeWarning, waitsReason, reason.Text())
	}
}

// tasks returns those of a job that meet a condition.
func (w *Writer) tasks(key model.JobKey, which func(*model.Task) bool) []*model.Task {
	job := w.state.Job(key)
	if job == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(job.Tasks), func(t *model.Task) bool { return !which(t) })
}

// untold reports whether a task waits and nobody else tells its users why. Of scheduling gates the API server tells, but not what the gate of
// its queue waits for.
func untold(t *model.Task) bool {
	return t.Placeable() || t.Status == model.Pending && (t.HeldBy != "" || t.QueueGated)
}
