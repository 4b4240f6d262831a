// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package podstatus has a scheduler go on while the API server writes the status of a pod that found no node. Upstream waits for that between two
// scheduling cycles, so that one webhook for pods/status that answers late stops the whole scheduler, whichever namespace it is for.
package podstatus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/requests"
)

// writes is how many pods are written at a time.
const writes = 4

// Install changes a scheduler that does not run yet. Upstream has a way of its own behind the feature SchedulerAsyncAPICalls, which is off by
// default and makes all requests of all namespaces from one queue; where it is on, nothing changes.
func Install(clock clock.WithDelayedExecution, sched *scheduler.Scheduler) *Writer {
	w := &Writer{limiter: requests.NewLimiter(writes, clock, requests.Told{}), stop: sched.StopEverything, pending: map[types.UID]*change{}}
	fail := sched.FailureHandler
	sched.FailureHandler = func(ctx context.Context, f framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nominating *fwk.NominatingInfo, start time.Time) {
		fail(ctx, writing{f, &request{w, f.ClientSet(), klog.FromContext(ctx)}}, info, status, nominating, start)
	}
	return w
}

// writing is a profile by which upstream handles a pod that found no node.
type writing struct {
	framework.Framework
	request *request
}

// APICacher implements fwk.Handle.
func (w writing) APICacher() fwk.APICacher {
	if theirs := w.Framework.APICacher(); theirs != nil {
		return theirs
	}
	return w.request
}

// Writer writes the status of pods that found no node.
type Writer struct {
	limiter *requests.Limiter
	// stop is closed when the scheduler ends.
	stop <-chan struct{}

	// mu guards what follows.
	mu sync.Mutex
	// pending are the changes that wait, or that came while another one of the pod is being written.
	pending map[types.UID]*change
}

// Idle reports whether everything is written.
func (w *Writer) Idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending) == 0
}

// change is what is to be written on a pod.
type change struct {
	// pod is who it is, and the status that it had; nil: nothing is to be written.
	pod        *corev1.Pod
	conditions map[corev1.PodConditionType]*corev1.PodCondition
	// nominated is the node that is to be nominated, "" for none; nil leaves it as it is.
	nominated *string
	// begun: an earlier change of the pod is being written.
	begun bool
}

// request is a writer for one pod that found no node.
type request struct {
	*Writer
	client kubernetes.Interface
	logger klog.Logger
}

// PatchPodStatus implements fwk.APICacher. What still waits for the pod is written together with this.
func (r *request) PatchPodStatus(pod *corev1.Pod, conditions []*corev1.PodCondition, nominating *fwk.NominatingInfo) (<-chan error, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.pending[pod.UID]
	waits := c != nil
	if !waits {
		c = &change{conditions: map[corev1.PodConditionType]*corev1.PodCondition{}}
	}
	c.pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion}, Status: *pod.Status.DeepCopy(),
	}
	for _, condition := range conditions {
		c.conditions[condition.Type] = condition
	}
	if nominating.Mode() == fwk.ModeOverride {
		c.nominated = &nominating.NominatedNodeName
	}
	if _, differs := c.after(pod); differs && !waits {
		r.pending[pod.UID] = c
		r.limiter.Enqueue(pod.Namespace, func() { r.write(pod.UID) })
	}
	return nil, nil
}

// write writes what waits for a pod, and what comes meanwhile.
func (r *request) write(uid types.UID) {
	for {
		r.mu.Lock()
		c := r.pending[uid]
		if c.begun && c.pod == nil {
			delete(r.pending, uid)
			r.mu.Unlock()
			return
		}
		r.pending[uid] = &change{begun: true, conditions: map[corev1.PodConditionType]*corev1.PodCondition{}}
		r.mu.Unlock()
		ctx := wait.ContextForChannel(r.stop)
		if err := c.write(ctx, r.client); err != nil && ctx.Err() == nil {
			utilruntime.HandleErrorWithContext(klog.NewContext(ctx, r.logger), err, "Error updating pod", "pod", klog.KObj(c.pod))
		}
	}
}

// after is the status that a pod is to have, and whether it differs from what it has.
func (c *change) after(pod *corev1.Pod) (after *corev1.PodStatus, differs bool) {
	after = pod.Status.DeepCopy()
	for _, condition := range c.conditions {
		differs = podutil.UpdatePodCondition(after, condition) || differs
	}
	if c.nominated != nil && after.NominatedNodeName != *c.nominated {
		after.NominatedNodeName, differs = *c.nominated, true
	}
	return after, differs
}

// write writes a change, if the pod is not like that already, and has no node by then.
func (c *change) write(ctx context.Context, client kubernetes.Interface) error {
	return retry.OnError(retry.DefaultBackoff, util.Retriable, func() error {
		return requests.PatchWaiting(ctx, client, c.pod, c.part)
	})
}

// part is what is to be written on a pod as it is now, nil for nothing.
func (c *change) part(now *corev1.Pod) (any, error) {
	after, differs := c.after(now)
	if !differs {
		return nil, nil
	}
	before, err := json.Marshal(corev1.Pod{Status: now.Status})
	if err != nil {
		return nil, fmt.Errorf("encoding the status of pod %s/%s: %w", now.Namespace, now.Name, err)
	}
	wanted, err := json.Marshal(corev1.Pod{Status: *after})
	if err != nil {
		return nil, fmt.Errorf("encoding the status of pod %s/%s: %w", now.Namespace, now.Name, err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, wanted, &corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("comparing statuses of pod %s/%s: %w", now.Namespace, now.Name, err)
	}
	var part struct {
		Status json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(patch, &part); err != nil || part.Status == nil {
		return nil, err
	}
	return part.Status, nil
}

// errNotHere is what those get who want anything else.
var errNotHere = errors.New("only the status of pods that found no node is written here")

// BindPod implements fwk.APICacher, and is not called for pods that found no node.
func (*request) BindPod(*corev1.Binding) (<-chan error, error) { return nil, errNotHere }

// WaitOnFinish implements fwk.APICacher, and is not called for pods that found no node.
func (*request) WaitOnFinish(context.Context, <-chan error) error { return errNotHere }
