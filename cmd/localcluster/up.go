// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/cmd/localcluster/controlplane"
	"github.com/caldera-scheduler/caldera/cmd/localcluster/datadir"
	"github.com/caldera-scheduler/caldera/cmd/localcluster/install"
	"github.com/caldera-scheduler/caldera/cmd/localcluster/nodespec"
	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
)

const upExample = `  localcluster up --nodes 20 --node cpu=32,memory=256Gi,nvidia.com/gpu=8
  localcluster up --node count=10,cpu=8,memory=32Gi,label:zone=a --node name=gpu,count=2,cpu=64,memory=512Gi,nvidia.com/gpu=8,taint:gpu=true:NoSchedule
  localcluster up --nodes-file nodes.yaml --crds ./my-crds --dir ./cluster`

// upFlags are the flags of `up` as the user gave them.
type upFlags struct {
	nodes         int
	shapes        []string
	nodesFile     string
	crdDirs       []string
	defaultCRDs   bool
	dir           string
	port          int
	kubelets      bool
	controllers   bool
	featureGates  []string
	runtimeConfig []string
	emulated      string
	controlPlane  string
	verbose       bool
	output        string
	exitWithStdin bool
}

func newUpCommand() *cobra.Command {
	f := &upFlags{}
	cmd := &cobra.Command{
		Use:     "up",
		Short:   "Start the control plane and serve until SIGINT or SIGTERM",
		Example: upExample,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.InOrStdin())
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&f.nodes, "nodes", 0, "number of nodes, shared by the shapes that give no count")
	fs.StringArrayVar(&f.shapes, "node", nil, "node shape, repeatable: "+
		"[name=PREFIX,][count=N,]cpu=N,memory=SIZE[,RESOURCE=N][,label:KEY=VALUE][,taint:KEY=VALUE:EFFECT]")
	fs.StringVar(&f.nodesFile, "nodes-file", "", "YAML list of node shapes: name, count, labels, taints, resources")
	fs.StringArrayVar(&f.crdDirs, "crds", nil, "directory of CRD files to install besides the project's own, repeatable")
	fs.BoolVar(&f.defaultCRDs, "default-crds", true, "install the project's own CRDs")
	fs.StringVar(&f.dir, "dir", "", "data directory, kept for the next start (default: a temporary one, in memory if possible)")
	fs.IntVar(&f.port, "port", 0, "port of the API server on 127.0.0.1; 0 takes the port of the last start, or a free one")
	fs.BoolVar(&f.kubelets, "kubelets", true, "simulate kubelets: bound pods run, end and go away, nodes hold leases")
	fs.BoolVar(&f.controllers, "controllers", true, "run kube-controller-manager's workload, volume and quota controllers")
	fs.StringSliceVar(&f.featureGates, "feature-gates", nil, "Kubernetes feature gates, Name=true|false")
	fs.StringSliceVar(&f.runtimeConfig, "runtime-config", nil, "API versions to switch, group/version=true|false")
	fs.StringVar(&f.emulated, "emulated-version", "", "minor version of Kubernetes as which the control plane acts, for example 1.34")
	fs.StringVar(&f.controlPlane, "control-plane", "", "folder with kube-apiserver and kube-controller-manager of another release of Kubernetes, which run instead")
	fs.BoolVar(&f.verbose, "verbose", false, "copy the log to stderr")
	fs.StringVar(&f.output, "output", "text", "what to print when ready: text or json (one line)")
	fs.BoolVar(&f.exitWithStdin, "exit-with-stdin", false, "stop when stdin is closed, that is, when a parent process has gone")
	return cmd
}

