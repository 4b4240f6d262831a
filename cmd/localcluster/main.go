// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command localcluster runs a real Kubernetes control plane in one process: etcd, kube-apiserver, the controllers
// ordinary workloads need, and simulated kubelets. It runs no scheduler; that is what it is for.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

// gcPercent trades memory for time: with the default of 100 the API server serves a quarter fewer requests.
const gcPercent = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default handling returns: a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	root := &cobra.Command{
		Use:           "localcluster",
		Short:         "Run a Kubernetes control plane with simulated nodes in one process",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newUpCommand(), newVersionCommand())
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
