// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command standby lets a scheduler wait to lead while many short jobs come and go, and judges what it keeps of them. In the end the
// scheduler takes over and has to place a gang.
//
//	go run ./test/standby --jobs 1000000 --plot standby.svg
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// options are what is done, and what is too much.
type options struct {
	// Jobs is how many come and go, Clients how many at a time.
	Jobs    int `json:"jobs"`
	Clients int `json:"clients"`
	// Samples is how often the standby is looked at.
	Samples int `json:"samples"`
	// Growth is how many bytes of live heap a job may leave behind, as a line through the samples of the second half has it, and
	// Goroutines how many more there may be in the second half than in the first.
	Growth     float64 `json:"growth"`
	Goroutines int     `json:"goroutines"`

	binary, plot, out, logs string
}

func bind(flags *pflag.FlagSet, o *options) {
	flags.IntVar(&o.Jobs, "jobs", 100_000, "jobs that come and go")
	flags.IntVar(&o.Clients, "clients", 16, "jobs that come and go at a time")
	flags.IntVar(&o.Samples, "samples", 50, "how often memory and goroutines are looked at")
	flags.Float64Var(&o.Growth, "growth", 4, "bytes of live heap that a job may leave behind")
	flags.IntVar(&o.Goroutines, "goroutines", 10, "how many more goroutines there may be in the second half than in the first")
	flags.StringVar(&o.binary, "scheduler", "", "the scheduler that waits (default: the one of this module)")
	flags.StringVar(&o.plot, "plot", "", "SVG file for a plot of memory and goroutines by jobs")
	flags.StringVar(&o.logs, "logs", "", "directory for the scheduler's log (default: a temporary one)")
	flags.StringVarP(&o.out, "output", "o", "text", "what is printed: text or json")
}

// leastSamples are needed for a line through the second half of them.
const leastSamples = 8

// check complains about flags that make no sense.
func (o *options) check() error {
	switch {
	case o.Samples < leastSamples:
		return fmt.Errorf("--samples is %d: at least %d tell growth from noise", o.Samples, leastSamples)
	case o.Jobs < o.Samples:
		return fmt.Errorf("--jobs is %d: it must be at least --samples, which is %d", o.Jobs, o.Samples)
	case o.Clients < 1:
		return fmt.Errorf("--clients is %d: it must be at least 1", o.Clients)
	case o.Growth <= 0 || o.Goroutines < 0:
		return fmt.Errorf("--growth is %v and --goroutines %d: the first must be above 0, the second at least 0", o.Growth, o.Goroutines)
	case o.out != "text" && o.out != "json":
		return fmt.Errorf("--output is %q: use text or json", o.out)
	}
	return nil
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "standby",
		Short: "Judge what a scheduler that waits to lead keeps of jobs that come and go",
		Long: "Judge what a scheduler that waits to lead keeps of jobs that come and go. They are of four kinds, in turn: a pod that is\n" +
			"deleted while it waits, one that is deleted while it runs, one that succeeds, and one with a PodGroup. Each has a name and\n" +
			"labels of its own. In the end the lease is given up, and the standby has to place a gang.",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
	}
	bind(cmd.Flags(), &o)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		klog.SetOutput(io.Discard) // client libraries tell of each write that meets another one
		klog.LogToStderr(false)
		r, err := run(cmd.Context(), o, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		return finish(cmd.OutOrStdout(), o, r)
	}
	return cmd
}

// run builds the programs and lets a standby wait.
func run(ctx context.Context, o options, progress io.Writer) (*result, error) {
	fmt.Fprintln(progress, "building localcluster and the scheduler (a first build takes minutes)")
	if _, err := localcluster.Build(ctx); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "standby")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a leftover directory does no harm
	if o.binary == "" {
		if o.binary, err = schedulerprocess.Build(ctx, dir); err != nil {
			return nil, err
		}
	}
	if o.logs == "" {
		o.logs = dir
	} else if err := os.MkdirAll(o.logs, 0o755); err != nil {
		return nil, err
	}
	return wait(ctx, o, progress)
}

// wait opens a stage and plays on it.
func wait(ctx context.Context, o options, progress io.Writer) (r *result, err error) {
	s, err := open(ctx, o)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.play(ctx, progress)
}

// finish reports, and returns an error if the standby kept too much.
func finish(out io.Writer, o options, r *result) error {
	if o.plot != "" {
		if err := draw(o.plot, r.Samples); err != nil {
			return err
		}
	}
	if o.out == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(r); err != nil {
			return err
		}
	} else if err := tabulate(out, r); err != nil {
		return err
	}
	return o.judge(r)
}

// seconds is a duration as reports have it.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
