// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informer feeds the model from the API server. It holds no state: each handler reads one object and calls one
// method of the model.
package informer

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	coschedulingclient "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned"
	coschedulinginformers "sigs.k8s.io/scheduler-plugins/pkg/generated/informers/externalversions"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"
	volcanoinformers "volcano.sh/apis/pkg/client/informers/externalversions"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// lookAgain is how often the API server is asked for group APIs that it did not serve at the last look.
const lookAgain = 15 * time.Second

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

// Core feeds the model from the scheduler's own informers. It returns what reports that all of it has been delivered.
func Core(state *model.State, factory informers.SharedInformerFactory) ([]cache.InformerSynced, error) {
	storage := handlers(
		func(any) { state.Raise(model.StorageChanged) },
		func(any) { state.Raise(model.StorageChanged) })
	devices := handlers(
		func(any) { state.Raise(model.DevicesChanged) },
		func(any) { state.Raise(model.DevicesChanged) })
	var synced []cache.InformerSynced
	for _, source := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{factory.Scheduling().V1().PriorityClasses().Informer(), handlers(
			func(c *schedulingv1.PriorityClass) { state.UpsertPriorityClass(c.Name, c.Value, c.GlobalDefault) },
			func(c *schedulingv1.PriorityClass) { state.DeletePriorityClass(c.Name) })},
		{factory.Core().V1().Nodes().Informer(), handlers(
			func(n *corev1.Node) { state.UpsertNode(n) },
			func(n *corev1.Node) { state.DeleteNode(n.Name) })},
		{factory.Core().V1().Pods().Informer(), handlers(
			func(p *corev1.Pod) { state.UpsertPod(p) },
			func(p *corev1.Pod) { state.LeavePod(p.UID) })},
		{factory.Core().V1().PersistentVolumes().Informer(), storage},
		{factory.Core().V1().PersistentVolumeClaims().Informer(), storage},
		{factory.Storage().V1().StorageClasses().Informer(), storage},
		{factory.Storage().V1().CSINodes().Informer(), storage},
		{factory.Storage().V1().CSIDrivers().Informer(), storage},
		{factory.Storage().V1().CSIStorageCapacities().Informer(), storage},
		{factory.Resource().V1().ResourceClaims().Informer(), devices},
		{factory.Resource().V1().ResourceSlices().Informer(), devices},
		{factory.Resource().V1().DeviceClasses().Informer(), devices},
	} {
		registration, err := source.informer.AddEventHandler(source.handler)
		if err != nil {
			return nil, fmt.Errorf("watching cluster objects: %w", err)
		}
		synced = append(synced, registration.HasSynced)
	}
	return synced, nil
}

