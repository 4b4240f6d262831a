// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package requests

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// conflicts is how often a write is tried that others get ahead of.
const conflicts = 5

// PatchWaiting writes a part of the status of a pod that has no node. Part returns what is to be written on the pod as it is now, nil for nothing.
// Nothing is written on another pod of that name, nor once the pod has a node: a write that took long would say of a pod that runs why it waits.
// It is no error that the pod is gone. It is one if others have written the pod each time.
func PatchWaiting(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, part func(now *corev1.Pod) (any, error)) error {
	pods, now := client.CoreV1().Pods(pod.Namespace), pod
	var conflict error
	for range conflicts {
		if now.UID != pod.UID || now.Spec.NodeName != "" {
			return nil
		}
		status, err := part(now)
		if status == nil || err != nil {
			return err
		}
		of := map[string]any{"uid": now.UID}
		if now.ResourceVersion != "" {
			of["resourceVersion"] = now.ResourceVersion
		}
		patch, err := json.Marshal(map[string]any{"metadata": of, "status": status})
		if err != nil {
			return fmt.Errorf("encoding a part of the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		_, conflict = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if !apierrors.IsConflict(conflict) {
			return unlessGone(conflict)
		}
		if now, err = pods.Get(ctx, pod.Name, metav1.GetOptions{}); err != nil {
			return unlessGone(err)
		}
	}
	return conflict
}

// unlessGone is an error, unless it says that the object is not there.
func unlessGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
