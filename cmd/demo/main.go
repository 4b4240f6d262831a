// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo shows what the scheduler does: it starts a local cluster of simulated nodes and the scheduler, applies
// manifests/examples, draws what becomes of them, and fails if any gang was started in part.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// The exit statuses besides 0: something did not behave as it should; the demo was interrupted before it could tell.
const (
	exitFailed      = 1
	exitInterrupted = 130
)

// errInterrupted ends a demo that a signal stopped before its verdict.
var errInterrupted = errors.New("interrupted")

// options are the flags.
type options struct {
	scheduler string
	keep      bool
	timeout   time.Duration
	record    string
}

func main() {
	// Further signals change nothing: what was started is being stopped already, which takes seconds.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
	}
	os.Exit(status(err))
}

func status(err error) int {
	switch {
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case err != nil:
		return exitFailed
	}
	return 0
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:           "demo",
		Short:         "Start a cluster of simulated nodes and watch gangs being scheduled",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.scheduler, "scheduler", "", "scheduler to run (default: kube-scheduler beside this program)")
	flags.BoolVar(&o.keep, "keep", false, "leave the cluster and the scheduler running afterwards, until Ctrl-C")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long everything that can run may take to do so")
	flags.StringVar(&o.record, "record", "", "`file` that is told what became of every pod, as JSON")
	return cmd
}
