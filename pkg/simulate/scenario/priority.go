// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingdefaults "k8s.io/kubernetes/pkg/apis/scheduling/v1"
)

// priorities are the PriorityClasses as admission uses them.
type priorities struct {
	classes map[string]*schedulingv1.PriorityClass
	// global is the class of pods that name none; nil: their priority is 0.
	global *schedulingv1.PriorityClass
}

// systemClasses are the PriorityClasses that an API server creates.
func systemClasses() []*schedulingv1.PriorityClass { return schedulingdefaults.SystemPriorityClasses() }

// classesOf collects the PriorityClasses. Of several global defaults admission takes the lowest, and so does this.
func classesOf(objects []Sourced) priorities {
	p := priorities{classes: map[string]*schedulingv1.PriorityClass{}}
	for _, o := range objects {
		class, ok := o.Object.(*schedulingv1.PriorityClass)
		if !ok {
			continue
		}
		p.classes[class.Name] = class
		if class.GlobalDefault && (p.global == nil || class.Value < p.global.Value) {
			p.global = class
		}
	}
	return p
}

// apply resolves a pod's priority, as the admission plugin Priority does. A priority that is written down stays: it was
// resolved when the pod was created.
func (p priorities) apply(pod *corev1.Pod) error {
	class := p.global
	if name := pod.Spec.PriorityClassName; name != "" {
		if class = p.classes[name]; class == nil && pod.Spec.Priority == nil {
			return fmt.Errorf("spec.priorityClassName of Pod %s/%s is %q and there is no such PriorityClass: add it, or write spec.priority",
				pod.Namespace, pod.Name, name)
		}
	}
	if class == nil {
		if pod.Spec.Priority == nil {
			pod.Spec.Priority = new(int32(0))
		}
		return nil
	}
	if pod.Spec.Priority == nil {
		pod.Spec.PriorityClassName = class.Name
		pod.Spec.Priority = new(class.Value)
	}
	if pod.Spec.PreemptionPolicy == nil && pod.Spec.PriorityClassName == class.Name {
		pod.Spec.PreemptionPolicy = class.PreemptionPolicy
	}
	return nil
}
