// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-caldera is what users have of Caldera on their own machines. As a plugin of kubectl it is called by
// "kubectl caldera".
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/convert"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/evictions"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/explain"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/jobs"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/migrate"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/queues"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/replay"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/simulate"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/snapshot"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/status"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/top"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/ui"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the default handling returns: a second one ends the process at once.
	context.AfterFunc(ctx, stop)
	// What is not logged by a command's own logger is of interest only if it is an error.
	klog.SetLogger(textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(-1))))
	if err := newCommand().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, leader.Message(err))
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "kubectl-caldera",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl caldera"},
		Short:         "Look into the batch scheduler Caldera",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	// Libraries of Kubernetes' components add flags to every command line.
	pflag.CommandLine.VisitAll(func(f *pflag.Flag) { f.Hidden = true })
	root.AddCommand(
		status.New(), queues.New(), queues.NewQueue(), jobs.New(), explain.New(), top.New(), evictions.New(), ui.New(),
		simulate.New(), snapshot.New(), replay.New(), convert.New(), convert.NewValidate(), migrate.New(), version.New(),
	)
	return root
}
