// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"

	"github.com/caldera-scheduler/caldera/cmd/localcluster/pki"
)

// APIServer configures kube-apiserver.
type APIServer struct {
	Listener     net.Listener
	EtcdEndpoint string
	Files        pki.Files
	// Controllers says whether kube-controller-manager will run. Admission that relies on a controller is off without it.
	Controllers bool
	// FeatureGates and RuntimeConfig are passed on: Name=true and group/version=true.
	FeatureGates, RuntimeConfig []string
	// Emulated is the minor version as which it acts, for example 1.34; empty: its own.
	Emulated string
	// Programs has the kube-apiserver that runs.
	Programs Programs
}

func (s APIServer) flags() []string {
	flags := []string{
		"--etcd-servers=" + s.EtcdEndpoint,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--service-cluster-ip-range=10.0.0.0/16",
		// A loopback address cannot be an endpoint of the kubernetes service.
		"--endpoint-reconciler-type=none",
		"--token-auth-file=" + s.Files.Tokens,
		"--tls-cert-file=" + s.Files.ServingCert,
		"--tls-private-key-file=" + s.Files.ServingKey,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + s.Files.ServiceAccountKey,
		"--service-account-signing-key-file=" + s.Files.ServiceAccountKey,
		"--authorization-mode=RBAC",
		// Requests to APIServices are passed on to the endpoints of their Services: nothing here would forward them from a Service's address.
		"--enable-aggregator-routing=true",
		"--proxy-client-cert-file=" + s.Files.ProxyCert,
		"--proxy-client-key-file=" + s.Files.ProxyKey,
		"--requestheader-client-ca-file=" + s.Files.ProxyCACert,
		"--requestheader-allowed-names=" + pki.ProxyName,
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--allow-privileged=true",
		"--disable-admission-plugins=" + strings.Join(s.disabledAdmission(), ","),
		// Nothing here may throttle a client: 0 and 0 mean no limit, and with API Priority and Fairness off there is no
		// queueing either. The stream limit is per connection; the default of 100 would hold back one busy scheduler.
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=0",
		"--max-mutating-requests-inflight=0",
		"--http2-max-streams-per-connection=1000",
		// Background work nobody looks at.
		"--profiling=false",
		// Bounds a shutdown to 2 s when clients hold watches open; otherwise it waits a minute for them to end.
		"--shutdown-send-retry-after=true",
		"--etcd-count-metric-poll-period=0",
		"--etcd-db-metric-poll-interval=0",
	}
	if s.Emulated != "" {
		flags = append(flags, "--emulated-version="+s.Emulated)
	}
	if len(s.FeatureGates) > 0 {
		flags = append(flags, "--feature-gates="+strings.Join(s.FeatureGates, ","))
	}
	if len(s.RuntimeConfig) > 0 {
		flags = append(flags, "--runtime-config="+strings.Join(s.RuntimeConfig, ","))
	}
	return flags
}

func (s APIServer) disabledAdmission() []string {
	disabled := []string{
		// Taints every node created through the API until a node controller removes the taint; none runs here.
		"TaintNodesByCondition",
		// Refuses pods until a controller has made the namespace's default service account, which makes "create a
		// namespace, then a pod" a race. Simulated pods mount no token; the TokenRequest API does not need the plugin.
		"ServiceAccount",
	}
	if !s.Controllers {
		// Puts finalizers on volumes and claims that only a controller removes.
		disabled = append(disabled, "StorageObjectInUseProtection")
	}
	return disabled
}

// Run serves until ctx ends. The listener is open before Run starts: requests wait rather than fail.
func (s APIServer) Run(ctx context.Context) error {
	if s.Programs.Given() {
		port, err := release(s.Listener)
		if err != nil {
			return err
		}
		return s.Programs.run(ctx, "kube-apiserver", append(s.flags(), "--secure-port="+port))
	}
	opts := options.NewServerRunOptions()
	fs := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, named := range opts.Flags().FlagSets {
		fs.AddFlagSet(named)
	}
	if err := fs.Parse(s.flags()); err != nil {
		return fmt.Errorf("configuring kube-apiserver: %w", err)
	}
	registry := opts.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return fmt.Errorf("setting feature gates: %w", err)
	}
	registry.FeatureGateFor(basecompatibility.DefaultKubeComponent).(featuregate.MutableFeatureGate).AddMetrics()
	registry.AddMetrics()
	opts.SecureServing.Listener = s.Listener
	opts.SecureServing.BindPort = s.Listener.Addr().(*net.TCPAddr).Port
	opts.SecureServing.ExternalAddress = net.IPv4(127, 0, 0, 1)

	completed, err := opts.Complete(ctx)
	if err != nil {
		return fmt.Errorf("configuring kube-apiserver: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return fmt.Errorf("configuring kube-apiserver: %w", utilerrors.NewAggregate(errs))
	}
	if err := app.Run(ctx, completed); err != nil {
		return fmt.Errorf("running kube-apiserver: %w", err)
	}
	return nil
}
