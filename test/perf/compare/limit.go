// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

// limitWorkers is how many binds the client has in flight, as many as Caldera by default.
const limitWorkers = 64

// newLimitCommand is the contender limit: the machine's own limit for any scheduler that binds pods one by one.
func newLimitCommand() *cobra.Command {
	var kubeconfig string
	var qps int
	cmd := &cobra.Command{
		Use:    "limit",
		Short:  "Bind all pods to nodes in turn, with an event for each, as fast as the API server goes",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return bindAll(cmd.Context(), kubeconfig, qps) },
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "the cluster")
	cmd.Flags().IntVar(&qps, "qps", 5000, "client-side request limit, requests/s")
	return cmd
}

func bindAll(ctx context.Context, kubeconfig string, qps int) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = float32(qps), qps
	config.ContentType = runtime.ContentTypeProtobuf
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	nodes, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	pods, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, limitWorkers, len(pods.Items), func(i int) {
		if err := bindOne(ctx, kube, &pods.Items[i], nodes.Items[i%len(nodes.Items)].Name); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

// bindOne writes what a scheduler writes for a pod.
func bindOne(ctx context.Context, kube kubernetes.Interface, pod *corev1.Pod, node string) error {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	if err := kube.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("binding %s: %w", pod.Name, err)
	}
	now := metav1.NowMicro()
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", pod.Name, time.Now().UnixNano()), Namespace: pod.Namespace},
		EventTime:           now,
		ReportingController: "limit",
		ReportingInstance:   "limit",
		Action:              "Binding",
		Reason:              "Scheduled",
		Type:                corev1.EventTypeNormal,
		Note:                fmt.Sprintf("Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, node),
		Regarding: corev1.ObjectReference{
			Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
	}
	if _, err := kube.EventsV1().Events(pod.Namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("writing the event of %s: %w", pod.Name, err)
	}
	return nil
}
