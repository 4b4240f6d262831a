// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process runs one workload of upstream's scheduler_perf with one scheduler. Feature gates and metrics are those of
// the whole process, so that a process measures once: the test binary of this package is started for each measurement.
package process

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/client-go/ktesting"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/cmd/localcluster/install"
	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/app"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
)

// servedWithin is how long the API server may take to serve a definition.
const servedWithin = 30 * time.Second

// Options say what to measure.
type Options struct {
	// Workload is a file of scheduler_perf's kind. The paths in it are relative to the working directory.
	Workload string
	// Kubernetes is the directory of upstream's module, k8s.io/kubernetes@VERSION of the cache of modules.
	Kubernetes string
	// Caldera compiles our plugins into the scheduler, whose configuration is up to the workload.
	Caldera bool
	// Kubelets has pods run when they are bound.
	Kubelets bool
	// Patience is how long the pods of one step of the workload may take to be bound.
	Patience time.Duration
	// Binds is the file that workload.Binds are written to, by namespace.
	Binds string
}

// Run measures. What the harness itself finds goes to where its flags say.
func Run(b *testing.B, o Options) {
	tellWhereUpstreamIs(b, o.Kubernetes)
	var registry frameworkruntime.Registry
	if o.Caldera {
		app.SetFeatureDefaults()
		registry = withDefinitions(caldera())
	}
	watched := newWatcher()
	perf.RunBenchmarkPerfScheduling(b, o.Workload, "caldera", registry,
		perf.WithPodsSchedulingTimeout(o.Patience),
		perf.WithPrepareFn(func(ctx ktesting.TContext) error { return define(ctx, ctx.RESTConfig()) }),
		perf.WithNodeUpdateFn(onceThereAreNodes(func(ctx context.Context, profile framework.Framework) error {
			pods := profile.SharedInformerFactory().Core().V1().Pods().Informer()
			if err := watched.follow(pods); err != nil || !o.Kubelets {
				return err
			}
			return runPods(ctx, profile.ClientSet(), pods)
		})))
	if err := watched.write(o.Binds); err != nil {
		b.Fatal(err)
	}
}

// tellWhereUpstreamIs tells upstream's API server where its own files are. It reads that off the path of its source, which is not one of this machine
// in a program that was built with -trimpath. Then it takes two variables, as Bazel sets them, for the directory that the path begins at.
func tellWhereUpstreamIs(b *testing.B, module string) {
	if _, source, _, ok := goruntime.Caller(0); !ok || filepath.IsAbs(source) {
		return
	}
	modules := filepath.Dir(filepath.Dir(module))
	b.Setenv("TEST_SRCDIR", filepath.Dir(modules))
	b.Setenv("TEST_WORKSPACE", filepath.Base(modules))
}

// onceThereAreNodes calls a function when the workload has created its first nodes, with one of the scheduler's profiles. It is
// the only hook of the harness that has the scheduler.
func onceThereAreNodes(do func(context.Context, framework.Framework) error) perf.NodeUpdateFn {
	done := false
	return func(ctx ktesting.TContext, sched *scheduler.Scheduler, _ *perf.Workload, _ *corev1.NodeList) error {
		for _, profile := range sched.Profiles {
			if done {
				break
			}
			done = true
			if err := do(ctx, profile); err != nil {
				return fmt.Errorf("following the pods: %w", err)
			}
		}
		return nil
	}
}

// caldera returns our plugins, for a scheduler that leads from the start: in the harness there is only one.
func caldera() frameworkruntime.Registry {
	c := core.New(core.Options{})
	c.Lead()
	return plugins.Registry(c)
}

// withDefinitions has Volcano's objects defined before the first of our plugins looks for them, as they are in a cluster:
// who looks in vain looks again 15 s later. Between its API server and its scheduler the harness calls nobody but the
// plugins' factories.
func withDefinitions(registry frameworkruntime.Registry) frameworkruntime.Registry {
	factory := registry[names.BatchQueue]
	registry[names.BatchQueue] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		if err := define(ctx, handle.KubeConfig()); err != nil {
			return nil, err
		}
		return factory(ctx, args, handle)
	}
	return registry
}

// define has Volcano's PodGroups and Queues served. It may be called again.
func define(ctx context.Context, config *rest.Config) error {
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("building a client for definitions: %w", err)
	}
	files, err := fs.Sub(manifests.CRDs, "crds")
	if err != nil {
		return fmt.Errorf("reading the definitions: %w", err)
	}
	definitions, err := install.ReadCRDs(files)
	if err != nil {
		return err
	}
	if err := install.CRDs(ctx, client, definitions); err != nil {
		return err
	}
	// The list of what is served follows a little later.
	served := func(context.Context) (bool, error) {
		_, err := client.Discovery().ServerResourcesForGroupVersion(volcano.SchemeGroupVersion.String())
		return err == nil, nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, servedWithin, true, served); err != nil {
		return fmt.Errorf("waiting for %s to be served: %w", volcano.SchemeGroupVersion, err)
	}
	return nil
}
