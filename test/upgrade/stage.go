// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
)

const (
	systemNamespace = "caldera-system"
	serviceAccount  = "caldera-scheduler"
	leaseName       = "caldera-scheduler"
	nodeCores       = 8
	// probeNode has room for nobody but probes.
	probeNode = "probe"
	// poll is how often it is looked whether something has come about.
	poll = 10 * time.Millisecond
)

// stage is a cluster, and the schedulers of both versions.
type stage struct {
	options
	versions [2]*version

	cluster *localcluster.Cluster
	kube    kubernetes.Interface
	groups  volcanoclient.Interface
	judge   *judge
	load    *load
	probes  *probes
	// kubeconfig has the rights of the schedulers' service account.
	kubeconfig string
	// leads is the scheduler that leads, and follows the one that is ready to. started counts them, and all are those that were started.
	leads, follows *scheduler
	started        int
	// replaced: the definitions and rights are those of the new version.
	replaced bool
	all      []*scheduler
	// ending waits for what runs beside the switches.
	ending sync.WaitGroup
	cancel context.CancelFunc
}

// open starts a cluster with the definitions and rights of the earlier version, which leads, and the new version beside it. Whoever calls it closes the stage, also after an
// error.
func open(ctx context.Context, o options, versions [2]*version) (*stage, error) {
	s := &stage{options: o, versions: versions}
	var err error
	s.cluster, err = localcluster.Start(ctx, localcluster.Options{
		Shapes: []string{
			fmt.Sprintf("count=%d,cpu=%d,memory=64Gi", o.Nodes, nodeCores),
			fmt.Sprintf("name=%[1]s,count=1,cpu=%[2]d,memory=64Gi,label:%[1]s=true,taint:%[1]s=true:NoSchedule", probeNode, nodeCores),
		},
		NoDefaultCRDs: true, CRDDirs: []string{versions[0].crds},
	})
	if err != nil {
		return s, err
	}
	if s.kube, err = kubernetes.NewForConfig(s.cluster.RESTConfig()); err != nil {
		return s, err
	}
	if s.groups, err = volcanoclient.NewForConfig(s.cluster.RESTConfig()); err != nil {
		return s, err
	}
	if err := s.install(ctx, versions[0]); err != nil {
		return s, err
	}
	s.kubeconfig = filepath.Join(o.logs, "kubeconfig")
	if err := s.cluster.WriteKubeconfig(ctx, systemNamespace, serviceAccount, s.kubeconfig); err != nil {
		return s, err
	}
	if err := s.prepare(ctx); err != nil {
		return s, err
	}
	if s.leads, err = s.start(ctx, versions[0]); err != nil {
		return s, err
	}
	if err := s.succeeded(ctx, ""); err != nil {
		return s, err
	}
	s.follows, err = s.start(ctx, versions[1])
	return s, err
}

// prepare makes the queues, and follows the pods.
func (s *stage) prepare(ctx context.Context) error {
	for _, name := range queues {
		q := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: volcano.QueueSpec{Weight: 1}}
		if _, err := s.groups.SchedulingV1beta1().Queues().Create(ctx, q, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating queue %s: %w", name, err)
		}
	}
	nodes, err := s.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the nodes: %w", err)
	}
	has := map[string]int64{}
	for _, n := range nodes.Items {
		has[n.Name] = n.Status.Allocatable.Cpu().MilliValue()
	}
	// Beyond the time in which the next one takes over there is what it takes to bind a gang, on a busy machine.
	s.judge = newJudge(s.Lease+takeover+5*time.Second, has)
	ctx, s.cancel = context.WithCancel(ctx)
	s.load, s.probes = newLoad(ctx, s), newProbes(s.kube)
	if err := s.watch(ctx); err != nil {
		return err
	}
	s.ending.Go(func() { s.load.run(ctx) })
	return nil
}

// watch tells the judge, the load and the probes of pods.
func (s *stage) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(s.kube, 0, informers.WithNamespace(namespace))
	see := func(p *corev1.Pod, gone bool) {
		now := time.Now()
		if gone {
			s.judge.gone(p, now)
		} else {
			s.judge.see(p, now)
			s.probes.see(p, now)
		}
		s.load.saw(p, gone)
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { see(o.(*corev1.Pod), false) },
		UpdateFunc: func(_, o any) { see(o.(*corev1.Pod), false) },
		DeleteFunc: func(o any) {
			if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			if p, ok := o.(*corev1.Pod); ok {
				see(p, true)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
}

// holder is who holds the lease; empty if nobody does.
func (s *stage) holder(ctx context.Context) string {
	lease, err := s.kube.CoordinationV1().Leases(systemNamespace).Get(ctx, leaseName, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// succeeded returns when somebody else leads than before.
func (s *stage) succeeded(ctx context.Context, before string) error {
	return s.await(ctx, "another scheduler leads", func(ctx context.Context) bool {
		now := s.holder(ctx)
		return now != "" && now != before
	})
}

// await looks until something holds. It is an error if that takes too long, or a scheduler ends by itself meanwhile.
func (s *stage) await(ctx context.Context, what string, holds func(context.Context) bool) error {
	err := wait.PollUntilContextTimeout(ctx, poll, patience, true, func(ctx context.Context) (bool, error) {
		if err := s.ended(); err != nil {
			return false, err
		}
		return holds(ctx), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}

// ended returns an error if the cluster or a scheduler that is to run has ended by itself.
func (s *stage) ended() error {
	select {
	case <-s.cluster.Exited():
		return errors.New("the cluster has ended by itself")
	default:
	}
	for _, p := range []*scheduler{s.leads, s.follows} {
		if p == nil {
			continue
		}
		select {
		case <-p.Exited():
			return fmt.Errorf("the scheduler of %s has ended by itself: %s", p.version.name, p.lastWords())
		default:
		}
	}
	return nil
}

// close ends everything.
func (s *stage) close() error {
	if s.cancel != nil {
		s.cancel()
	}
	s.ending.Wait()
	var errs []error
	for _, p := range s.all {
		_ = p.Thaw() // One that stands still cannot end; one that has ended cannot go on.
		_, err := p.Stop()
		errs = append(errs, err)
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	return errors.Join(errs...)
}
