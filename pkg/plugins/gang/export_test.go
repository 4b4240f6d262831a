// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// SampleSize is sampleSize, for the tests.
var SampleSize = sampleSize

// plainly binds as upstream's binder does.
type plainly struct{ client kubernetes.Interface }

// Name implements fwk.Plugin.
func (plainly) Name() string { return "" }

// Bind implements fwk.BindPlugin.
func (b plainly) Bind(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	return fwk.AsStatus(util.BindPod(ctx, b.client, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}))
}

// Bind binds a pod, and reports whether that has succeeded.
func Bind(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, node string) bool {
	return surely{plainly{client}, client}.Bind(ctx, nil, pod, node).IsSuccess()
}
