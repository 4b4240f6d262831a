// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/visibility/serve"
)

// forward is a port of this machine that leads to the scheduler.
type forward struct {
	stop chan struct{}
	once sync.Once
}

func (f *forward) close() { f.once.Do(func() { close(f.stop) }) }

// errAway: the pod that the scheduler led in takes no connection. Another one may lead soon.
var errAway = errors.New("no connection")

// goThere opens a port-forward to the scheduler that leads, and asks there from now on. mu is held.
func (c *Client) goThere(ctx context.Context) error {
	config, err := c.flags.ToRESTConfig()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	namespace := c.flags.schedulerNamespace
	slice, err := client.DiscoveryV1().EndpointSlices(namespace).Get(ctx, serve.ServiceName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the API %s is not installed, and no scheduler in namespace %s says that it serves views: start it with --visibility-port, "+
			"or name its namespace by --scheduler-namespace", v1alpha1.GroupName, namespace)
	case err != nil:
		return fmt.Errorf("the API %s is not installed; finding the scheduler: %w", v1alpha1.GroupName, err)
	}
	pod, port, err := target(slice)
	if err != nil {
		return err
	}
	local, err := c.open(ctx, client, config, pod, port)
	if err != nil {
		err = fmt.Errorf("the API %s is not installed; forwarding a port to pod %s/%s: %w", v1alpha1.GroupName, namespace, pod, err)
		if apierrors.IsForbidden(err) {
			return err
		}
		return fmt.Errorf("%w: %w", errAway, err)
	}
	c.rest, err = restFor(there(config, slice, local))
	return err
}

// target is the pod and the port that a slice names.
func target(slice *discoveryv1.EndpointSlice) (pod string, port int32, err error) {
	for _, e := range slice.Endpoints {
		if e.TargetRef != nil && len(slice.Ports) > 0 && slice.Ports[0].Port != nil {
			return e.TargetRef.Name, *slice.Ports[0].Port, nil
		}
	}
	return "", 0, fmt.Errorf("EndpointSlice %s/%s names no pod: the scheduler runs outside of pods, so that the API %s has to be installed",
		slice.Namespace, slice.Name, v1alpha1.GroupName)
}

// there is how the scheduler is reached by a port of this machine: with the user's credentials, and known by the certificate that it has written down.
func there(config *rest.Config, slice *discoveryv1.EndpointSlice, port uint16) *rest.Config {
	c := rest.CopyConfig(config)
	c.Host, c.Proxy = "https://127.0.0.1:"+strconv.Itoa(int(port)), nil
	c.Insecure, c.CAFile, c.CAData = false, "", []byte(slice.Annotations[serve.AuthorityAnnotation])
	c.ServerName = serve.ServerName(slice.Namespace)
	return c
}

// notes remembers why a connection could not be had: the forwarder returns the text of it only.
type notes struct {
	httpstream.Dialer
	err error
}

// Dial implements httpstream.Dialer.
func (n *notes) Dial(protocols ...string) (httpstream.Connection, string, error) {
	connection, protocol, err := n.Dialer.Dial(protocols...)
	n.err = err
	return connection, protocol, err
}

// open opens the port-forward, and returns the port of this machine. mu is held.
func (c *Client) open(ctx context.Context, client kubernetes.Interface, config *rest.Config, pod string, port int32) (uint16, error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return 0, err
	}
	url := client.CoreV1().RESTClient().Post().Namespace(c.flags.schedulerNamespace).Resource("pods").Name(pod).SubResource("portforward").URL()
	dialer := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	if tunnel, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, config); err == nil {
		dialer = portforward.NewFallbackDialerForStreaming(tunnel, dialer, func(err error) bool { return err != nil })
	}
	f, ready, noted := &forward{stop: make(chan struct{})}, make(chan struct{}), &notes{Dialer: dialer}
	forwarder, err := portforward.NewOnAddressesForStreaming(noted, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, f.stop, ready, io.Discard, io.Discard)
	if err != nil {
		return 0, err
	}
	failed := make(chan error, 1)
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		return 0, errors.Join(cmp.Or(noted.err, err), context.Cause(ctx))
	case <-ctx.Done():
		f.close()
		return 0, context.Cause(ctx)
	}
	ports, err := forwarder.GetPorts()
	if err != nil || len(ports) == 0 {
		f.close()
		return 0, errors.Join(err, errors.New("no port is open"))
	}
	c.forward = f
	return ports[0].Local, nil
}
