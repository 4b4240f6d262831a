// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ui is the command "kubectl caldera ui": a page for a browser on the same machine, which reads and never writes.
package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
)

type flags struct {
	*leader.Flags
	port int
	open bool
}

// New returns the command.
func New() *cobra.Command {
	f := flags{Flags: leader.NewFlags()}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show queues, jobs, evictions, nodes and how fair it was, as a page in a browser",
		Long: `Show queues, jobs, evictions, nodes and how fair it was, as a page in a browser.

The page is served to this machine only, until the command is interrupted. What it shows is read with your own credentials, when a browser asks for
it, and nothing is ever written. Its address has a secret in it: who else is on this machine, or has you visit a web site, sees nothing.

Who may not see all of the cluster sees what concerns the namespace.`,
		Example: `  # Print the address of the page
  kubectl caldera ui

  # Open it in a browser
  kubectl caldera ui --open

  # Always at the same port, of another cluster
  kubectl caldera ui --port 8090 --context staging`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.With(cmd, f.run) },
	}
	f.Add(cmd, false)
	cmd.Flags().IntVar(&f.port, "port", 0, "The port of this machine at which the page is. 0: a free one.")
	cmd.Flags().BoolVar(&f.open, "open", false, "Open the page in a browser.")
	return cmd
}

// goodbye is how long requests are given to end once the command is interrupted.
const goodbye = 2 * time.Second

func (f *flags) run(ctx context.Context, client *leader.Client) error {
	if f.port < 0 || f.port > 65535 {
		return fmt.Errorf("--port is %d: use a port from 1 to 65535, or 0 for a free one", f.port)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.port)))
	if err != nil {
		return fmt.Errorf("listening at port %d, which is --port: %w", f.port, err)
	}
	defer listener.Close() //nolint:errcheck // the server closes it, too
	core, err := f.core()
	if err != nil {
		return err
	}
	errOut := client.Streams.ErrOut
	// The page says what is wrong; here it would be said with each request.
	client.Streams.ErrOut = io.Discard
	g := newGuard(listener.Addr().(*net.TCPAddr).Port)
	server := &http.Server{
		Handler:           g.protect(newPages(&source{flags: f.Flags, client: client, core: core})),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	fmt.Fprintln(client.Streams.Out, g.address())
	if f.open {
		remove, err := show(ctx, g.address())
		if err != nil {
			fmt.Fprintf(errOut, "No browser could be started; open the address yourself: %v\n", err)
		}
		defer remove()
	}
	select {
	case err := <-failed:
		return fmt.Errorf("serving the page: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	if err := server.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("ending the page: %w", err)
	}
	return server.Close()
}

// core is a client of nodes and pods, with the user's credentials.
func (f *flags) core() (kubernetes.Interface, error) {
	config, err := f.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	// Lists of all pods are long.
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	return kubernetes.NewForConfig(config)
}
