// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package queuegate takes Volcano's scheduling gate of queues (SchedulingGatesQueueAdmission) off pods that were let through. It decides nothing.
package queuegate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/requests"
)

// workers is how many requests are in flight at a time, as many as in Volcano (--gate-removal-worker-num).
const workers = 5

// firstRetry is how long after a request that got no answer the next is made. It doubles each time, up to lastRetry.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 10 * time.Second
)

// mostRetries is how often a request is repeated before the gate counts as kept, so that the job is told why: about half a minute.
const mostRetries = 10

// forbiddenFor is how long nobody asks again in a namespace in which a request was forbidden: thousands of pods may wait in a cluster whose
// scheduler lacks the right.
const forbiddenFor = time.Second

// Opener takes gates off. A request that the API server did not answer is repeated until it does.
type Opener struct {
	client kubernetes.Interface
	// kept is told of a gate that the API server does not let go, and why.
	kept  func(*model.Task, error)
	queue workqueue.TypedRateLimitingInterface[types.UID]
	clock clock.WithDelayedExecution

	mu sync.Mutex // guards the rest
	// tasks are those whose gates are still to be taken off.
	tasks map[types.UID]*model.Task
	// forbidden are the last refusals by namespace.
	forbidden map[string]refusal
}

// refusal is an answer that holds until a time for all pods of a namespace.
type refusal struct {
	err   error
	until time.Time
}

// lacksRight is what the API server's authorizer says, and no policy or webhook (k8s.io/apiserver pkg/endpoints/handlers/responsewriters).
const lacksRight = `cannot patch resource "pods"`

// advice is what to do where the scheduler may not change pods.
const advice = "let it, by manifests/rbac-optional/queue-gate.yaml or by the policy that the API server names"

// NewOpener returns an opener that makes no requests before Run, and ends with the context. Kept is told of each task whose gate the API server
// does not let go, and may hand in tasks again.
func NewOpener(ctx context.Context, client kubernetes.Interface, clock clock.WithTickerAndDelayedExecution, kept func(*model.Task, error)) *Opener {
	o := &Opener{
		client: client, kept: kept, clock: clock, tasks: map[types.UID]*model.Task{}, forbidden: map[string]refusal{},
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](firstRetry, lastRetry),
			workqueue.TypedRateLimitingQueueConfig[types.UID]{Clock: clock}),
	}
	context.AfterFunc(ctx, o.queue.ShutDown)
	return o
}

// Open has the gates of tasks taken off, in their order.
func (o *Opener) Open(tasks []*model.Task) {
	o.mu.Lock()
	for _, t := range tasks {
		o.tasks[t.UID] = t
	}
	o.mu.Unlock()
	for _, t := range tasks {
		o.queue.Add(t.UID)
	}
}

// Idle reports whether nothing is left to do.
func (o *Opener) Idle() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.tasks) == 0
}

// Run makes the requests until the context of NewOpener ends, and with the values of this one.
func (o *Opener) Run(ctx context.Context) {
	limiter := requests.NewLimiter(workers, o.clock, requests.Told{})
	defer limiter.Wait()
	for {
		uid, closed := o.queue.Get()
		if closed {
			return
		}
		o.mu.Lock()
		task := o.tasks[uid]
		o.mu.Unlock()
		if task == nil {
			o.queue.Done(uid)
			continue
		}
		limiter.Go(task.Pod.Namespace, func() { o.handle(ctx, uid, task) })
	}
}

// handle has the gate of one task taken off.
func (o *Opener) handle(ctx context.Context, uid types.UID, task *model.Task) {
	defer o.queue.Done(uid)
	again, err := o.openUnlessForbidden(ctx, task.Pod)
	if again && o.queue.NumRequeues(uid) < mostRetries {
		klog.FromContext(ctx).V(2).Info("Cannot take the scheduling gate off a pod yet", "pod", klog.KObj(task.Pod), "err", err)
		o.queue.AddRateLimited(uid)
		return
	}
	o.queue.Forget(uid)
	if err != nil {
		// Before it is no longer counted: nobody is to think that nothing is left to do.
		o.kept(task, err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.tasks[uid] == task {
		delete(o.tasks, uid)
	}
}

// openUnlessForbidden takes the gate off one pod, unless it is known that this is forbidden.
func (o *Opener) openUnlessForbidden(ctx context.Context, pod *corev1.Pod) (again bool, err error) {
	o.mu.Lock()
	known := o.forbidden[pod.Namespace]
	o.mu.Unlock()
	if o.clock.Now().Before(known.until) {
		return false, known.err
	}
	if again, err = o.open(ctx, pod); !apierrors.IsForbidden(err) {
		return again, err
	}
	klog.FromContext(ctx).Error(err, "May not take the scheduling gate off a pod", "pod", klog.KObj(pod))
	if !strings.Contains(err.Error(), lacksRight) {
		// A policy or webhook refuses this pod, and may let others pass.
		return false, fmt.Errorf("%w: %s", err, advice)
	}
	err = fmt.Errorf("%w: %s", err, advice)
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.clock.Now()
	maps.DeleteFunc(o.forbidden, func(_ string, r refusal) bool { return !now.Before(r.until) })
	o.forbidden[pod.Namespace] = refusal{err, now.Add(forbiddenFor)}
	return false, err
}

// open takes the gate off one pod, and marks it as one that its queue has let through. Again: it is not known whether that was done.
// A pod that is gone, or was created again, has no gate to take off.
func (o *Opener) open(ctx context.Context, pod *corev1.Pod) (again bool, err error) {
	patch, err := patchOf(pod.UID)
	if err != nil {
		return false, err
	}
	pods := o.client.CoreV1().Pods(pod.Namespace)
	now, err := pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsConflict(err) {
		// Somebody else wrote it at the same time, or it has another UID.
		if live, wrong := pods.Get(ctx, pod.Name, metav1.GetOptions{}); wrong == nil && live.UID != pod.UID {
			return false, nil
		} else if apierrors.IsNotFound(wrong) {
			return false, nil
		}
	}
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return requests.MayBeDone(err) || apierrors.IsTooManyRequests(err) || apierrors.IsUnauthorized(err), err
	case slices.ContainsFunc(now.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == model.QueueGate }):
		return false, errors.New("the API server took the request, and the gate is there again: find the webhook or policy that puts it back")
	}
	return false, nil
}

// patchOf takes away the queue's gate and no other, of a pod of this UID.
func patchOf(uid types.UID) ([]byte, error) {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": uid, "annotations": map[string]string{model.QueueAdmittedAnnotation: "true"}},
		"spec":     map[string]any{"schedulingGates": []map[string]string{{"$patch": "delete", "name": model.QueueGate}}},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the patch of a pod: %w", err)
	}
	return patch, nil
}
