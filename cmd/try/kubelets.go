// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

const (
	// runForAnnotation is how long a pod runs before it succeeds, as on a local cluster: cmd/localcluster/README.md.
	runForAnnotation = "localcluster.caldera.dev/run-for"
	// runFor is how long the pods of Jobs run that do not say.
	runFor = time.Second
)

// kubelets run pods at once, and let those succeed whose time is over. Nobody deletes pods of the examples. Those of localcluster can do more, and take
// longer to build.
type kubelets struct {
	client    kubernetes.Interface
	informers informers.SharedInformerFactory
	pods      sync.WaitGroup
	// known are the pods that were seen on nodes.
	known map[types.UID]bool
}

func newKubelets(client kubernetes.Interface) *kubelets {
	return &kubelets{client: client, informers: informers.NewSharedInformerFactory(client, 0), known: map[types.UID]bool{}}
}

// run runs pods until ctx ends. An error says what could not be written.
func (k *kubelets) run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	see := func(o any) { // one at a time
		pod, ok := o.(*corev1.Pod)
		if !ok || pod.Spec.NodeName == "" || k.known[pod.UID] {
			return
		}
		k.known[pod.UID] = true
		k.pods.Go(func() {
			if err := k.live(ctx, pod); err != nil {
				fail(fmt.Errorf("running pod %s: %w", pod.Name, err))
			}
		})
	}
	_, err := k.informers.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: see, UpdateFunc: func(_, o any) { see(o) },
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	k.informers.StartWithContext(ctx)
	<-ctx.Done()
	k.informers.Shutdown()
	k.pods.Wait()
	return context.Cause(ctx)
}

// live is the life of one pod on its node.
func (k *kubelets) live(ctx context.Context, pod *corev1.Pod) error {
	last, ends, err := lifeOf(pod)
	if err != nil {
		return err
	}
	pod = pod.DeepCopy()
	scenario.Started(pod, metav1.Now())
	if err := k.write(ctx, pod); err != nil || !ends {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(last):
	}
	pod.Status.Phase = corev1.PodSucceeded
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.Status, c.Reason, c.LastTransitionTime = corev1.ConditionFalse, "PodCompleted", metav1.Now()
		}
	}
	return k.write(ctx, pod)
}

// lifeOf is how long a pod runs; ends is false for one that runs until it is deleted.
func lifeOf(pod *corev1.Pod) (last time.Duration, ends bool, err error) {
	if text, ok := pod.Annotations[runForAnnotation]; ok {
		if last, err = time.ParseDuration(text); err != nil {
			return 0, false, fmt.Errorf("annotation %s=%q is not a duration: write for example 5s: %w", runForAnnotation, text, err)
		}
		return last, true, nil
	}
	owner := metav1.GetControllerOf(pod)
	return runFor, owner != nil && owner.Kind == "Job", nil
}

// write writes what a kubelet says of a pod, and nothing that others say of it.
func (k *kubelets) write(ctx context.Context, pod *corev1.Pod) error {
	status := corev1.PodStatus{Phase: pod.Status.Phase, StartTime: pod.Status.StartTime}
	for _, c := range pod.Status.Conditions {
		if c.Type != corev1.PodScheduled {
			status.Conditions = append(status.Conditions, c)
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding its status: %w", err)
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if ctx.Err() != nil {
		return nil
	}
	return err
}
