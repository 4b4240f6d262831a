// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// identified is a client that writes only to the pods that the kubelets know of, by UID. KWOK writes by name, and late: by then
// the pod may be gone, and a controller may have created another one of that name, which waits for a node.
type identified struct {
	kubernetes.Interface
	bound corelisters.PodLister
}

type identifiedCore struct {
	typedcorev1.CoreV1Interface
	bound corelisters.PodLister
}

type identifiedPods struct {
	typedcorev1.PodInterface
	bound corelisters.PodNamespaceLister
}

// CoreV1 implements kubernetes.Interface.
func (c identified) CoreV1() typedcorev1.CoreV1Interface {
	return identifiedCore{c.Interface.CoreV1(), c.bound}
}

// Pods implements typedcorev1.CoreV1Interface.
func (c identifiedCore) Pods(namespace string) typedcorev1.PodInterface {
	return identifiedPods{c.CoreV1Interface.Pods(namespace), c.bound.Pods(namespace)}
}

// Delete removes a pod that was asked to end; no other pod is a kubelet's to remove.
func (p identifiedPods) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	pod, err := p.bound.Get(name)
	if err != nil {
		return err
	}
	if pod.DeletionTimestamp == nil {
		return apierrors.NewConflict(corev1.Resource("pods"), name, fmt.Errorf("pod %s was not asked to end", pod.UID))
	}
	o.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
	return p.PodInterface.Delete(ctx, name, o)
}

// Patch changes a pod.
func (p identifiedPods) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, o metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	pod, err := p.bound.Get(name)
	if err != nil {
		return nil, err
	}
	var patch map[string]any
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, fmt.Errorf("reading the patch of a stage: %w", err)
	}
	metadata, ok := patch["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		patch["metadata"] = metadata
	}
	metadata["uid"] = pod.UID
	if data, err = json.Marshal(patch); err != nil {
		return nil, fmt.Errorf("writing the patch of a stage: %w", err)
	}
	return p.PodInterface.Patch(ctx, name, pt, data, o, subresources...)
}
