// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceshare

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/gang"
)

// PreBindPreFlight skips pods that have no cards.
func (pl *DeviceShare) PreBindPreFlight(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	if pl.ledger.get(pod.UID) == nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	return nil, nil
}

// PreBind writes what the pod has got into its annotations, where the device plugin looks once the pod is bound; before that it
// locks the node if there is a lock. The framework asks PreBindPreFlight only for pods whose node it nominates first, so that pods
// without cards come here, too.
func (pl *DeviceShare) PreBind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	if wants, err := pl.mode.Wants(pod); err == nil && !wants {
		return nil
	}
	r := pl.ledger.get(pod.UID)
	if r == nil {
		return fwk.AsStatus(fmt.Errorf("finding the cards of pod %s: nothing is reserved for it", klog.KObj(pod)))
	}
	if pl.args.NodeLock {
		lock, err := pl.lock(ctx, nodeName)
		if err != nil {
			return fwk.AsStatus(fmt.Errorf("locking node %s for pod %s: %w", nodeName, klog.KObj(pod), err))
		}
		r.lock = lock
	}
	r.told = true
	annotations := map[string]any{}
	for key, value := range pl.mode.Annotations(r.assignment, nodeName, pl.clock.Now()) {
		annotations[key] = value
	}
	if err := pl.annotate(ctx, pod, annotations); err != nil {
		return fwk.AsStatus(fmt.Errorf("writing the cards of pod %s: %w", klog.KObj(pod), err))
	}
	return nil
}

// Unreserve gives the cards back. What the pod's annotations said is taken out, and the node unlocked; if that fails, annotations
// of a pod that is on no node do no harm, and the lock ends by itself.
func (pl *DeviceShare) Unreserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) {
	r := pl.ledger.get(pod.UID)
	if r == nil || gang.Planning(state) {
		return
	}
	pl.ledger.remove(pod.UID)
	// The cycle may have been given up.
	ctx = context.WithoutCancel(ctx)
	logger := klog.FromContext(ctx)
	if r.told {
		annotations := map[string]any{}
		for key := range pl.mode.Annotations(r.assignment, nodeName, pl.clock.Now()) {
			annotations[key] = nil
		}
		if err := pl.annotate(ctx, pod, annotations); err != nil && !apierrors.IsNotFound(err) {
			logger.Error(err, "Annotations about cards stay on a pod that has none", "pod", klog.KObj(pod))
		}
	}
	if r.lock != "" {
		if err := pl.unlock(ctx, nodeName, r.lock); err != nil {
			logger.Error(err, "Node stays locked for a while", "node", nodeName, "pod", klog.KObj(pod))
		}
	}
}

// annotate writes annotations of a pod, unless another one has taken its name; nil takes one out.
func (pl *DeviceShare) annotate(ctx context.Context, pod *corev1.Pod, annotations map[string]any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "annotations": annotations}})
	if err != nil {
		return err
	}
	_, err = pl.handle.ClientSet().CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