func (f *upFlags) run(ctx context.Context, stdout io.Writer, stdin io.Reader) (err error) {
	plan, err := f.plan(ctx, time.Now())
	if err != nil {
		return err
	}
	if f.exitWithStdin {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		go func() {
			_, _ = io.Copy(io.Discard, stdin) // the end is what matters, not how it came
			cancel()
		}()
	}
	dir, err := datadir.Open(f.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	logs, err := redirectLogs(dir.Log(), f.verbose)
	if err != nil {
		return err
	}
	defer logs.Close()
	// Kubernetes ends the process when it sees no way on: the defers here do not run then.
	klog.OsExit = func(code int) {
		logs.showTail()
		dir.Close() //nolint:errcheck // the process is lost already
		os.Exit(code)
	}
	c := &cluster{plan: plan, dir: dir, log: logs}
	return c.run(ctx, func(r localcluster.Ready) error { return f.announce(stdout, r) })
}

// plan is the validated input of a start.
type plan struct {
	version       string
	started       time.Time
	nodes         []*corev1.Node
	crds          []*apiextensionsv1.CustomResourceDefinition
	port          int
	kubelets      bool
	controllers   bool
	featureGates  []string
	runtimeConfig []string
	emulated      string
	controlPlane  string
}

// plan checks everything that can be checked before anything is started.
func (f *upFlags) plan(ctx context.Context, now time.Time) (plan, error) {
	programs := controlplane.Programs{Dir: f.controlPlane}
	version, err := kubernetesVersion()
	if err == nil && programs.Given() {
		version, err = programs.Version(ctx)
	}
	if err != nil {
		return plan{}, err
	}
	if f.output != "text" && f.output != "json" {
		return plan{}, fmt.Errorf("--output %q: must be text or json", f.output)
	}
	if f.port < 0 || f.port > 65535 {
		return plan{}, fmt.Errorf("--port %d: must be between 0 and 65535", f.port)
	}
	shapes, err := f.parseShapes()
	if err != nil {
		return plan{}, err
	}
	crds, err := f.readCRDs()
	if err != nil {
		return plan{}, err
	}
	return plan{
		version: version, started: now, nodes: nodespec.Nodes(shapes, version, now), crds: crds,
		port: f.port, kubelets: f.kubelets, controllers: f.controllers,
		featureGates: f.featureGates, runtimeConfig: f.runtimeConfig, emulated: f.emulated, controlPlane: f.controlPlane,
	}, nil
}

func (f *upFlags) parseShapes() ([]nodespec.Shape, error) {
	var shapes []nodespec.Shape
	for _, value := range f.shapes {
		shape, err := nodespec.ParseFlag(value)
		if err != nil {
			return nil, err
		}
		shapes = append(shapes, shape)
	}
	if f.nodesFile != "" {
		content, err := os.ReadFile(f.nodesFile)
		if err != nil {
			return nil, fmt.Errorf("--nodes-file: %w", err)
		}
		fromFile, err := nodespec.ParseFile(f.nodesFile, content)
		if err != nil {
			return nil, err
		}
		shapes = append(shapes, fromFile...)
	}
	return nodespec.Assign(shapes, f.nodes)
}

func (f *upFlags) readCRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	if f.defaultCRDs {
		own, err := fs.Sub(manifests.CRDs, "crds")
		if err != nil {
			return nil, fmt.Errorf("opening built-in CRDs: %w", err)
		}
		if crds, err = install.ReadCRDs(own); err != nil {
			return nil, err
		}
	}
	for _, dir := range f.crdDirs {
		more, err := install.ReadCRDs(os.DirFS(dir))
		if err != nil {
			return nil, fmt.Errorf("--crds %s: %w", dir, err)
		}
		if len(more) == 0 {
			return nil, fmt.Errorf("--crds %s: no CRD in its .yaml files", dir)
		}
		crds = append(crds, more...)
	}
	return crds, nil
}

func (f *upFlags) announce(stdout io.Writer, r localcluster.Ready) error {
	if f.output == "json" {
		return json.NewEncoder(stdout).Encode(r)
	}
	_, err := fmt.Fprintf(stdout, "Kubernetes %s at %s: ready in %.1f s with %d nodes and %d CRDs.\nLog: %s\n\n"+
		"export KUBECONFIG=%s\n\nStop with Ctrl-C.\n", r.Version, r.Server, r.Seconds, r.Nodes, r.CRDs, r.Log, r.Kubeconfig)
	return err
}
