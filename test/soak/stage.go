// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

const (
	nodeCores, nodeGi = 8, 32
	// schedulerTimeout is how long the scheduler may take to become active; it takes two seconds.
	schedulerTimeout = time.Minute
)

// stage is the control plane and the scheduler, each a process of its own.
type stage struct {
	cluster   *localcluster.Cluster
	scheduler *schedulerprocess.Process
	asker     *asker
	kube      kubernetes.Interface
	groups    volcanoclient.Interface
	// temporary is a directory to remove.
	temporary string
}

// build starts the cluster, then the scheduler. Whatever it started is in the stage, also if it fails.
func (s *stage) build(ctx context.Context, o options, c conf, out io.Writer) (err error) {
	if o.logs == "" {
		if o.logs, err = os.MkdirTemp("", "caldera-soak-"); err != nil {
			return fmt.Errorf("making a directory: %w", err)
		}
		s.temporary = o.logs
	} else if err := os.MkdirAll(o.logs, 0o755); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	if o.binary == "" {
		if o.binary, err = schedulerprocess.Build(ctx, o.logs); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "starting a control plane with %d nodes of %d cores and %dGi\n", o.nodes, nodeCores, nodeGi)
	s.cluster, err = localcluster.Start(ctx, localcluster.Options{
		Nodes: o.nodes, Shapes: []string{fmt.Sprintf("cpu=%d,memory=%dGi", nodeCores, nodeGi)},
	})
	if err != nil {
		return err
	}
	if s.kube, err = kubernetes.NewForConfig(s.cluster.RESTConfig()); err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	if s.groups, err = volcanoclient.NewForConfig(s.cluster.RESTConfig()); err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	return s.startScheduler(ctx, o, c)
}

// startScheduler returns when the scheduler is active: it then has created the default queue.
func (s *stage) startScheduler(ctx context.Context, o options, c conf) error {
	port, err := schedulerprocess.FreePort()
	if err != nil {
		return err
	}
	views, err := schedulerprocess.InstallViews(ctx, s.cluster)
	if err != nil {
		return err
	}
	s.scheduler, err = schedulerprocess.Start(schedulerprocess.Options{
		Binary: o.binary, Kubeconfig: s.cluster.Kubeconfig, Config: c.scheduler, Dir: o.logs, Args: append(views,
			"-v=3", fmt.Sprintf("--secure-port=%d", port), "--bind-address=127.0.0.1",
			"--authentication-kubeconfig="+s.cluster.Kubeconfig, "--authorization-kubeconfig="+s.cluster.Kubeconfig,
		),
	})
	if err != nil {
		return err
	}
	if s.asker, err = newAsker(port, s.cluster.RESTConfig()); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, schedulerTimeout, true, func(ctx context.Context) (bool, error) {
		if err := s.ended(); err != nil {
			return false, err
		}
		_, err := s.groups.SchedulingV1beta1().Queues().Get(ctx, model.DefaultQueue, metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the scheduler to create the queue %q (see %s): %w", model.DefaultQueue, s.scheduler.LogFile, err)
	}
	return nil
}

// ended returns an error if the cluster or the scheduler has stopped by itself.
func (s *stage) ended() error {
	select {
	case <-s.cluster.Exited():
		return errors.New("the cluster has stopped by itself")
	case <-s.scheduler.Exited():
		return fmt.Errorf("the scheduler has stopped by itself; see %s", s.scheduler.LogFile)
	default:
		return nil
	}
}

// stopScheduler ends the scheduler and returns what it consumed.
func (s *stage) stopScheduler() (schedulerprocess.Usage, error) {
	p := s.scheduler
	s.scheduler = nil
	return p.Stop()
}

// strike stops everything.
func (s *stage) strike() error {
	var errs []error
	if s.scheduler != nil {
		_, err := s.stopScheduler()
		errs = append(errs, err)
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	if s.temporary != "" {
		errs = append(errs, os.RemoveAll(s.temporary))
	}
	return errors.Join(errs...)
}
