// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command try shows what the scheduler does, without an API server: the scheduler with its shipped configuration, and upstream's controllers of Jobs and
// Deployments, on objects in memory. It plays what the demo plays, on the same screen, and fails if any gang was started in part.
//
// It is for a first look. An API server takes most of the time in which the demo is built for the first time.
package main

import (
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/internal/demo"
)

func main() { demo.Main(newCommand()) }

func newCommand() *cobra.Command {
	o := demo.Options{Clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use:           "try",
		Short:         "Watch the scheduler start gangs on simulated nodes, without an API server",
		Args:          cobra.NoArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long everything that can run may take to do so")
	flags.StringVar(&o.Record, "record", "", "`file` that is told what became of every pod, as JSON")
	return cmd
}
