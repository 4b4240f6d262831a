// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command wait measures what work that cannot run costs everybody else, on the local control plane with real processes. Others'
// pods end and are replaced all the time, hopeless work of one kind waits, and probes that fit somewhere are timed.
//
//	go run ./test/wait --row small --kinds pvc-missing,full-nodes --contenders caldera,stock
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "wait",
		Short: "Measure what work that cannot run costs everybody else",
		Long: "Measure what work that cannot run costs everybody else. Contenders are\n" + describeContenders() +
			"and NAME=PATH, another build of Caldera, or NAME:plain=PATH, another kube-scheduler, which is given plain pods.\n\n" +
			"Rows are sets of flags, which flags that are given override:\n" + describeRows() +
			"\nKinds of hopeless work, of which \"all\" is every one:\n" + describeKinds(),
		Args:         cobra.NoArgs,
		SilenceUsage: true,
	}
	bind(cmd.Flags(), &o)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := applyRow(cmd.Flags(), o.row); err != nil {
			return err
		}
		p, err := o.plan()
		if err != nil {
			return err
		}
		return run(cmd.Context(), p, cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

// run measures every kind with every contender, in turn, and reports. What was measured before an error is reported too.
func run(ctx context.Context, p plan, out, progress io.Writer) error {
	klog.SetOutput(io.Discard) // client libraries tell of each write that meets another one
	klog.LogToStderr(false)
	if err := p.build(ctx, progress); err != nil {
		return err
	}
	records, err := measureAll(ctx, p, progress)
	if len(records) == 0 {
		return err
	}
	return errors.Join(err, report(out, p, records))
}

func measureAll(ctx context.Context, p plan, progress io.Writer) ([]record, error) {
	var records []record
	for i := range p.Runs {
		for _, k := range p.kinds {
			for _, c := range p.contenders {
				if k.batchOnly && !c.batch {
					fmt.Fprintf(progress, "%s, %s: left out, only PodGroups make this kind hopeless\n", k.name, c.name)
					continue
				}
				fmt.Fprintf(progress, "%s, %s, run %d of %d\n", k.name, c.name, i+1, p.Runs)
				r, err := measure(ctx, p, k, c)
				if err != nil {
					return records, fmt.Errorf("running %s with %s: %w", c.name, k.name, err)
				}
				fmt.Fprintf(progress, "  %s\n", r)
				records = append(records, record{Contender: c.name, Kind: k.name, Run: i + 1, Result: r})
			}
		}
	}
	return records, nil
}
