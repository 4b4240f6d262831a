// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	componentconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/preemption/archive"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
	caldera "github.com/caldera-scheduler/caldera/pkg/version"
	"github.com/caldera-scheduler/caldera/pkg/visibility"
	"github.com/caldera-scheduler/caldera/pkg/visibility/serve"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// viewFlags say whether and where views of jobs, queues and evictions are served.
type viewFlags struct {
	port              int
	address           net.IP
	namespace, pod    string
	certFile, keyFile string
}

// namespaceFile is where a pod finds the name of its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func (f *viewFlags) add(set *pflag.FlagSet) {
	set.IntVar(&f.port, "visibility-port", 0, "The port on which the scheduler, while it leads, serves the API "+v1alpha1.GroupName+
		": what kubectl caldera shows. It then keeps its ledger of evictions in ConfigMaps, too. 0: neither.")
	set.IPVar(&f.address, "visibility-advertise-address", nil, "The address at which the cluster's API server reaches that port. "+
		"Default: the first address of the machine that is not its loopback.")
	set.StringVar(&f.namespace, "visibility-namespace", "", "The namespace of the Service "+serve.ServiceName+
		", and of the ConfigMaps of the ledger. Default: the pod's; without a pod, that of the scheduler's lease.")
	set.StringVar(&f.pod, "visibility-pod", "", "The pod in which the scheduler runs: what kubectl caldera forwards a port to where the API is not installed. "+
		"Default: in a pod, the name of the machine, which is the pod's unless the pod has the node's network.")
	set.StringVar(&f.certFile, "visibility-tls-cert-file", "", "A certificate for that port, in PEM, which others renew and write into the APIService. "+
		"Default: the scheduler makes one and writes it there.")
	set.StringVar(&f.keyFile, "visibility-tls-private-key-file", "", "The key of --visibility-tls-cert-file, in PEM.")
}

func (f *viewFlags) validate() error {
	switch {
	case f.port < 0 || f.port > 65535:
		return fmt.Errorf("--visibility-port is %d: use a port from 1 to 65535, or 0 for none", f.port)
	case (f.certFile == "") != (f.keyFile == ""):
		return errors.New("--visibility-tls-cert-file and --visibility-tls-private-key-file go together: set both or neither")
	}
	return nil
}

// serve has views served, and the ledger of evictions kept, once the scheduler leads.
func (f *viewFlags) serve(c *core.Core, opts *options.Options, cc *schedulerconfig.CompletedConfig, sched *scheduler.Scheduler, configuration func() string) error {
	if f.port == 0 || c.Dispatcher == nil {
		return nil
	}
	o := serve.Options{
		Port: f.port, Address: f.address, Pod: f.pod, CertFile: f.certFile, KeyFile: f.keyFile, Kubeconfig: cc.KubeConfig, Asking: asking(opts, cc),
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("finding out the name of this machine: %w", err)
	}
	inPod, err := os.ReadFile(namespaceFile)
	if err == nil {
		o.Pod = cmp.Or(f.pod, host)
	}
	o.Namespace = cmp.Or(f.namespace, strings.TrimSpace(string(inPod)), cc.ComponentConfig.LeaderElection.ResourceNamespace, metav1.NamespaceSystem)
	leader := v1alpha1.Leader{
		Identity: host, Version: caldera.Get(), KubernetesVersion: version.Get().GitVersion, Profiles: slices.Sorted(maps.Keys(sched.Profiles)),
	}
	if cc.LeaderElection != nil {
		leader.Identity = cc.LeaderElection.Lock.Identity()
	}
	kept := &archive.Archive{Ledger: c.Evictions.Ledger, Client: cc.Client, Namespace: o.Namespace, Clock: c.Clock()}
	c.First(func(ctx context.Context) {
		if err := kept.Load(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "What the scheduler before this one evicted is not known")
		}
		leader.Since = metav1.NewTime(c.Clock().Now())
		go kept.Run(ctx)
		views := visibility.New(visibility.Source{
			State: c.State, Dispatch: c.Dispatcher.View(), Ledger: c.Evictions.Ledger, Clock: c.Clock(), Leader: leader,
			Configuration: configuration,
		})
		go views.Sample(ctx)
		go serve.Run(ctx, views, o)
	})
	return nil
}

// asking is how the scheduler's own port learns who asks and whether they may, with two differences: a scheduler outside of a pod goes by its own
// kubeconfig if there is no other; and one that cannot read by which certificate the API server is known serves nobody.
func asking(opts *options.Options, cc *schedulerconfig.CompletedConfig) serve.Asking {
	authentication, authorization := *opts.Authentication, *opts.Authorization
	own := cc.ComponentConfig.ClientConnection.Kubeconfig
	authentication.RemoteKubeConfigFile = cmp.Or(authentication.RemoteKubeConfigFile, own)
	authorization.RemoteKubeConfigFile = cmp.Or(authorization.RemoteKubeConfigFile, own)
	authentication.TolerateInClusterLookupFailure = false
	return serve.Asking{Authentication: &authentication, Authorization: &authorization}
}

// inForce is the configuration that the scheduler goes by now, in YAML. It may be replaced at any time.
type inForce struct{ now atomic.Pointer[string] }

func newInForce(c *componentconfig.KubeSchedulerConfiguration) *inForce {
	f := &inForce{}
	f.set(c)
	return f
}

// set writes a configuration down. It says what is wrong with it if it cannot be written.
func (f *inForce) set(c *componentconfig.KubeSchedulerConfiguration) {
	data, err := profile.Encode(c.DeepCopy())
	text := string(data)
	if err != nil {
		text = "# " + err.Error() + "\n"
	}
	f.now.Store(&text)
}

func (f *inForce) text() string { return *f.now.Load() }
