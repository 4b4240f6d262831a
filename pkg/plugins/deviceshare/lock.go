// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceshare

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A node is locked by an annotation whose value is the time; the device plugin takes it away when it has given the pod its cards
// (Volcano pkg/scheduler/plugins/util/nodelock).
const (
	lockAnnotation = "hamivgpu"
	// lockEnds is how long a lock holds that nobody takes away, and how long a pod waits for one at most.
	lockEnds = 5 * time.Minute
	// lockAgain is the time from one look at a lock to the next.
	lockAgain = time.Second
)

// lock locks a node as soon as it is not locked, and returns the value of its annotation.
func (pl *DeviceShare) lock(ctx context.Context, node string) (string, error) {
	limit := pl.clock.Now().Add(lockEnds)
	for {
		value, err := pl.tryLock(ctx, node)
		switch {
		case value != "" || err != nil:
			return value, err
		case !pl.clock.Now().Before(limit):
			return "", fmt.Errorf("annotation %s of the node was there for %s: does its device plugin run? It takes it away when a pod has its cards", lockAnnotation, lockEnds)
		}
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-pl.clock.After(lockAgain):
		}
	}
}

// tryLock locks a node and returns the value of its annotation; empty when it is locked already. A lock that has ended is replaced;
// one that cannot be read has.
func (pl *DeviceShare) tryLock(ctx context.Context, name string) (string, error) {
	node, err := pl.nodes.Get(name)
	if err != nil {
		return "", err
	}
	now := pl.clock.Now()
	if since, err := time.Parse(time.RFC3339, node.Annotations[lockAnnotation]); err == nil && now.Before(since.Add(lockEnds)) {
		return "", nil
	}
	value := now.UTC().Format(time.RFC3339)
	err = pl.setLock(ctx, node, value)
	switch {
	case apierrors.IsConflict(err):
		// The node has changed; whether the lock has will be seen when the change arrives.
		return "", nil
	case err != nil:
		return "", err
	}
	return value, nil
}

// unlock takes the lock of a node away if it still has this value.
func (pl *DeviceShare) unlock(ctx context.Context, name, value string) error {
	node, err := pl.handle.ClientSet().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || node.Annotations[lockAnnotation] != value {
		return err
	}
	return pl.setLock(ctx, node, nil)
}

// setLock writes the lock of a node that has not changed since; nil takes it away.
func (pl *DeviceShare) setLock(ctx context.Context, node *corev1.Node, value any) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": node.ResourceVersion, "annotations": map[string]any{lockAnnotation: value},
	}})
	if err != nil {
		return err
	}
	_, err = pl.handle.ClientSet().CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
