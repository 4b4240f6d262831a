// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package leader asks the scheduler that leads for views, with the user's own credentials.
package leader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

const (
	// patience is how long is waited for a scheduler to lead. A lease runs out after 15 seconds, unless somebody has changed that.
	patience = 45 * time.Second
	// pause is between two attempts, answer how long one may take.
	pause  = time.Second
	answer = 20 * time.Second
)

// scheme has the views.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(s))
	return s
}()

var codecs = serializer.NewCodecFactory(scheme)

// Flags are those by which a command finds the cluster and the scheduler, and says whose views are wanted.
type Flags struct {
	*genericclioptions.ConfigFlags
	// AllNamespaces: views of all namespaces are wanted.
	AllNamespaces bool
	// schedulerNamespace is where the scheduler runs.
	schedulerNamespace string
}

// NewFlags returns kubectl's own flags.
func NewFlags() *Flags { return &Flags{ConfigFlags: genericclioptions.NewConfigFlags(true)} }

// Add adds the flags to a command.
func (f *Flags) Add(cmd *cobra.Command, namespaced bool) {
	f.AddFlags(cmd.Flags())
	cmd.Flags().StringVar(&f.schedulerNamespace, "scheduler-namespace", "caldera-system",
		"The namespace of the scheduler, for clusters in which the API "+v1alpha1.GroupName+" is not installed.")
	if namespaced {
		cmd.Flags().BoolVarP(&f.AllNamespaces, "all-namespaces", "A", false, "Show those of all namespaces.")
	}
}

// Scope is the namespace that is asked for; empty for all.
func (f *Flags) Scope() (string, error) {
	if f.AllNamespaces {
		return "", nil
	}
	namespace, _, err := f.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// Client asks for views. Its methods may be called at any time from anywhere.
type Client struct {
	// Streams are those of the command.
	Streams genericiooptions.IOStreams
	flags   *Flags
	// saying guards what the client itself writes to the streams.
	saying sync.Mutex

	// mu guards what follows. It is held while a port-forward is opened: whoever else asks needs it, too.
	mu   sync.Mutex
	rest rest.Interface
	// direct: the API is not installed, so that the scheduler itself is asked. forward is how, once it has been found.
	direct  bool
	forward *forward
}

// With calls a function with a client. What the client has open is closed after that.
func (f *Flags) With(cmd *cobra.Command, do func(context.Context, *Client) error) error {
	config, err := f.ToRESTConfig()
	if err != nil {
		return err
	}
	c := &Client{flags: f, Streams: Streams(cmd)}
	if c.rest, err = restFor(config); err != nil {
		return err
	}
	defer c.close()
	return do(cmd.Context(), c)
}

func restFor(config *rest.Config) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.SchemeGroupVersion
	config.NegotiatedSerializer = codecs.WithoutConversion()
	return rest.RESTClientFor(config)
}

// say tells the user something. Several may have something to tell at a time.
func (c *Client) say(format string, args ...any) {
	c.saying.Lock()
	defer c.saying.Unlock()
	fmt.Fprintf(c.Streams.ErrOut, format, args...)
}

func (c *Client) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forward != nil {
		c.forward.close()
		c.forward = nil
	}
}

// hangUp ends a port-forward, if it is the one by which is asked now. Another one may have been opened since it failed.
func (c *Client) hangUp(f *forward) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f != nil && c.forward == f {
		f.close()
		c.forward = nil
	}
}

// List reads views of a namespace, all if it is empty.
func (c *Client) List(ctx context.Context, resource, namespace string, o metav1.ListOptions, into runtime.Object) error {
	return c.ask(ctx, func(ctx context.Context, r rest.Interface) error {
		return r.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).
			VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Into(into)
	})
}

// Get reads one view.
func (c *Client) Get(ctx context.Context, resource, namespace, name string, into runtime.Object) error {
	return c.ask(ctx, func(ctx context.Context, r rest.Interface) error {
		return r.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resource).Name(name).Do(ctx).Into(into)
	})
}

// ask asks until somebody answers. Where the API is not installed it goes to the scheduler itself.
func (c *Client) ask(ctx context.Context, do func(context.Context, rest.Interface) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("no scheduler that leads has answered"))
	defer cancel()
	told := false
	for {
		by, err := c.once(ctx, do)
		if err != nil && notInstalled(err) && by == nil {
			c.goDirect()
			by, err = c.once(ctx, do)
		}
		if err == nil || !passing(err) {
			return err
		}
		// Another one may lead by now, in another pod.
		c.hangUp(by)
		if !told {
			c.say("The scheduler that leads does not answer (%v); waiting for one for up to %s.\n", err, patience)
			told = true
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// goDirect has the scheduler itself asked from now on.
func (c *Client) goDirect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.direct = true
}

// once asks once. It returns the port-forward by which it has asked; nil if that was the cluster's API server, or none could be opened.
func (c *Client) once(ctx context.Context, do func(context.Context, rest.Interface) error) (*forward, error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	r, by, err := c.way(ctx)
	if err != nil {
		return nil, err
	}
	return by, do(ctx, r)
}

// way is how is asked now. It opens a port-forward if that takes one.
func (c *Client) way(ctx context.Context) (rest.Interface, *forward, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.direct && c.forward == nil {
		if err := c.goThere(ctx); err != nil {
			return nil, nil, err
		}
	}
	return c.rest, c.forward, nil
}

// notInstalled reports whether the cluster's API server knows nothing of the API: not who asks for what is not there.
func notInstalled(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// passing reports whether an error may be over soon: the scheduler has gone, perhaps in the middle of its answer, and another one is about to lead.
func passing(err error) bool {
	return errors.Is(err, errAway) || apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) ||
		lostConnection(err)
}

// lostConnection reports whether a connection that several requests share has ended, or could not be had. Another request may have hung it up with its
// port-forward. net/http has no types for these errors of HTTP/2, only texts.
func lostConnection(err error) bool {
	failed, ok := errors.AsType[*url.Error](err)
	return ok && strings.HasPrefix(failed.Err.Error(), "http2: client conn")
}

// Message is what is said of an error: what the API server refuses in the words of kubectl.
func Message(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Reason != "" {
		return fmt.Sprintf("Error from server (%s): %v", status.Status().Reason, err)
	}
	return fmt.Sprintf("error: %v", err)
}
