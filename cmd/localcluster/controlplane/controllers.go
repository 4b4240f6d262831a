// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"

	"github.com/caldera-scheduler/caldera/cmd/localcluster/pki"
)

// controllers are those ordinary workloads, volumes and access rights need. Left out: everything that reacts to node
// health (nodes here are as healthy as their objects say), services' endpoints, certificates, autoscaling.
var controllers = []string{
	names.ClusterRoleAggregationController,
	names.CronJobController,
	names.DaemonSetController,
	names.DeploymentController,
	names.DisruptionController,
	names.EphemeralVolumeController,
	names.GarbageCollectorController,
	names.JobController,
	names.NamespaceController,
	names.PersistentVolumeBinderController,
	names.PersistentVolumeClaimProtectionController,
	names.PersistentVolumeProtectionController,
	names.PodGarbageCollectorController,
	names.PodGroupProtectionController,
	names.ReplicaSetController,
	names.ReplicationControllerController,
	names.ResourceClaimController,
	names.ResourceQuotaController,
	names.RootCACertificatePublisherController,
	names.ServiceAccountController,
	names.ServiceAccountTokenController,
	names.StatefulSetController,
	names.TTLAfterFinishedController,
}

// ControllerManager configures kube-controller-manager.
type ControllerManager struct {
	Kubeconfig string
	Files      pki.Files
	// Programs has the kube-controller-manager that runs.
	Programs Programs
}

func (m ControllerManager) flags(controllers []string) []string {
	return []string{
		"--kubeconfig=" + m.Kubeconfig,
		"--controllers=" + strings.Join(controllers, ","),
		"--leader-elect=false",
		"--secure-port=0",
		"--profiling=false",
		"--root-ca-file=" + m.Files.CACert,
		"--service-account-private-key-file=" + m.Files.ServiceAccountKey,
		"--kube-api-qps=5000",
		"--kube-api-burst=10000",
		"--concurrent-deployment-syncs=20",
		"--concurrent-gc-syncs=40",
		"--concurrent-job-syncs=20",
		"--concurrent-namespace-syncs=20",
		"--concurrent-replicaset-syncs=20",
		"--concurrent-statefulset-syncs=20",
	}
}

// Run runs the controllers until ctx ends. kube-apiserver must be serving, and its feature gates be set.
func (m ControllerManager) Run(ctx context.Context) error {
	if m.Programs.Given() {
		known, err := m.Programs.known(ctx, controllers)
		if err != nil {
			return err
		}
		return m.Programs.run(ctx, "kube-controller-manager", m.flags(known))
	}
	opts, err := options.NewKubeControllerManagerOptions()
	if err != nil {
		return fmt.Errorf("configuring kube-controller-manager: %w", err)
	}
	known, disabled, aliases := app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()
	fs := pflag.NewFlagSet("kube-controller-manager", pflag.ContinueOnError)
	for _, named := range opts.Flags(known, disabled, aliases).FlagSets {
		fs.AddFlagSet(named)
	}
	if err := fs.Parse(m.flags(controllers)); err != nil {
		return fmt.Errorf("configuring kube-controller-manager: %w", err)
	}
	// The component registry is left as kube-apiserver set it: the gates are the same, process-wide.
	config, err := opts.Config(ctx, known, disabled, aliases)
	if err != nil {
		return fmt.Errorf("configuring kube-controller-manager: %w", err)
	}
	if err := app.Run(ctx, config.Complete()); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("running kube-controller-manager: %w", err)
	}
	return nil
}
