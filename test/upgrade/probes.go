// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// probeLabel marks probes: pods that could be placed at once, on a node of their own, if somebody led.
const probeLabel = "upgrade.caldera.dev/probe"

// probes tell when turns go on.
type probes struct {
	kube kubernetes.Interface

	mu sync.Mutex // guards the rest
	// number is that of the last one, and bound when each got its node.
	number int
	bound  map[types.UID]time.Time
}

func newProbes(kube kubernetes.Interface) *probes {
	return &probes{kube: kube, bound: map[types.UID]time.Time{}}
}

// create makes the next probe.
func (p *probes) create(ctx context.Context) (*corev1.Pod, error) {
	p.number++
	pod := worker(fmt.Sprintf("probe-%d", p.number), "100m")
	pod.Labels = map[string]string{probeLabel: "true"}
	pod.Spec.NodeSelector = map[string]string{probeNode: "true"}
	pod.Spec.Tolerations = []corev1.Toleration{{Key: probeNode, Operator: corev1.TolerationOpExists}}
	pod, err := p.kube.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating a probe: %w", err)
	}
	return pod, nil
}

// see takes in a pod as it is now.
func (p *probes) see(pod *corev1.Pod, now time.Time) {
	if pod.Labels[probeLabel] == "" || pod.Spec.NodeName == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.bound[pod.UID]; !known {
		p.bound[pod.UID] = now
	}
}

// since returns when a probe got its node; zero if it has none.
func (p *probes) since(pod *corev1.Pod) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bound[pod.UID]
}

// remove deletes a probe at once.
func (p *probes) remove(ctx context.Context, pod *corev1.Pod) error {
	err := p.kube.CoreV1().Pods(namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if err != nil {
		return fmt.Errorf("deleting a probe: %w", err)
	}
	return nil
}
