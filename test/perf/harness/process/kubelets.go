// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// kubelets is how many pods are told to run at a time.
const kubelets = 16

// running is what the kubelet of a bound pod would write.
var running = []byte(`{"status":{"phase":"Running"}}`)

// runPods has pods run as soon as they are bound, until the context ends: only pods that run are evicted, and there are no kubelets
// in the harness.
func runPods(ctx context.Context, client kubernetes.Interface, pods cache.SharedIndexInformer) error {
	queue := workqueue.NewTyped[types.NamespacedName]()
	enqueue := func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" && pod.Status.Phase == corev1.PodPending {
			queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
	}); err != nil {
		return err
	}
	context.AfterFunc(ctx, queue.ShutDown)
	for range kubelets {
		go func() {
			for {
				pod, end := queue.Get()
				if end {
					return
				}
				_, err := client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, running, metav1.PatchOptions{}, "status")
				if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
					klog.FromContext(ctx).Error(err, "Cannot have a pod run", "pod", klog.KRef(pod.Namespace, pod.Name))
				}
				queue.Done(pod)
			}
		}()
	}
	return nil
}
