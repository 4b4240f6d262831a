// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package placing

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
)

// started is when pods with an age of 0 minutes started.
var started = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// on reads a pod on a node.
func (w *world) on(l *golden.Line) {
	p := pod(l, l.Word(2), l.List("has"))
	p.Spec.NodeName, p.Status.Phase = l.Word(1), corev1.PodPhase(l.Text("phase", string(corev1.PodRunning)))
	if l.Has("age") {
		p.Status.StartTime = &metav1.Time{Time: started.Add(-time.Duration(l.Int("age", 0)) * time.Minute)}
	}
	w.pods, w.last = append(w.pods, p), p
}

// container reads a container of the pod before it.
func (w *world) container(l *golden.Line) {
	c, spec := container(l.Word(1), l.List("has")), &w.last.Spec
	switch l.Text("kind", "") {
	case "":
		spec.Containers = append(spec.Containers, c)
		return
	case "sidecar":
		c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	}
	spec.InitContainers = append(spec.InitContainers, c)
}

func container(name string, requests corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests}}
}
