// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"golang.org/x/sync/errgroup"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/caldera-scheduler/caldera/cmd/localcluster/controlplane"
	"github.com/caldera-scheduler/caldera/cmd/localcluster/datadir"
	"github.com/caldera-scheduler/caldera/cmd/localcluster/install"
	"github.com/caldera-scheduler/caldera/cmd/localcluster/kubelets"
	"github.com/caldera-scheduler/caldera/cmd/localcluster/pki"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
)

// startTimeout bounds the time to readiness on a machine that is busy with other things.
const startTimeout = 2 * time.Minute

// cluster is one running control plane.
type cluster struct {
	plan     plan
	dir      *datadir.Dir
	log      io.Writer
	progress io.Writer

	files pki.Files
}

// component is a part that runs until its context ends.
type component struct {
	stop context.CancelFunc
	done chan error
}

// launch runs a component; if it ends by itself, fail is called with the reason.
func launch(name string, fail context.CancelCauseFunc, run func(context.Context) error) *component {
	ctx, stop := context.WithCancel(context.Background()) // ends by stop only: components stop in order
	c := &component{stop: stop, done: make(chan error, 1)}
	go func() {
		err := run(ctx)
		if ctx.Err() == nil {
			fail(fmt.Errorf("%s ended: %w", name, errors.Join(err, errors.New("see the log"))))
		}
		c.done <- err
	}()
	return c
}

// run starts everything, calls announce when the cluster is ready, and stops everything when ctx ends.
func (c *cluster) run(ctx context.Context, announce func(localcluster.Ready) error) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	etcd, server, err := c.startServer(ctx, fail)
	defer func() {
		if server != nil {
			server.stop()
			err = errors.Join(err, <-server.done)
		}
		if etcd != nil {
			etcd.Close()
		}
	}()
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.dir.Kubeconfig())
	if err != nil {
		return fmt.Errorf("reading kubeconfig: %w", err)
	}
	config.QPS = -1 // no client-side limit
	ready, workers, err := c.bootstrap(ctx, fail, config)
	defer func() {
		for _, w := range workers {
			w.stop()
		}
		for _, w := range workers {
			err = errors.Join(err, <-w.done)
		}
	}()
	if err != nil {
		return err
	}
	if err := announce(ready); err != nil {
		return fmt.Errorf("announcing readiness: %w", err)
	}
	<-ctx.Done()
	c.report("stopping")
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// startServer starts etcd and kube-apiserver. What it returns must be stopped even if there is an error.
func (c *cluster) startServer(ctx context.Context, fail context.CancelCauseFunc) (*embed.Etcd, *component, error) {
	listener, err := c.dir.Listen(c.plan.port)
	if err != nil {
		return nil, nil, err
	}
	if c.files, err = pki.Ensure(c.dir.Certificates(), c.plan.started); err != nil {
		return nil, nil, fmt.Errorf("making certificates: %w", err)
	}
	if err := c.files.WriteKubeconfig(c.dir.Kubeconfig(), "https://"+listener.Addr().String()); err != nil {
		return nil, nil, err
	}
	etcdConfig := controlplane.Etcd{
		DataDir:      c.dir.Etcd(),
		ClientSocket: c.dir.Socket("etcd"),
		PeerSocket:   c.dir.Socket("peer"),
		Log:          c.log,
	}
	etcd, err := etcdConfig.Start(ctx)
	if err != nil {
		return nil, nil, err
	}
	c.report("etcd is ready")
	server := launch("kube-apiserver", fail, controlplane.APIServer{
		Listener:      listener,
		EtcdEndpoint:  etcdConfig.Endpoint(),
		Files:         c.files,
		Controllers:   c.plan.controllers,
		FeatureGates:  c.plan.featureGates,
		RuntimeConfig: c.plan.runtimeConfig,
	}.Run)
	return etcd, server, nil
}

// bootstrap waits for the API server, creates the initial objects and starts the controllers and kubelets.
func (c *cluster) bootstrap(ctx context.Context, fail context.CancelCauseFunc, config *rest.Config) (localcluster.Ready, []*component, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(protobuf)
	if err != nil {
		return localcluster.Ready{}, nil, fmt.Errorf("building client: %w", err)
	}
	crdClient, err := clientset.NewForConfig(config)
	if err != nil {
		return localcluster.Ready{}, nil, fmt.Errorf("building client: %w", err)
	}
	if err := install.WaitReady(ctx, client.CoreV1().RESTClient()); err != nil {
		return localcluster.Ready{}, nil, err
	}
	if err := install.WaitNamespaces(ctx, client); err != nil {
		return localcluster.Ready{}, nil, err
	}
	c.report("kube-apiserver is ready")

	workers := c.launchWorkers(fail, client)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return install.CRDs(ctx, crdClient, c.plan.crds) })
	group.Go(func() error {
		created, err := install.Nodes(ctx, client, c.plan.nodes)
		if err == nil && len(c.plan.nodes) > 0 {
			c.report(fmt.Sprintf("%d nodes created, %d existed", created, len(c.plan.nodes)-created))
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return localcluster.Ready{}, workers, err
	}
	return c.ready(config.Host), workers, nil
}

func (c *cluster) ready(server string) localcluster.Ready {
	return localcluster.Ready{
		Kubeconfig: c.dir.Kubeconfig(), Server: server, Dir: c.dir.Path(), Log: c.dir.Log(),
		Version: c.plan.version, Seconds: time.Since(c.plan.started).Seconds(),
		Nodes: len(c.plan.nodes), CRDs: len(c.plan.crds),
	}
}

func (c *cluster) launchWorkers(fail context.CancelCauseFunc, client kubernetes.Interface) []*component {
	var workers []*component
	if c.plan.controllers {
		workers = append(workers, launch("kube-controller-manager", fail,
			controlplane.ControllerManager{Kubeconfig: c.dir.Kubeconfig(), Files: c.files}.Run))
	}
	if c.plan.kubelets {
		workers = append(workers, launch("kubelets", fail, kubelets.Kubelets{Client: client, Log: c.log}.Run))
	}
	return workers
}

// report tells the user on stderr what has happened and when.
func (c *cluster) report(what string) {
	fmt.Fprintf(c.progress, "%6.1fs  %s\n", time.Since(c.plan.started).Seconds(), what) //nolint:errcheck // best effort on stderr
}