// Finished feeds the model the pods that have finished, which the scheduler's own informer leaves out: members that
// succeeded count toward the minimum of their gang. It returns once they have been delivered.
func Finished(ctx context.Context, state *model.State, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fmt.Sprintf("status.phase!=%s,status.phase!=%s,status.phase!=%s", corev1.PodPending, corev1.PodRunning, corev1.PodUnknown)
		}),
		informers.WithTransform(trimFinished))
	registration, err := factory.Core().V1().Pods().Informer().AddEventHandler(handlers(
		func(p *corev1.Pod) {
			if model.JobOf(p).Source != model.FromPod {
				state.UpsertPod(p)
			}
		},
		func(p *corev1.Pod) { state.DeletePod(p.UID) }))
	if err != nil {
		return fmt.Errorf("watching finished pods: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
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
	p.Spec = corev1.PodSpec{SchedulerName: p.Spec.SchedulerName, NodeName: p.Spec.NodeName, Priority: p.Spec.Priority}
	p.Status = corev1.PodStatus{Phase: p.Status.Phase}
	return p, nil
}

// Groups feeds the model from the group APIs that the API server serves: Volcano's PodGroups and Queues, and the
// PodGroups of scheduler-plugins. It returns once those present have been delivered, and goes on looking for the
// others until the context ends.
func Groups(ctx context.Context, state *model.State, config *rest.Config) error {
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("building a discovery client: %w", err)
	}
	volcanoAPI, err := volcanoclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building a client for %s: %w", volcano.SchemeGroupVersion, err)
	}
	coschedulingAPI, err := coschedulingclient.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building a client for %s: %w", coscheduling.SchemeGroupVersion, err)
	}
	sources := map[string]func() error{
		volcano.SchemeGroupVersion.String():      func() error { return watchVolcano(ctx, state, volcanoAPI) },
		coscheduling.SchemeGroupVersion.String(): func() error { return watchCoscheduling(ctx, state, coschedulingAPI) },
	}
	look := func() error {
		for version, watch := range sources {
			// A group version that is not served is not an error: its objects do not exist yet.
			if _, err := finder.ServerResourcesForGroupVersion(version); err != nil {
				klog.FromContext(ctx).V(2).Info("Group API is not served yet", "groupVersion", version, "reason", err.Error())
				continue
			}
			if err := watch(); err != nil {
				return err
			}
			klog.FromContext(ctx).V(2).Info("Watching group API", "groupVersion", version)
			delete(sources, version)
		}
		return nil
	}
	if err := look(); err != nil {
		return err
	}
	go func() {
		ticker := time.NewTicker(lookAgain)
		defer ticker.Stop()
		for len(sources) > 0 {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if err := look(); err != nil {
					klog.FromContext(ctx).Error(err, "Looking for group APIs")
				}
			}
		}
	}()
	return nil
}

func watchVolcano(ctx context.Context, state *model.State, client volcanoclient.Interface) error {
	factory := volcanoinformers.NewSharedInformerFactory(client, 0)
	groups, err := factory.Scheduling().V1beta1().PodGroups().Informer().AddEventHandler(handlers(
		func(g *volcano.PodGroup) { state.UpsertGroup(volcanoKey(g), volcanoGroup(g)) },
		func(g *volcano.PodGroup) { state.DeleteGroup(volcanoKey(g)) }))
	if err != nil {
		return fmt.Errorf("watching PodGroups: %w", err)
	}
	queues, err := factory.Scheduling().V1beta1().Queues().Informer().AddEventHandler(handlers(
		func(q *volcano.Queue) { state.UpsertQueue(volcanoQueue(q)) },
		func(q *volcano.Queue) { state.DeleteQueue(q.Name) }))
	if err != nil {
		return fmt.Errorf("watching Queues: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), groups.HasSynced, queues.HasSynced) {
		return fmt.Errorf("waiting for PodGroups and Queues: %w", context.Cause(ctx))
	}
	return nil
}

func watchCoscheduling(ctx context.Context, state *model.State, client coschedulingclient.Interface) error {
	factory := coschedulinginformers.NewSharedInformerFactory(client, 0)
	groups, err := factory.Scheduling().V1alpha1().PodGroups().Informer().AddEventHandler(handlers(
		func(g *coscheduling.PodGroup) { state.UpsertGroup(coschedulingKey(g), coschedulingGroup(g)) },
		func(g *coscheduling.PodGroup) { state.DeleteGroup(coschedulingKey(g)) }))
	if err != nil {
		return fmt.Errorf("watching scheduling.x-k8s.io PodGroups: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), groups.HasSynced) {
		return fmt.Errorf("waiting for scheduling.x-k8s.io PodGroups: %w", context.Cause(ctx))
	}
	return nil
}

func keyOf(source model.Source, o metav1.Object) model.JobKey {
	return model.JobKey{Source: source, Namespace: o.GetNamespace(), Name: o.GetName()}
}

func volcanoKey(g *volcano.PodGroup) model.JobKey { return keyOf(model.FromVolcano, g) }

func coschedulingKey(g *coscheduling.PodGroup) model.JobKey { return keyOf(model.FromCoscheduling, g) }
