// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelets

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/utils/informer"
)

// byNode indexes bound pods by spec.nodeName.
const byNode = "node"

// feed turns informer notifications into KWOK's events. It passes on only changes a kubelet would act on: KWOK restarts
// a stage's delay at every event, so an unrelated label change would prolong a run.
type feed struct {
	ctx        context.Context
	nodes      informers.SharedInformerFactory
	pods       informers.SharedInformerFactory
	nodeLister corelisters.NodeLister
	podIndex   cache.Indexer
	recorder   record.EventRecorder

	nodeEvents chan informer.Event[*corev1.Node]
	podEvents  chan informer.Event[*corev1.Pod]
}

func newFeed(ctx context.Context, client kubernetes.Interface, recorder record.EventRecorder) *feed {
	f := &feed{
		ctx:        ctx,
		nodes:      informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(stripManagedFields)),
		pods:       boundPods(client),
		recorder:   recorder,
		nodeEvents: make(chan informer.Event[*corev1.Node]),
		podEvents:  make(chan informer.Event[*corev1.Pod]),
	}
	f.nodeLister = f.nodes.Core().V1().Nodes().Lister()
	f.podIndex = f.pods.Core().V1().Pods().Informer().GetIndexer()
	return f
}

// start delivers existing nodes and then existing pods; it returns when both are known.
func (f *feed) start() error {
	podInformer := f.pods.Core().V1().Pods().Informer()
	_, nodeErr := f.nodes.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { f.nodeAdded(obj.(*corev1.Node)) },
		UpdateFunc: func(_, obj any) {
			f.sendNode(informer.Modified, obj.(*corev1.Node))
		},
		DeleteFunc: func(obj any) {
			if node, ok := deleted(obj).(*corev1.Node); ok {
				f.sendNode(informer.Deleted, node)
			}
		},
	})
	_, podErr := podInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { f.podAdded(obj.(*corev1.Pod)) },
		UpdateFunc: func(old, obj any) { f.podUpdated(old.(*corev1.Pod), obj.(*corev1.Pod)) },
		DeleteFunc: func(obj any) {
			if pod, ok := deleted(obj).(*corev1.Pod); ok {
				f.sendPod(informer.Deleted, pod)
			}
		},
	})
	indexErr := podInformer.AddIndexers(cache.Indexers{byNode: func(obj any) ([]string, error) {
		return []string{obj.(*corev1.Pod).Spec.NodeName}, nil
	}})
	if err := errors.Join(nodeErr, podErr, indexErr); err != nil {
		return err
	}
	for _, factory := range []informers.SharedInformerFactory{f.nodes, f.pods} {
		factory.Start(f.ctx.Done())
		factory.WaitForCacheSync(f.ctx.Done())
	}
	return nil
}

// wait returns when the informers have stopped, after ctx has ended.
func (f *feed) wait() {
	f.nodes.Shutdown()
	f.pods.Shutdown()
}

func deleted(obj any) any {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return obj
}

// nodeAdded also delivers the pods that were bound to the node before it was known.
func (f *feed) nodeAdded(node *corev1.Node) {
	f.sendNode(informer.Added, node)
	pods, err := f.podIndex.ByIndex(byNode, node.Name)
	if err != nil {
		return // the index does not exist before start has added it, and then there are no pods either
	}
	for _, pod := range pods {
		f.sendPod(informer.Sync, pod.(*corev1.Pod))
	}
}

func (f *feed) podAdded(pod *corev1.Pod) {
	f.checkAnnotations(pod)
	f.sendPod(informer.Added, pod)
}

func (f *feed) podUpdated(old, pod *corev1.Pod) {
	if visible(old) != visible(pod) {
		f.checkAnnotations(pod)
		f.sendPod(informer.Modified, pod)
	}
}

// view is what the stages decide by.
type view struct {
	uid         types.UID
	node        string
	phase       corev1.PodPhase
	ready       corev1.ConditionStatus
	deleted     bool
	finalizers  int
	annotations [3]string
}

func visible(pod *corev1.Pod) view {
	v := view{
		uid: pod.UID, node: pod.Spec.NodeName, phase: pod.Status.Phase,
		deleted: pod.DeletionTimestamp != nil, finalizers: len(pod.Finalizers),
		annotations: [3]string{pod.Annotations[RunFor], pod.Annotations[Fail], pod.Annotations[TerminateAfter]},
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			v.ready = c.Status
		}
	}
	return v
}

// checkAnnotations tells the user about a duration the stages cannot read; they use their default then.
func (f *feed) checkAnnotations(pod *corev1.Pod) {
	for _, name := range []string{RunFor, TerminateAfter} {
		value, ok := pod.Annotations[name]
		if !ok {
			continue
		}
		if d, err := time.ParseDuration(value); err != nil || d < 0 {
			f.recorder.Eventf(pod, corev1.EventTypeWarning, "BadAnnotation",
				"annotation %s=%q is not a duration; write for example 5s or 1m30s", name, value)
		}
	}
}

func (f *feed) sendNode(kind informer.EventType, node *corev1.Node) {
	select {
	case f.nodeEvents <- informer.Event[*corev1.Node]{Type: kind, Object: node.DeepCopy()}:
	case <-f.ctx.Done():
	}
}

func (f *feed) sendPod(kind informer.EventType, pod *corev1.Pod) {
	select {
	case f.podEvents <- informer.Event[*corev1.Pod]{Type: kind, Object: pod}:
	case <-f.ctx.Done():
	}
}

// nodeInfo says whether a node exists; pods of other nodes are left alone, as no kubelet would see them.
func (f *feed) nodeInfo(name string) (*controllers.NodeInfo, bool) {
	_, ok := f.Get(name)
	return &controllers.NodeInfo{}, ok
}

// Get, GetWithNamespace and List make the feed KWOK's node cache.
func (f *feed) Get(name string) (*corev1.Node, bool) {
	node, err := f.nodeLister.Get(name)
	return node, err == nil
}

// GetWithNamespace ignores the namespace: nodes have none.
func (f *feed) GetWithNamespace(name, _ string) (*corev1.Node, bool) { return f.Get(name) }

// List returns all nodes.
func (f *feed) List() []*corev1.Node {
	nodes, err := f.nodeLister.List(labels.Everything())
	if err != nil {
		return nil // a lister of a synced informer does not fail
	}
	return nodes
}
