// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/requests"
)

// looks are when it is looked what became of a bind without an answer: at once, and three times more within two seconds.
var looks = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 3, Steps: 4}

// bindingHandle is a handle for the binder, with the client by which pods are bound.
type bindingHandle struct {
	fwk.Handle
	client kubernetes.Interface
}

// ClientSet implements fwk.Handle.
func (h bindingHandle) ClientSet() kubernetes.Interface { return h.client }

// surely is a binder that finds out whether a bind has succeeded when the answer to it was lost. Upstream takes such a pod for one without a
// node until the news of its bind comes, and may give its room to another one meanwhile.
type surely struct {
	fwk.BindPlugin
	client kubernetes.Interface
}

// Bind implements fwk.BindPlugin.
func (b surely) Bind(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	status := b.BindPlugin.Bind(ctx, state, pod, node)
	if status.IsSuccess() || !requests.MayBeDone(status.AsError()) || !b.bound(ctx, pod, node) {
		return status
	}
	klog.FromContext(ctx).V(2).Info("The API server has bound a pod, and its answer was lost", "pod", klog.KObj(pod), "node", node, "err", status.AsError())
	return nil
}

// bound asks the API server whether a pod is on a node.
func (b surely) bound(ctx context.Context, pod *corev1.Pod, node string) bool {
	there := false
	// That it cannot be found out means that it is not known, as without asking.
	_ = wait.ExponentialBackoffWithContext(ctx, looks, func(ctx context.Context) (bool, error) {
		now, err := b.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return !requests.MayBeDone(err), nil
		}
		there = now.UID == pod.UID && now.Spec.NodeName == node
		return true, nil
	})
	return there
}
