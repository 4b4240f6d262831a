// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubelets simulates a kubelet for every node: bound pods run, end and go away, nodes hold a lease.
//
// The behaviour is KWOK's (controllers and stages); what is here is its wiring: two shared informers feed all of
// KWOK's controllers, where KWOK's own wiring lists the pods of every node when it starts.
package kubelets

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/informer"
)

const (
	// leaseDuration is long because nothing here acts on an expired lease: 5,000 nodes then cost 17 writes a second.
	leaseDuration = 10 * time.Minute
	leaseRenewal  = leaseDuration / 2
	// leaseQPS spreads the first leases of many nodes over time, so that they do not compete with a test's own requests.
	leaseQPS = 50

	// podCIDR is where pod addresses come from; all nodes share it.
	podCIDR = "10.64.0.0/10"

	holder      = "localcluster"
	parallelism = 16 // requests in flight for pods; nodes and leases use a quarter
)

// Kubelets runs the simulation.
type Kubelets struct {
	Config *rest.Config
	Log    io.Writer
}

// Run simulates until ctx ends. It returns an error only if it cannot start.
func (k Kubelets) Run(ctx context.Context) error {
	ctx = log.NewContext(ctx, log.NewLogger(k.Log, slog.LevelWarn))
	client, err := kubernetes.NewForConfig(k.Config)
	if err != nil {
		return fmt.Errorf("building client: %w", err)
	}
	leaseConfig := rest.CopyConfig(k.Config)
	leaseConfig.QPS, leaseConfig.Burst = leaseQPS, leaseQPS
	leaseClient, err := kubernetes.NewForConfig(leaseConfig)
	if err != nil {
		return fmt.Errorf("building client: %w", err)
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "localcluster-kubelets"})

	f := newFeed(ctx, client, recorder)
	leases, leaseFactory, err := newLeases(leaseClient, f)
	if err != nil {
		return fmt.Errorf("configuring node leases: %w", err)
	}
	nodes, err := newNodes(client, recorder, leases)
	if err != nil {
		return fmt.Errorf("configuring nodes: %w", err)
	}
	pods, err := newPods(client, f, recorder)
	if err != nil {
		return fmt.Errorf("configuring pods: %w", err)
	}
	leaseFactory.Start(ctx.Done())
	leaseFactory.WaitForCacheSync(ctx.Done())
	for _, start := range []func() error{
		func() error { return leases.Start(ctx) },
		func() error { return nodes.Start(ctx, f.nodeEvents) },
		func() error { return pods.Start(ctx, f.podEvents) },
		func() error { return f.start() },
	} {
		if err := start(); err != nil {
			return fmt.Errorf("starting kubelets: %w", err)
		}
	}
	<-ctx.Done()
	f.wait()
	leaseFactory.Shutdown()
	return nil
}

func newPods(client kubernetes.Interface, f *feed, recorder record.EventRecorder) (*controllers.PodController, error) {
	stages, err := podStages()
	if err != nil {
		return nil, err
	}
	return controllers.NewPodController(controllers.PodControllerConfig{
		Clock:                clock.RealClock{},
		TypedClient:          identified{client, f.pods.Core().V1().Pods().Lister()},
		NodeCacheGetter:      f,
		NodeGetFunc:          f.nodeInfo,
		CIDR:                 podCIDR,
		Lifecycle:            stages,
		PlayStageParallelism: parallelism,
		Recorder:             recorder,
	})
}

func newNodes(client kubernetes.Interface, recorder record.EventRecorder, leases *controllers.NodeLeaseController) (*controllers.NodeController, error) {
	stages, err := nodeStages()
	if err != nil {
		return nil, err
	}
	return controllers.NewNodeController(controllers.NodeControllerConfig{
		Clock:                clock.RealClock{},
		TypedClient:          client,
		Lifecycle:            stages,
		PlayStageParallelism: parallelism / 4,
		Recorder:             recorder,
		OnNodeManagedFunc:    leases.TryHold,
		OnNodeUnmanagedFunc:  leases.ReleaseHold,
	})
}

// newLeases also returns the informers the controller reads, to be started by the caller.
func newLeases(client kubernetes.Interface, nodes informer.Getter[*corev1.Node]) (*controllers.NodeLeaseController, informers.SharedInformerFactory, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(corev1.NamespaceNodeLease), informers.WithTransform(stripManagedFields))
	held := factory.Coordination().V1().Leases()
	held.Informer()
	leases, err := controllers.NewNodeLeaseController(controllers.NodeLeaseControllerConfig{
		Clock:                clock.RealClock{},
		TypedClient:          client,
		HolderIdentity:       holder,
		LeaseDurationSeconds: uint(leaseDuration / time.Second),
		LeaseParallelism:     parallelism / 4,
		RenewInterval:        leaseRenewal,
		RenewIntervalJitter:  0.2,
		GetLease: func(name string) (*coordinationv1.Lease, bool) {
			lease, err := held.Lister().Leases(corev1.NamespaceNodeLease).Get(name)
			if err != nil {
				return nil, false // a lister fails only when there is no such lease
			}
			return lease.DeepCopy(), true
		},
		MutateLeaseFunc: func(lease *coordinationv1.Lease) error {
			if node, ok := nodes.Get(lease.Name); ok && len(lease.OwnerReferences) == 0 {
				lease.OwnerReferences = []metav1.OwnerReference{
					*metav1.NewControllerRef(node, corev1.SchemeGroupVersion.WithKind("Node")),
				}
			}
			return nil
		},
	})
	return leases, factory, err
}

func boundPods(client kubernetes.Interface) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(stripManagedFields),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		}))
}

func stripManagedFields(obj any) (any, error) {
	if accessor, ok := obj.(metav1.Object); ok {
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}
