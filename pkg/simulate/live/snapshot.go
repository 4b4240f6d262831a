// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// Write writes objects in YAML, a document each, as a simulation reads them. What nothing is decided by is left out: who changed what, and of pods
// what runs in them and with which settings, among them passwords.
func Write(out io.Writer, objects []scenario.Sourced) error {
	for _, o := range objects {
		object := o.DeepCopyObject().(scenario.Object)
		strip(object)
		object.GetObjectKind().SetGroupVersionKind(scenario.KindOf(object))
		document, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("writing %s: %w", o.Source, err)
		}
		if _, err := fmt.Fprintf(out, "---\n%s", document); err != nil {
			return err
		}
	}
	return nil
}

// strip takes out of an object what nothing is decided by.
func strip(o scenario.Object) {
	o.SetManagedFields(nil)
	annotations := o.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	o.SetAnnotations(annotations)
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			containers[i] = corev1.Container{
				Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources, ResizePolicy: c.ResizePolicy, RestartPolicy: c.RestartPolicy,
			}
		}
	}
	pod.Spec.EphemeralContainers = nil
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			// What a container has been given counts while it is being resized.
			s := &statuses[i]
			statuses[i] = corev1.ContainerStatus{
				Name: s.Name, AllocatedResources: s.AllocatedResources, AllocatedResourcesStatus: s.AllocatedResourcesStatus, Resources: s.Resources,
			}
		}
	}
	pod.Status.EphemeralContainerStatuses = nil
}
