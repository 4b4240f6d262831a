// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/pkg/visibility"
)

// ServiceName is the name of the Service by which the cluster's API server finds the scheduler that leads, and of the EndpointSlice that says
// where it is.
const ServiceName = "caldera-visibility"

// Options say where and how views are served.
type Options struct {
	// Port of the listener, from 1 to 65535.
	Port int
	// Address is where others reach this process. Nil: that of the machine's way out, else its first that is not for itself.
	Address net.IP
	// Namespace is that of the Service.
	Namespace string
	// Pod is the name of the pod that this process runs in; empty for none.
	Pod string
	// CertFile and KeyFile are a certificate that others take care of, and its key, in PEM. Both are empty if the process is to make its own.
	CertFile, KeyFile string
	// Kubeconfig is how the cluster is reached.
	Kubeconfig *rest.Config
	Asking     Asking
}

// between is how long is waited before something is tried again.
const between = 5 * time.Second

// Run serves views until the context ends. What fails is tried again: nothing of it is any reason not to schedule.
func Run(ctx context.Context, views *visibility.Views, o Options) {
	logger := klog.FromContext(ctx).WithName("visibility")
	ctx = klog.NewContext(ctx, logger)
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := o.serve(ctx, views); err != nil && ctx.Err() == nil {
			logger.Error(err, "Views are not served; trying again", "after", between)
		}
	}, between)
}

// serve serves until the context ends, or something fails.
func (o Options) serve(ctx context.Context, views *visibility.Views) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("", strconv.Itoa(o.Port)))
	if err != nil {
		return fmt.Errorf("listening on port %d, which is --visibility-port: %w", o.Port, err)
	}
	// The server closes it, too, once it serves.
	defer listener.Close() //nolint:errcheck // it may be closed already
	if o.Address, err = o.address(); err != nil {
		return err
	}
	certificate, authority, err := o.certificate()
	if err != nil {
		return err
	}
	server, err := newServer(views, o.Asking, listener, certificate)
	if err != nil {
		return err
	}
	a, err := newAnnouncer(o, authority)
	if err != nil {
		return err
	}
	err = server.AddPostStartHook("announce", func(hook genericserver.PostStartHookContext) error {
		go a.run(klog.NewContext(hook, klog.FromContext(ctx)))
		return nil
	})
	if err != nil {
		return err
	}
	return server.PrepareRun().RunWithContext(ctx)
}

// address is where others reach this process: where it is told, else the address of the machine's way out, else the first one that others can use at
// all. A machine may have no way out.
func (o Options) address() (net.IP, error) {
	if o.Address != nil {
		return o.Address, nil
	}
	chosen, err := utilnet.ChooseHostInterface()
	if err == nil {
		return chosen, nil
	}
	addresses, listErr := net.InterfaceAddrs()
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP, nil
		}
	}
	return nil, fmt.Errorf("finding out where others reach this process: %w; set --visibility-advertise-address", errors.Join(err, listErr))
}

// lifetime is for how long a certificate is good that a process makes for itself. It makes a new one each time it starts.
const lifetime = 10 * 365 * 24 * time.Hour

// certificate is the certificate that is served by, and the one by which it can be known; the latter is empty if others take care of that.
func (o Options) certificate() (options.GeneratableKeyCert, []byte, error) {
	if o.CertFile != "" {
		return options.GeneratableKeyCert{CertKey: options.CertKey{CertFile: o.CertFile, KeyFile: o.KeyFile}}, nil, nil
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{
		Host: ServerName(o.Namespace), MaxAge: lifetime,
	})
	if err != nil {
		return options.GeneratableKeyCert{}, nil, fmt.Errorf("making a certificate: %w", err)
	}
	content, err := dynamiccertificates.NewStaticCertKeyContent(ServiceName, certPEM, keyPEM)
	if err != nil {
		return options.GeneratableKeyCert{}, nil, fmt.Errorf("reading the certificate that was made: %w", err)
	}
	return options.GeneratableKeyCert{GeneratedCert: content}, certPEM, nil
}

// ServerName is the name that the certificate is for.
func ServerName(namespace string) string { return ServiceName + "." + namespace + ".svc" }
