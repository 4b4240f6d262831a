// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// jobLabel tells the pods of jobs apart, as those of Jobs are.
const jobLabel = "job-name"

var oneCore = resource.MustParse("1")

// lives are what becomes of a job, in turn.
const lives = 4

const (
	deletedWaiting = iota
	deletedRunning
	succeeded
	grouped
)

// churn lets the jobs come and go, and counts those that are gone.
func (s *stage) churn(ctx context.Context, gone *atomic.Int64) error {
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range s.Clients {
		group.Go(func() error {
			for {
				i := next.Add(1) - 1
				if i >= int64(s.Jobs) {
					return nil
				}
				if err := s.live(ctx, fmt.Sprintf("job-%d", i), int(i)%lives); err != nil {
					return err
				}
				gone.Add(1)
			}
		})
	}
	return group.Wait()
}

// live lets one job come and go.
func (s *stage) live(ctx context.Context, name string, life int) error {
	group := ""
	if life == grouped {
		group = name
		if err := s.createGroup(ctx, name, 1); err != nil {
			return err
		}
	}
	if err := s.createPod(ctx, name, group); err != nil {
		return err
	}
	if life != deletedWaiting {
		if err := s.run(ctx, name); err != nil {
			return err
		}
	}
	if life == succeeded {
		if err := s.succeed(ctx, name); err != nil {
			return err
		}
	}
	if err := s.kube.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting a pod: %w", err)
	}
	if life == grouped {
		if err := s.groups.SchedulingV1beta1().PodGroups(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("deleting a PodGroup: %w", err)
		}
	}
	return nil
}

func (s *stage) createGroup(ctx context.Context, name string, size int32) error {
	group := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: volcano.PodGroupSpec{MinMember: size}}
	if _, err := s.groups.SchedulingV1beta1().PodGroups(namespace).Create(ctx, group, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a PodGroup: %w", err)
	}
	return nil
}

// createPod creates a pod of a group, or without one.
func (s *stage) createPod(ctx context.Context, name, group string) error {
	job := name
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: worker()}
	if group != "" {
		job, pod.Annotations = group, map[string]string{model.GroupNameAnnotation: group}
	}
	pod.Labels = map[string]string{jobLabel: job}
	if _, err := s.kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a pod: %w", err)
	}
	return nil
}

// run binds a pod, as who leads would.
func (s *stage) run(ctx context.Context, name string) error {
	err := s.kube.CoreV1().Pods(namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("binding a pod: %w", err)
	}
	return nil
}

// succeed ends a pod, as its kubelet would.
func (s *stage) succeed(ctx context.Context, name string) error {
	pod, err := s.kube.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading a pod: %w", err)
	}
	pod.Status.Phase = corev1.PodSucceeded
	if _, err := s.kube.CoreV1().Pods(namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("ending a pod: %w", err)
	}
	return nil
}
