// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history is the demo's memory and judgement: what it applied, what the API server said happened to it, and
// whether that is what should have happened. It reads no clock and does no I/O.
package history

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Workload is a gang, a Job or a Deployment, and what is expected of it.
type Workload struct {
	Name string
	// Queue is empty for pods that have nothing to do with queues.
	Queue string
	// Pods is how many pods it has in the end.
	Pods int
	// Gang: Min of its pods start together or not at all. Without it each starts on its own.
	Gang bool
	Min  int
	// Lasts: its pods run until they are deleted.
	Lasts bool
	// Impossible: it fits on no cluster of the demo and must say so.
	Impossible bool

	// selector finds the pods of a workload that is not a gang.
	selector labels.Selector
}

// owns reports whether a pod is one of the workload's.
func (w *Workload) owns(pod *corev1.Pod) bool {
	job := model.JobByMarks(pod)
	if w.Gang {
		return job.Source == model.FromVolcano && job.Name == w.Name
	}
	return job.Source == model.FromPod && w.selector.Matches(labels.Set(pod.Labels))
}

// Read finds the workloads in the objects of a manifest: its PodGroups, and the Jobs and Deployments whose pods are in
// none of these.
func Read(objects []*unstructured.Unstructured, impossible bool) ([]Workload, error) {
	var found []Workload
	members := map[string]int{} // PodGroup name -> pods
	for _, object := range objects {
		var (
			w   *Workload
			err error
		)
		switch object.GetKind() {
		case "PodGroup":
			w, err = readGroup(object)
		case "Job":
			w, err = readJob(object, members)
		case "Deployment":
			w, err = readDeployment(object)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		if w != nil {
			w.Impossible = impossible
			found = append(found, *w)
		}
	}
	for i := range found {
		if found[i].Gang {
			found[i].Pods = members[found[i].Name]
		}
	}
	return found, nil
}

func readGroup(object *unstructured.Unstructured) (*Workload, error) {
	var group volcano.PodGroup
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &group); err != nil {
		return nil, err
	}
	queue := group.Spec.Queue
	if queue == "" {
		queue = model.DefaultQueue
	}
	return &Workload{Name: group.Name, Queue: queue, Gang: true, Min: int(group.Spec.MinMember)}, nil
}

// readJob returns nil, and counts the pods, if the Job belongs to a PodGroup.
func readJob(object *unstructured.Unstructured, members map[string]int) (*Workload, error) {
	var job batchv1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job); err != nil {
		return nil, err
	}
	pods := 1
	if job.Spec.Completions != nil {
		pods = int(*job.Spec.Completions)
	}
	annotations := job.Spec.Template.Annotations
	if group := annotations[model.GroupNameAnnotation]; group != "" {
		members[group] += pods
		return nil, nil
	}
	queue := annotations[model.QueueAnnotation]
	if queue == "" {
		queue = model.DefaultQueue
	}
	selector := labels.SelectorFromSet(labels.Set{batchv1.JobNameLabel: job.Name})
	return &Workload{Name: job.Name, Queue: queue, Pods: pods, selector: selector}, nil
}

func readDeployment(object *unstructured.Unstructured) (*Workload, error) {
	var deployment appsv1.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment); err != nil {
		return nil, err
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil {
		return nil, err
	}
	pods := 1
	if deployment.Spec.Replicas != nil {
		pods = int(*deployment.Spec.Replicas)
	}
	return &Workload{Name: deployment.Name, Pods: pods, Lasts: true, selector: selector}, nil
}
