// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coredefaults "k8s.io/kubernetes/pkg/apis/core/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// podsOfNode is how many pods a kubelet takes by default (maxPods).
const podsOfNode = "110"

// Complete fills in what the objects leave open, as admission, controllers and kubelets would, and adds what every
// cluster has: the queues root and default, and the system's PriorityClasses. Objects without a creation time were
// created one second apart in the order given, the last one before now. It reports all objects that cannot be.
func Complete(objects []Sourced, now time.Time) ([]Object, error) {
	errs := []error{place(objects)}
	objects = append(missing(objects), objects...)
	classes := classesOf(objects)
	completed := make([]Object, len(objects))
	for i, o := range objects {
		if o.GetCreationTimestamp().Time.IsZero() {
			o.SetCreationTimestamp(metav1.NewTime(now.Add(-time.Duration(len(objects)-i) * time.Second).Truncate(time.Second)))
		}
		if err := complete(o.Object, classes); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", o.Source, err))
		}
		completed[i] = o.Object
	}
	return completed, errors.Join(errs...)
}

// place gives each object its namespace, and complains about objects without a name and about two of one name.
func place(objects []Sourced) error {
	type identity struct{ kind, namespace, name string }
	seen := map[identity]string{}
	var errs []error
	for _, o := range objects {
		k := kindOfObject(o.Object)
		switch {
		case !k.namespaced:
			o.SetNamespace("")
		case o.GetNamespace() == "":
			o.SetNamespace(metav1.NamespaceDefault)
		}
		if o.GetName() == "" {
			errs = append(errs, fmt.Errorf("%s: metadata.name of the %s is empty: name it", o.Source, k.name()))
			continue
		}
		id := identity{fmt.Sprintf("%T", o.Object), o.GetNamespace(), o.GetName()}
		if other, ok := seen[id]; ok {
			errs = append(errs, fmt.Errorf("%s: %s is there already, from %s: rename or remove one", o.Source, describe(o.Object), other))
		}
		seen[id] = o.Source
	}
	return errors.Join(errs...)
}

// describe names an object for a message.
func describe(o Object) string {
	name := o.GetName()
	if ns := o.GetNamespace(); ns != "" {
		name = ns + "/" + name
	}
	return kindOfObject(o).name() + " " + name
}

// missing returns the objects that every cluster has and these lack.
func missing(objects []Sourced) []Sourced {
	have := map[string]bool{}
	for _, o := range objects {
		have[describe(o.Object)] = true
	}
	var added []Sourced
	add := func(o Object) {
		if !have[describe(o)] {
			added = append(added, Sourced{Object: o, Source: "built in"})
		}
	}
	for _, class := range systemClasses() {
		add(class)
	}
	add(&volcano.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: model.RootQueue},
		Spec:       volcano.QueueSpec{Weight: 1, Reclaimable: new(false)},
	})
	add(&volcano.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: model.DefaultQueue},
		Spec:       volcano.QueueSpec{Weight: 1, Reclaimable: new(true), Parent: model.RootQueue},
	})
	return added
}

// complete fills in one object.
func complete(o Object, classes priorities) error {
	switch o := o.(type) {
	case *corev1.Node:
		completeNode(o)
	case *corev1.Pod:
		return completePod(o, classes)
	case *volcano.Queue:
		if o.Spec.Weight == 0 {
			o.Spec.Weight = 1
		}
		if o.Status.State == "" {
			o.Status.State = volcano.QueueStateOpen
		}
	case *volcano.PodGroup:
		if o.Spec.Queue == "" {
			o.Spec.Queue = model.DefaultQueue
		}
		if o.Status.Phase == "" {
			o.Status.Phase = volcano.PodGroupPending
		}
	}
	return nil
}

// completeNode adds what a kubelet reports by itself.
func completeNode(n *corev1.Node) {
	if _, ok := n.Labels[corev1.LabelHostname]; !ok {
		metav1.SetMetaDataLabel(&n.ObjectMeta, corev1.LabelHostname, n.Name)
	}
	coredefaults.SetObjectDefaults_Node(n)
	if _, ok := n.Status.Allocatable[corev1.ResourcePods]; !ok {
		if n.Status.Allocatable == nil {
			n.Status.Allocatable = corev1.ResourceList{}
		}
		n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse(podsOfNode)
	}
}

// completePod adds what the API server and admission fill in, and what a kubelet says of a pod that runs.
func completePod(p *corev1.Pod, classes priorities) error {
	if p.Status.Phase == "" {
		p.Status.Phase = corev1.PodPending
	}
	if p.Status.Phase == corev1.PodRunning && p.Spec.NodeName == "" {
		return fmt.Errorf("status.phase of Pod %s/%s is Running but spec.nodeName is empty: name its node, or leave the phase out",
			p.Namespace, p.Name)
	}
	if len(p.Spec.Containers) == 0 {
		return fmt.Errorf("spec.containers of Pod %s/%s is empty: a pod has at least one container", p.Namespace, p.Name)
	}
	if err := classes.apply(p); err != nil {
		return err
	}
	coredefaults.SetObjectDefaults_Pod(p)
	if p.Status.Phase == corev1.PodRunning {
		Started(p, p.CreationTimestamp)
	}
	return nil
}

// Started gives a pod the status of one whose containers run since a time. Conditions that are there already stay.
func Started(p *corev1.Pod, since metav1.Time) {
	p.Status.Phase = corev1.PodRunning
	if p.Status.StartTime == nil {
		p.Status.StartTime = &since
	}
	have := map[corev1.PodConditionType]bool{}
	for _, c := range p.Status.Conditions {
		have[c.Type] = true
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		if !have[kind] {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: since})
		}
	}
}

// Again is a pod as its controller creates it again after it is gone: of the same name and spec, and without a node.
func Again(gone *corev1.Pod, now metav1.Time) *corev1.Pod {
	p := gone.DeepCopy()
	p.ObjectMeta = metav1.ObjectMeta{
		Name: p.Name, GenerateName: p.GenerateName, Namespace: p.Namespace, CreationTimestamp: now,
		Labels: p.Labels, Annotations: p.Annotations, OwnerReferences: p.OwnerReferences,
	}
	p.Spec.NodeName = ""
	p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	return p
}
