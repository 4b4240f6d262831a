// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install creates the objects a local cluster starts with, and waits for those the API server makes itself.
package install

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// readyPoll is how often /readyz is asked; the API server offers nothing to wait on.
const readyPoll = 50 * time.Millisecond

// WaitReady returns when the API server says it is ready: all bootstrap objects (RBAC roles, priority classes) exist.
func WaitReady(ctx context.Context, client rest.Interface) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, readyPoll, true, func(ctx context.Context) (bool, error) {
		status := 0
		last = client.Get().AbsPath("/readyz").Do(ctx).StatusCode(&status).Error()
		return status == http.StatusOK, nil
	})
	if err != nil {
		if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
			return cause // the server has ended; what the last request saw adds nothing
		}
		return fmt.Errorf("waiting for kube-apiserver: %w", errors.Join(context.Cause(ctx), last))
	}
	return nil
}

// WaitNamespaces returns when the namespaces the API server creates after it is ready exist.
func WaitNamespaces(ctx context.Context, client kubernetes.Interface) error {
	missing := sets.New(metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease)
	namespaces := client.CoreV1().Namespaces()
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return namespaces.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return namespaces.Watch(ctx, o)
		},
	}
	_, err := watchtools.UntilWithSync(ctx, lw, &corev1.Namespace{}, nil, func(e watch.Event) (bool, error) {
		if ns, ok := e.Object.(*corev1.Namespace); ok {
			missing.Delete(ns.Name)
		}
		return missing.Len() == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for namespaces %v: %w", sets.List(missing), err)
	}
	return nil
}

// nodeWorkers is the number of creations in flight; more gains nothing on two cores.
const nodeWorkers = 32

// Nodes creates the nodes that do not exist yet and returns how many it created.
func Nodes(ctx context.Context, client kubernetes.Interface, nodes []*corev1.Node) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	work := make(chan *corev1.Node)
	created := make(chan int, nodeWorkers)
	for range nodeWorkers {
		go func() {
			n := 0
			for node := range work {
				ok, err := createNode(ctx, client, node)
				if err != nil {
					cancel(err)
				}
				if ok {
					n++
				}
			}
			created <- n
		}()
	}
	feed(ctx, work, nodes)
	total := 0
	for range nodeWorkers {
		total += <-created
	}
	return total, context.Cause(ctx)
}

func feed(ctx context.Context, work chan<- *corev1.Node, nodes []*corev1.Node) {
	defer close(work)
	for _, node := range nodes {
		select {
		case work <- node:
		case <-ctx.Done():
			return
		}
	}
}

func createNode(ctx context.Context, client kubernetes.Interface, node *corev1.Node) (bool, error) {
	_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return false, nil // kept from an earlier start on the same directory
	}
	if err != nil {
		return false, fmt.Errorf("creating node %s: %w", node.Name, err)
	}
	return true, nil
}
