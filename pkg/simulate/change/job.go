// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Pods changes pods.
type Pods struct {
	// Which are the pods, by their names.
	Which map[types.NamespacedName]bool
	Do    func(*corev1.Pod)
}

func (p Pods) apply(c *cluster) error {
	found := 0
	for i, pod := range all[*corev1.Pod](c) {
		if p.Which[nameOf(pod)] {
			p.Do(edit[*corev1.Pod](c, i))
			found++
		}
	}
	if found < len(p.Which) {
		return fmt.Errorf("%d of %d pods are not there", len(p.Which)-found, len(p.Which))
	}
	return nil
}

// of reports whether a PodGroup, which is from a source, makes a job.
func of(job model.JobKey, from model.Source, group metav1.Object) bool {
	return job.Source == from && job.Namespace == group.GetNamespace() && job.Name == group.GetName()
}

// Minimum has the PodGroup of a job start with so many pods.
type Minimum struct {
	Of  model.JobKey
	Min int32
}

func (m Minimum) apply(c *cluster) error {
	for i, g := range all[*volcano.PodGroup](c) {
		if of(m.Of, model.FromVolcano, g) {
			edit[*volcano.PodGroup](c, i).Spec.MinMember = m.Min
			return nil
		}
	}
	for i, g := range all[*coscheduling.PodGroup](c) {
		if of(m.Of, model.FromCoscheduling, g) {
			edit[*coscheduling.PodGroup](c, i).Spec.MinMember = m.Min
			return nil
		}
	}
	return noGroup(m.Of)
}

// noGroup: nothing that makes the job has these fields.
func noGroup(job model.JobKey) error {
	return fmt.Errorf("no PodGroup of Volcano or of coscheduling makes the job %s/%s", job.Namespace, job.Name)
}

// Resubmit has the PodGroup of a job be created at a time, and be of a PriorityClass unless that is empty. It is as new: nothing has been decided about it.
type Resubmit struct {
	Of            model.JobKey
	Now           metav1.Time
	PriorityClass string
}

func (r Resubmit) apply(c *cluster) error {
	for i, g := range all[*volcano.PodGroup](c) {
		if !of(r.Of, model.FromVolcano, g) {
			continue
		}
		g = edit[*volcano.PodGroup](c, i)
		g.CreationTimestamp = r.Now
		g.Status = volcano.PodGroupStatus{Phase: volcano.PodGroupPending}
		if r.PriorityClass != "" {
			g.Spec.PriorityClassName = r.PriorityClass
		}
		return nil
	}
	for i, g := range all[*coscheduling.PodGroup](c) {
		if of(r.Of, model.FromCoscheduling, g) {
			edit[*coscheduling.PodGroup](c, i).CreationTimestamp = r.Now
			return nil
		}
	}
	return noGroup(r.Of)
}

// PriorityClass is a new one of a value.
func PriorityClass(value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("caldera-trial-%d", value)}, Value: value}
}
