// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command demo shows what the scheduler does: it starts a local cluster of simulated nodes and the scheduler, applies
// manifests/examples, draws what becomes of them, and fails if any gang was started in part.
package main

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/internal/demo"
)

// options are the flags.
type options struct {
	demo.Options
	scheduler string
	keep      bool
}

func main() { demo.Main(newCommand()) }

func newCommand() *cobra.Command {
	o := options{Options: demo.Options{Clock: clock.RealClock{}}}
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
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long everything that can run may take to do so")
	flags.StringVar(&o.Record, "record", "", "`file` that is told what became of every pod, as JSON")
	return cmd
}
