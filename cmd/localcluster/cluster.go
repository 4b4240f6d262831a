// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"golang.org/x/sync/errgroup"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/runtime"
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
	plan plan
	dir  *datadir.Dir
	log  *logFile

	files     pki.Files
	serverURL string
	config    *rest.Config // the administrator's, without limits; protobuf
	etcd      *embed.Etcd
	server    *component
	workers   []*component // kube-controller-manager and kubelets
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
			if err == nil {
				err = errors.New("it stopped without an error")
			}
			fail(fmt.Errorf("%s ended: %w", name, err))
			err = nil // has been reported
		}
		c.done <- err
	}()
	return c
}

// run starts everything, calls announce when the cluster is ready, and stops everything when ctx ends.
func (c *cluster) run(ctx context.Context, announce func(localcluster.Ready) error) error {
	err := c.serve(ctx, announce)
	if err != nil && ctx.Err() == nil {
		c.log.showTail() // before stopping adds its own lines
	}
	if ctx.Err() != nil {
		err = nil // asked to stop, perhaps while starting
		c.report("stopping")
	}
	return errors.Join(err, c.stop())
}

// serve returns when ctx ends or something fails.
func (c *cluster) serve(ctx context.Context, announce func(localcluster.Ready) error) error {
	// A kube-apiserver that is stopped while it starts ends the process, so a signal does not interrupt the start.
	running, fail := context.WithCancelCause(context.WithoutCancel(ctx))
	defer fail(nil)
	starting, cancel := context.WithTimeoutCause(running, startTimeout, fmt.Errorf("not ready after %s: %w", startTimeout, context.DeadlineExceeded))
	defer cancel()
	if err := c.startServer(starting, fail); err != nil {
		return err
	}
	if err := c.bootstrap(starting, ctx, fail); err != nil {
		return err
	}
	if err := announce(c.ready()); err != nil {
		return fmt.Errorf("announcing readiness: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil
	case <-running.Done():
		return context.Cause(running)
	}
}

// stop ends what was started, in reverse order.
func (c *cluster) stop() error {
	var errs []error
	for _, w := range c.workers {
		w.stop()
	}
	for _, w := range c.workers {
		errs = append(errs, <-w.done)
	}
	if c.server != nil {
		c.server.stop()
		errs = append(errs, <-c.server.done)
	}
	if c.etcd != nil {
		c.etcd.Close()
	}
	return errors.Join(errs...)
}

// startServer starts etcd and kube-apiserver.
func (c *cluster) startServer(ctx context.Context, fail context.CancelCauseFunc) error {
	listener, err := c.dir.Listen(c.plan.port)
	if err != nil {
		return err
	}
	if c.files, err = pki.Ensure(c.dir.Certificates(), c.plan.started); err != nil {
		return fmt.Errorf("making certificates: %w", err)
	}
	c.serverURL = "https://" + listener.Addr().String()
	if err := c.files.WriteKubeconfig(c.dir.Kubeconfig(), c.serverURL); err != nil {
		return err
	}
	etcd := controlplane.Etcd{
		DataDir:      c.dir.Etcd(),
		ClientSocket: c.dir.Socket("etcd"),
		PeerSocket:   c.dir.Socket("peer"),
		Log:          c.log,
	}
	if c.etcd, err = etcd.Start(ctx); err != nil {
		return err
	}
	c.report("etcd is ready")
	c.server = launch("kube-apiserver", fail, controlplane.APIServer{
		Listener:      listener,
		EtcdEndpoint:  etcd.Endpoint(),
		Files:         c.files,
		Controllers:   c.plan.controllers,
		FeatureGates:  c.plan.featureGates,
		RuntimeConfig: c.plan.runtimeConfig,
		Emulated:      c.plan.emulated,
		Programs:      c.programs(),
	}.Run)
	return nil
}

// programs are those of another release that run instead, if any.
func (c *cluster) programs() controlplane.Programs {
	return controlplane.Programs{Dir: c.plan.controlPlane, Log: c.log}
}

// bootstrap waits for the API server, starts the controllers, creates the initial objects and starts the kubelets.
// interrupt ends the creation of objects; the API server is waited for in any case.
func (c *cluster) bootstrap(ctx, interrupt context.Context, fail context.CancelCauseFunc) error {
	client, crdClient, err := c.clients()
	if err != nil {
		return fmt.Errorf("building clients: %w", err)
	}
	if err := install.WaitReady(ctx, client.CoreV1().RESTClient()); err != nil {
		return err
	}
	if err := install.WaitNamespaces(ctx, client); err != nil {
		return err
	}
	c.report("kube-apiserver is ready")
	if c.plan.controllers {
		c.workers = append(c.workers, launch("kube-controller-manager", fail,
			controlplane.ControllerManager{Kubeconfig: c.dir.Kubeconfig(), Files: c.files, Programs: c.programs()}.Run))
	}
	if err := c.createObjects(ctx, interrupt, client, crdClient); err != nil {
		return err
	}
	if c.plan.kubelets { // only now: following thousands of creations would slow them down
		c.workers = append(c.workers, launch("kubelets", fail, kubelets.Kubelets{Config: c.config, Log: c.log}.Run))
	}
	return nil
}

// createObjects installs the CRDs and creates the nodes.
func (c *cluster) createObjects(ctx, interrupt context.Context, client kubernetes.Interface, crdClient clientset.Interface) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(interrupt, func() { cancel(context.Cause(interrupt)) })()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return install.CRDs(ctx, crdClient, c.plan.crds) })
	group.Go(func() error {
		created, err := install.Nodes(ctx, client, c.plan.nodes)
		if err == nil && len(c.plan.nodes) > 0 {
			c.report(fmt.Sprintf("%d nodes created, %d existed", created, len(c.plan.nodes)-created))
		}
		return err
	})
	return group.Wait()
}

func (c *cluster) clients() (kubernetes.Interface, clientset.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.dir.Kubeconfig())
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1                  // no client-side limit
	config.DisableCompression = true // the loopback device is faster than gzip
	crdClient, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	c.config = config
	client, err := kubernetes.NewForConfig(config)
	return client, crdClient, err
}

func (c *cluster) ready() localcluster.Ready {
	return localcluster.Ready{
		Kubeconfig: c.dir.Kubeconfig(), Server: c.serverURL, Dir: c.dir.Path(), Log: c.dir.Log(),
		Version: c.plan.version, Seconds: time.Since(c.plan.started).Seconds(),
		Nodes: len(c.plan.nodes), CRDs: len(c.plan.crds),
	}
}

// report tells the user what has happened and when.
func (c *cluster) report(what string) {
	fmt.Fprintf(c.log.terminal, "%6.1fs  %s\n", time.Since(c.plan.started).Seconds(), what)
}
