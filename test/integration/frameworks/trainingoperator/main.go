// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command trainingoperator runs training-operator's controllers for PyTorchJobs, TFJobs and MPIJobs beside a control plane. Its own program also
// serves webhooks that check such jobs, and wants their certificates in a folder of the machine.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	controllers "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"
)

func main() {
	scheduler := flag.String("gang-scheduler-name", "volcano", "volcano, or the name of a scheduler with scheduler-plugins' PodGroups")
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(*scheduler); err != nil {
		fmt.Fprintln(os.Stderr, "trainingoperator:", err)
		os.Exit(1)
	}
}

func run(scheduler string) error {
	types := runtime.NewScheme()
	err := errors.Join(scheme.AddToScheme(types), kubeflow.AddToScheme(types), volcano.AddToScheme(types), coscheduling.AddToScheme(types))
	if err != nil {
		return err
	}
	// The defaults of its program's flags.
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerTemplateFile = config.PyTorchInitContainerTemplateFileDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	cluster, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(cluster, ctrl.Options{Scheme: types, Metrics: metrics.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"})
	if err != nil {
		return err
	}
	gangs := common.GenSchedulerPluginsSetupFunc(manager.GetClient(), scheduler)
	if scheduler == string(common.GangSchedulerVolcano) {
		client, err := volcanoclient.NewForConfig(cluster)
		if err != nil {
			return err
		}
		gangs = common.GenVolcanoSetupFunc(client)
	}
	for _, kind := range []string{kubeflow.PyTorchJobKind, kubeflow.TFJobKind, kubeflow.MPIJobKind} {
		if err := controllers.SupportedSchemeReconciler[kind](manager, gangs, 1); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
