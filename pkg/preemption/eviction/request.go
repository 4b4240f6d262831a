// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"context"
	"errors"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// errLeaseOver is why nobody is asked.
var errLeaseOver = errors.New("the lease of this scheduler has run out, and another one may lead")

// patience bounds one request to the API server.
const patience = 30 * time.Second

// perform asks the API server for one eviction, once, and acts on the answer.
func (x *Executor) perform(ctx context.Context, r request) {
	v, pod := r.victim, r.victim.Pod
	logger := klog.FromContext(ctx).WithValues("pod", klog.KObj(pod), "decision", r.decision.ID)
	switch {
	case r.repeated == 0:
		if !x.c.Ledger.Sent(r.decision.ID, v.UID) {
			x.finish(r.run, v.Queue, false)
			return
		}
	case !x.c.Ledger.Again(v.UID):
		logger.V(2).Info("A pod need not be evicted any more")
		if x.c.Stays != nil {
			x.c.Stays([]*Victim{v})
		}
		x.finish(r.run, v.Queue, false)
		return
	}
	answer, err := x.evict(ctx, pod)
	switch {
	case ctx.Err() != nil && answer == unanswered: // Whether the pod is evicted is for the next leader to see.
	case answer == agreed:
		logger.V(3).Info("Evicted a pod", "action", r.decision.Action, "beneficiary", r.decision.Beneficiary, "queue", r.decision.Queue, "why", v.Why)
		x.c.Ledger.Leaving(v.UID, x.c.Clock.Now().Add(model.GracePeriod(pod)+x.c.VictimTimeout))
		if err := x.c.Writer.Disrupts(ctx, pod, taking(r.decision, v)); err != nil {
			logger.V(2).Info("Cannot write for whom a pod is evicted", "err", err)
		}
		x.c.Writer.Evicted(pod, v.Job, taking(r.decision, v))
		x.finish(r.run, v.Queue, true)
	case answer == absent:
		x.c.Ledger.absent(v.UID)
		x.finish(r.run, v.Queue, false)
	case answer == unanswered && r.repeated < retries:
		logger.V(2).Info("Cannot evict a pod; trying again", "err", err)
		seconds, _ := apierrors.SuggestsClientDelay(err)
		x.repeat(ctx, r, time.Duration(seconds)*time.Second)
	default:
		logger.V(2).Info("A pod is not evicted", "err", err)
		x.refuse(r, err)
		x.finish(r.run, v.Queue, false)
	}
}

// refuse takes note that a victim is not evicted.
func (x *Executor) refuse(r request, err error) {
	spared, closed := x.c.Ledger.refuse(r.victim.UID, err.Error(), x.c.Clock.Now().Add(Protection))
	if x.c.Stays != nil {
		x.c.Stays(append(spared, r.victim))
	}
	if x.c.Refused == nil {
		return
	}
	for _, d := range closed {
		x.c.Refused(d, r.victim, err)
	}
}

// answer is what the API server said.
type answer int

const (
	agreed answer = iota
	// absent: the pod is gone already.
	absent
	refused
	// unanswered: the request may do better the next time.
	unanswered
)

// evict asks for the eviction of a pod, with its own grace period.
func (x *Executor) evict(ctx context.Context, pod *corev1.Pod) (answer, error) {
	if x.c.Leads != nil && !x.c.Leads() {
		return unanswered, errLeaseOver
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := x.once(ctx, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: metav1.NewPreconditionDeleteOptions(string(pod.UID)),
	})
	var said apierrors.APIStatus
	switch {
	case err == nil:
		return agreed, nil
	case !errors.As(err, &said):
		return unanswered, err
	case said.Status().Code == http.StatusNotFound:
		return absent, nil
	case said.Status().Code == http.StatusConflict:
		return x.conflict(ctx, pod, err)
	case said.Status().Code >= http.StatusInternalServerError:
		return unanswered, err
	}
	if _, later := apierrors.SuggestsClientDelay(err); later {
		// It has too much to do, or the controller has not read the budget yet.
		return unanswered, err
	}
	return refused, err
}

// once sends one request. Client-go would repeat it by itself when the API server names a delay, though nobody may need it any more by then.
func (x *Executor) once(ctx context.Context, e *policyv1.Eviction) error {
	connection, ok := x.c.Client.CoreV1().RESTClient().(*rest.RESTClient)
	if !ok || connection == nil {
		// Client-go's fakes have no connection, and repeat nothing.
		return x.c.Client.PolicyV1().Evictions(e.Namespace).Evict(ctx, e)
	}
	return connection.Post().Namespace(e.Namespace).Resource("pods").Name(e.Name).SubResource("eviction").Body(e).MaxRetries(0).Do(ctx).Error()
}

// conflict finds out whether an eviction failed because another pod has the name now; it may also have met another write.
func (x *Executor) conflict(ctx context.Context, pod *corev1.Pod, conflict error) (answer, error) {
	now, err := x.c.Client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID {
		return absent, nil
	}
	return unanswered, errors.Join(conflict, err)
}

// taking is the decision as the status writer tells it of a victim.
func taking(d *Decision, v *Victim) status.Taking {
	t := status.Taking{Action: d.Action, For: d.Beneficiary, Queue: d.Queue}
	if d.forNobody() {
		t.Why = v.Why
	}
	return t
}
