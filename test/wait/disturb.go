// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// disturbances is how many there are a second.
const disturbances = 10

// annotatePod rewrites an annotation of a hopeless pod, as a tenant may.
func annotatePod(ctx context.Context, c clients, s scenario, n int) error {
	if s.Hopeless == 0 {
		return nil
	}
	patch := metadataPatch("annotations", "wait.caldera.dev/note", strconv.Itoa(n))
	_, err := c.kube.CoreV1().Pods(tenants).Patch(ctx, podName(jobName(n%s.Hopeless), 0), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// relabelNode changes a label of a node that nobody selects.
func relabelNode(ctx context.Context, c clients, s scenario, n int) error {
	patch := metadataPatch("labels", "wait.caldera.dev/note", strconv.Itoa(n))
	_, err := c.kube.CoreV1().Nodes().Patch(ctx, nodeName(poolFull, n%s.fullNodes()), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// flapMinMember has one of a few gangs need one pod less, and a second later all of them again.
func flapMinMember(ctx context.Context, c clients, s scenario, n int) error {
	few := min(s.Hopeless, disturbances)
	if few == 0 {
		return nil
	}
	patch := fmt.Appendf(nil, `{"spec":{"minMember":%d}}`, gangSize-1+(n/few)%2)
	_, err := c.groups.SchedulingV1beta1().PodGroups(tenants).Patch(ctx, jobName(n%few), types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil // plain pods have no groups
	}
	return err
}

// makeClaim makes the claim of a pod that has had none so far, until half of all pods have one.
func makeClaim(ctx context.Context, c clients, s scenario, n int) error {
	if n >= s.Hopeless/2 {
		return nil
	}
	name := podName(jobName(n), 0)
	pod, err := c.kube.CoreV1().Pods(tenants).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	made := claimOf(pod)
	if _, err := c.kube.ResourceV1().ResourceClaims(tenants).Create(ctx, made, metav1.CreateOptions{}); err != nil {
		return err
	}
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: pod.Spec.ResourceClaims[0].Name, ResourceClaimName: new(made.Name)}}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"resourceClaimStatuses": pod.Status.ResourceClaimStatuses}})
	if err != nil {
		return err
	}
	_, err = c.kube.CoreV1().Pods(tenants).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// metadataPatch sets one annotation or label.
func metadataPatch(field, key, value string) []byte {
	return fmt.Appendf(nil, `{"metadata":{%q:{%q:%q}}}`, field, key, value)
}
