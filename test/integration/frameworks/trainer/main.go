// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command trainer runs the controllers of Kubeflow Trainer and of JobSet beside a control plane, without their webhooks, which want certificates.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	trainercontrollers "github.com/kubeflow/trainer/v2/pkg/controller"
	runtimecore "github.com/kubeflow/trainer/v2/pkg/runtime/core"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	jobsetcontrollers "sigs.k8s.io/jobset/pkg/controllers"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
)

func main() {
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "trainer:", err)
		os.Exit(1)
	}
}

func run() error {
	types := runtime.NewScheme()
	err := errors.Join(scheme.AddToScheme(types), trainer.AddToScheme(types), jobset.AddToScheme(types), coscheduling.AddToScheme(types))
	if err != nil {
		return err
	}
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(cluster, ctrl.Options{
		Scheme: types, Metrics: metrics.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		Client: client.Options{Cache: &client.CacheOptions{Unstructured: true}},
	})
	if err != nil {
		return err
	}
	ctx := ctrl.SetupSignalHandler()
	err = errors.Join(
		jobsetcontrollers.SetupJobSetIndexes(ctx, manager.GetFieldIndexer()), jobsetcontrollers.SetupPodIndexes(ctx, manager.GetFieldIndexer()),
		jobsetcontrollers.NewJobSetReconciler(manager.GetClient(), types, manager.GetEventRecorderFor("jobset")).SetupWithManager(manager),
		jobsetcontrollers.NewPodReconciler(manager.GetClient(), types, manager.GetEventRecorderFor("pod")).SetupWithManager(manager),
	)
	if err != nil {
		return err
	}
	runtimes, err := runtimecore.New(ctx, manager.GetClient(), manager.GetFieldIndexer())
	if err != nil {
		return err
	}
	if kind, err := trainercontrollers.SetupControllers(manager, runtimes, controller.Options{}); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return manager.Start(ctx)
}
