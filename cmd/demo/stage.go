// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/caldera-scheduler/caldera/internal/demo"
	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
)

// stage is the cluster and the scheduler.
type stage struct {
	cluster   *localcluster.Cluster
	scheduler *schedulerprocess.Process
	// dir holds the scheduler's configuration and log.
	dir string
	// client and mapper apply objects.
	client dynamic.Interface
	mapper meta.RESTMapper
}

var _ demo.Stage = &stage{}

// build starts the cluster, then the scheduler. Whatever it started is in the stage, also if it fails.
func (s *stage) build(ctx context.Context, o options, p *demo.Progress) (err error) {
	binary, err := beside("localcluster")
	if err != nil {
		return err
	}
	if _, err := os.Stat(binary); err != nil || os.Getenv(localcluster.BinaryVariable) != "" {
		binary = "" // the package finds or builds it
	}
	if o.scheduler == "" {
		if o.scheduler, err = beside("kube-scheduler"); err != nil {
			return err
		}
	}
	if _, err := os.Stat(o.scheduler); err != nil {
		return fmt.Errorf("looking for the scheduler: %w (run make build, or name it with --scheduler)", err)
	}
	if s.dir, err = os.MkdirTemp("", "caldera-demo-"); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	p.Say("starting etcd, kube-apiserver, controllers and %d simulated nodes with %d GPUs each", demo.Nodes, demo.GPUsPerNode)
	s.cluster, err = localcluster.Start(ctx, localcluster.Options{
		Binary: binary,
		Nodes:  demo.Nodes,
		Shapes: []string{demo.Shape()},

		Progress: p,
	})
	if err != nil {
		return err
	}
	p.Say("Kubernetes %s is ready; starting %s with manifests/config/scheduler-config.yaml",
		s.cluster.Version, filepath.Base(o.scheduler))
	if err := s.startScheduler(ctx, o.scheduler); err != nil {
		return err
	}
	p.Say("the scheduler is ready")
	return s.connect()
}

// connect builds what applies objects.
func (s *stage) connect() (err error) {
	if s.client, err = dynamic.NewForConfig(s.RESTConfig()); err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	finder, err := discovery.NewDiscoveryClientForConfig(s.RESTConfig())
	if err != nil {
		return fmt.Errorf("building a discovery client: %w", err)
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(finder))
	return nil
}

// RESTConfig implements demo.Stage.
func (s *stage) RESTConfig() *rest.Config { return s.cluster.RESTConfig() }

// Apply implements demo.Stage.
func (s *stage) Apply(ctx context.Context, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	_, err = s.client.Resource(mapping.Resource).Namespace(metav1.NamespaceDefault).
		Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "demo"})
	return err
}

// beside returns the path of another program in the directory of this one.
func beside(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding this program: %w", err)
	}
	return filepath.Join(filepath.Dir(self), name), nil
}

// startScheduler returns when the scheduler is active: it then has created the default queue.
func (s *stage) startScheduler(ctx context.Context, binary string) error {
	config, err := manifests.All.ReadFile("config/scheduler-config.yaml")
	if err != nil {
		return fmt.Errorf("reading the scheduler's configuration: %w", err)
	}
	views, err := schedulerprocess.InstallViews(ctx, s.cluster)
	if err != nil {
		return fmt.Errorf("installing the API of views: %w", err)
	}
	s.scheduler, err = schedulerprocess.Start(schedulerprocess.Options{
		Binary: binary, Kubeconfig: s.cluster.Kubeconfig, Config: config, Args: append(views, "--v=3"), Dir: s.dir,
	})
	if err != nil {
		return err
	}
	return demo.Await(ctx, s)
}

// Ended implements demo.Stage.
func (s *stage) Ended() error {
	select {
	case <-s.cluster.Exited():
		return errors.New("the cluster has stopped by itself")
	case <-s.scheduler.Exited():
		return fmt.Errorf("the scheduler has stopped by itself:\n%s", tail(s.scheduler.LogFile))
	default:
		return nil
	}
}

// tail returns the last lines of a log.
func tail(path string) string {
	const last = 5
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-last):], "\n")
}

// strike stops everything. The scheduler's log is left behind if it may be needed.
func (s *stage) strike(keepLog bool) error {
	var errs []error
	if s.scheduler != nil {
		if _, err := s.scheduler.Stop(); err != nil {
			errs = append(errs, err)
		}
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	switch {
	case s.dir == "":
	case keepLog && s.scheduler != nil:
		fmt.Fprintln(os.Stderr, "The scheduler's log is", s.scheduler.LogFile)
	default:
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
