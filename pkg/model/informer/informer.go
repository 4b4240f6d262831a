// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informer feeds the model from the API server. It holds no state: each handler reads one object and calls one
// method of the model.
package informer

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// handlers builds event handlers for one kind from what to do with an object that is there and one that is gone.
func handlers[T any](put, remove func(T)) cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { put(o.(T)) },
		UpdateFunc: func(before, o any) {
			if replaced(before, o) {
				remove(before.(T))
			}
			put(o.(T))
		},
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if t, ok := o.(T); ok {
				remove(t)
			}
		},
	}
}

// replaced reports whether an update is about two objects: one was deleted and another one of its name created while
// the watch was interrupted. Informers know objects by their names and tell of the second as an update of the first.
func replaced(before, after any) bool {
	a, okA := before.(metav1.Object)
	b, okB := after.(metav1.Object)
	return okA && okB && a.GetUID() != b.GetUID()
}

// Quotas feeds the model the resource quotas. It returns what reports that all have been delivered.
func Quotas(state *model.State, factory informers.SharedInformerFactory) (cache.DoneChecker, error) {
	registration, err := factory.Core().V1().ResourceQuotas().Informer().AddEventHandler(handlers(
		func(q *corev1.ResourceQuota) { state.UpsertQuota(resourceQuota(q)) },
		func(q *corev1.ResourceQuota) { state.DeleteQuota(q.Namespace, q.Name) }))
	if err != nil {
		return nil, fmt.Errorf("watching resource quotas: %w", err)
	}
	return registration.HasSyncedChecker(), nil
}

// Core feeds the model from the scheduler's own informers all but the pods, which Owners feed. It returns what reports that all of it has been
// delivered.
func Core(state *model.State, factory informers.SharedInformerFactory) ([]cache.DoneChecker, error) {
	storage := handlers(
		func(any) { state.Raise(model.StorageChanged) },
		func(any) { state.Raise(model.StorageChanged) })
	devices := handlers(
		func(any) { state.Raise(model.DevicesChanged) },
		func(any) { state.Raise(model.DevicesChanged) })
	var synced []cache.DoneChecker
	type source struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}
	sources := []source{
		{factory.Scheduling().V1().PriorityClasses().Informer(), handlers(
			func(c *schedulingv1.PriorityClass) { state.UpsertPriorityClass(c.Name, c.Value, c.GlobalDefault) },
			func(c *schedulingv1.PriorityClass) { state.DeletePriorityClass(c.Name) })},
		{factory.Core().V1().Nodes().Informer(), handlers(
			func(n *corev1.Node) { state.UpsertNode(n) },
			func(n *corev1.Node) { state.DeleteNode(n.Name) })},
		{factory.Core().V1().Namespaces().Informer(), handlers(
			func(n *corev1.Namespace) { state.UpsertNamespace(n.Name, n.Annotations[model.QueueAnnotation]) },
			func(n *corev1.Namespace) { state.UpsertNamespace(n.Name, "") })},
		{factory.Policy().V1().PodDisruptionBudgets().Informer(), handlers(
			func(b *policyv1.PodDisruptionBudget) { state.UpsertBudget(disruptionBudget(b)) },
			func(b *policyv1.PodDisruptionBudget) { state.DeleteBudget(b.Namespace, b.Name) })},
		{factory.Core().V1().PersistentVolumes().Informer(), storage},
		{factory.Core().V1().PersistentVolumeClaims().Informer(), storage},
		{factory.Storage().V1().StorageClasses().Informer(), storage},
		{factory.Storage().V1().CSINodes().Informer(), storage},
		{factory.Storage().V1().CSIDrivers().Informer(), storage},
		{factory.Storage().V1().CSIStorageCapacities().Informer(), storage},
		{factory.Resource().V1().ResourceClaims().Informer(), handlers(
			func(c *resourcev1.ResourceClaim) { state.UpsertClaim(resourceClaim(c)) },
			func(c *resourcev1.ResourceClaim) { state.DeleteClaim(c.Namespace, c.Name, false) })},
		{factory.Resource().V1().ResourceSlices().Informer(), devices},
		{factory.Resource().V1().DeviceClasses().Informer(), devices},
	}
	for _, source := range sources {
		registration, err := source.informer.AddEventHandler(source.handler)
		if err != nil {
			return nil, fmt.Errorf("watching cluster objects: %w", err)
		}
		synced = append(synced, registration.HasSyncedChecker())
	}
	return synced, nil
}

// Finished feeds the model the pods that have finished, which the scheduler's own informer leaves out: members that
// succeeded count toward the minimum of their gang. It returns once they have been delivered. They are read at once, and told to the model once
// known is closed: which of them are members of gangs the owners know.
func Finished(ctx context.Context, state *model.State, client kubernetes.Interface, known <-chan struct{}) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fmt.Sprintf("status.phase!=%s,status.phase!=%s,status.phase!=%s", corev1.PodPending, corev1.PodRunning, corev1.PodUnknown)
		}),
		informers.WithTransform(trimFinished))
	registration, err := factory.Core().V1().Pods().Informer().AddEventHandler(handlers(
		func(p *corev1.Pod) {
			<-known
			if state.JobOf(p).Source != model.FromPod {
				state.UpsertPod(p)
			}
		},
		func(p *corev1.Pod) {
			<-known
			state.DeleteFinished(p.UID)
		}))
	if err != nil {
		return fmt.Errorf("watching finished pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitFor(ctx, "", registration.HasSyncedChecker()) {
		return fmt.Errorf("waiting for finished pods: %w", context.Cause(ctx))
	}
	return nil
}

// trimFinished keeps of a finished pod what says which job it belonged to and how it ended.
func trimFinished(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	p.ManagedFields = nil
	p.Spec = corev1.PodSpec{
		SchedulerName: p.Spec.SchedulerName, NodeName: p.Spec.NodeName, Priority: p.Spec.Priority, SchedulingGroup: p.Spec.SchedulingGroup,
	}
	p.Status = corev1.PodStatus{Phase: p.Status.Phase}
	return p, nil
}
