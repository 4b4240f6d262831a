// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster_test

import (
	"context"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

func TestNodeCreatedByOthersBecomesReadyAndRunsPods(t *testing.T) {
	t.Parallel()
	client := clientOf(t, shared)
	createBareNode(t, client, "by-hand")
	awaitNode(t, client, "by-hand", "the node to be ready", isNodeReady)
	ns := newNamespace(t, client)
	pod := newPod("pod", nil)
	pod.Spec.NodeName = "by-hand"
	createPod(t, client, ns, pod)
	awaitPod(t, client, ns, "pod", "the pod to run", hasPhase(corev1.PodRunning))
}

func TestPodBoundBeforeItsNodeExistsRunsAfterwards(t *testing.T) {
	t.Parallel()
	client := clientOf(t, shared)
	ns := newNamespace(t, client)
	pod := newPod("early", nil)
	pod.Spec.NodeName = "late"
	createPod(t, client, ns, pod)
	createBareNode(t, client, "late")
	awaitPod(t, client, ns, "early", "the pod to run", hasPhase(corev1.PodRunning))
}

func TestNodeMadeNotReadyStaysSo(t *testing.T) {
	t.Parallel()
	client := clientOf(t, shared)
	createBareNode(t, client, "unhealthy")
	awaitNode(t, client, "unhealthy", "the node to be ready", isNodeReady)
	patch := []byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Test"}]}}`)
	nodes := client.CoreV1().Nodes()
	broken, err := nodes.Patch(t.Context(), "unhealthy", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	// Whatever the kubelets do with the change is done when they have acted on a later one: events keep their order.
	createBareNode(t, client, "later")
	awaitNode(t, client, "later", "a later node to be ready", isNodeReady)
	node, err := nodes.Get(t.Context(), "unhealthy", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if isNodeReady(node) || node.ResourceVersion != broken.ResourceVersion {
		t.Errorf("the node was changed after the patch: %+v", node.Status.Conditions)
	}
}

func TestNodeHoldsALease(t *testing.T) {
	t.Parallel()
	client := clientOf(t, shared)
	createBareNode(t, client, "leased")
	leases := client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", "leased").String()
			return leases.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", "leased").String()
			return leases.Watch(ctx, o)
		},
	}
	await(t, "the lease", &coordinationv1.Lease{}, lw, func(obj runtime.Object) bool { return obj != nil })
	if err := client.CoreV1().Nodes().Delete(t.Context(), "leased", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the lease to go with its node", &coordinationv1.Lease{}, lw, func(obj runtime.Object) bool { return obj == nil })
}

// createBareNode creates a node without any status; it is deleted when the test ends.
func createBareNode(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	nodes := client.CoreV1().Nodes()
	if _, err := nodes.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := nodes.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

func awaitNode(t *testing.T, client kubernetes.Interface, name, what string, done func(*corev1.Node) bool) {
	t.Helper()
	nodes := client.CoreV1().Nodes()
	selector := fields.OneTermEqualSelector("metadata.name", name).String()
	await(t, what, &corev1.Node{}, &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return nodes.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return nodes.Watch(ctx, o)
		},
	}, func(obj runtime.Object) bool {
		node, ok := obj.(*corev1.Node)
		return ok && done(node)
	})
}

func isNodeReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
