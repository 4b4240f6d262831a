// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command harness measures the workloads of upstream's scheduler_perf, and ours of the same kind, with stock kube-scheduler
// and with Caldera compiled into it: in turn, each run in a process with an etcd and an API server of its own.
//
//	go run ./test/perf/harness --only 'SchedulingBasic|Gangs' --runs 3
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/caldera-scheduler/caldera/test/perf/harness/workload"
	"github.com/caldera-scheduler/caldera/test/perf/harness/workload/processor"
)

// options are the command's flags.
type options struct {
	only       string
	schedulers []string
	runs       int
	tiny       bool
	short      bool
	out        string
	temp       string
	timeout    time.Duration
	profile    bool
	together   bool
}

func main() {
	var o options
	cmd := &cobra.Command{
		Use:          "harness",
		Short:        "Measure the workloads of scheduler_perf with stock kube-scheduler and with Caldera",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.only, "only", "", "measure only workloads whose name, such as SchedulingBasic/5000Nodes_10000Pods, this regular expression matches")
	flags.StringSliceVar(&o.schedulers, "schedulers", nil, "measure only these: stock, compiled-in, batch; control is stock once more, to see what chance does")
	flags.IntVar(&o.runs, "runs", 3, "counted runs of each scheduler")
	flags.BoolVar(&o.tiny, "tiny", false, "measure the tiny workload of each case, to see that all is well")
	flags.BoolVar(&o.short, "short", false, "measure the short workload of each case, for many rounds")
	flags.StringVar(&o.out, "out", filepath.Join("_output", "perf"), "directory for what the harness finds, as JSON, and for logs")
	flags.StringVar(&o.temp, "temp", memory(), "directory for the files of etcd and the API server; its disk should be memory")
	flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long one run may take")
	flags.BoolVar(&o.profile, "profile", false, "keep CPU profiles, too, of all that runs in the process: API server, scheduler and harness")
	flags.BoolVar(&o.together, "together", false, "run the schedulers of a round at the same time, each on its share of the processors, which they exchange from round to round: ratios are not disturbed by what else the machine does")
	cmd.MarkFlagsMutuallyExclusive("tiny", "short")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cmd.ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// memory is where Linux keeps files in memory; elsewhere it is where temporary files are.
func memory() string {
	const shared = "/dev/shm"
	if info, err := os.Stat(shared); err == nil && info.IsDir() {
		return shared
	}
	return os.TempDir()
}

func run(ctx context.Context, o options) error {
	if o.runs < 1 {
		return errors.New("--runs must be at least 1")
	}
	workloads, err := choose(o)
	if err != nil {
		return err
	}
	for _, w := range workloads {
		if _, err := o.shares(len(w.Schedulers), 0); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "building etcd and the harness (a first build takes minutes)")
	runner := &workload.Runner{Out: o.out, Temp: o.temp, Timeout: o.timeout, Profile: o.profile}
	if err := runner.Build(ctx, filepath.Join("_output", "bin")); err != nil {
		return err
	}
	table := newTable(os.Stdout, o.runs)
	var failed []error
	for _, w := range workloads {
		runs, err := measure(ctx, runner, w, o)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = append(failed, err)
		}
		table.add(w, runs)
	}
	table.average()
	return errors.Join(table.write(filepath.Join(o.out, "table.md")), errors.Join(failed...))
}

// choose returns what of the list is to be measured.
func choose(o options) ([]workload.Workload, error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("--only: %w", err)
	}
	for _, s := range o.schedulers {
		if !slices.Contains(workload.Schedulers, workload.Scheduler(s)) {
			return nil, fmt.Errorf("--schedulers: there is no %q: use some of %v", s, workload.Schedulers)
		}
	}
	all, err := workload.List()
	if err != nil {
		return nil, err
	}
	var chosen []workload.Workload
	for _, w := range all {
		switch {
		case o.tiny:
			w = w.Smallest()
		case o.short:
			w = w.Shorter()
		}
		if len(o.schedulers) > 0 {
			w = w.By(o.schedulers)
		}
		if only.MatchString(w.String()) && w.Name != "" && len(w.Schedulers) > 0 {
			chosen = append(chosen, w)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("--only %q, --schedulers %q and the size leave nothing to measure; see test/perf/harness/workload/list.yaml", o.only, o.schedulers)
	}
	return chosen, nil
}

// round is one run of each scheduler; one that failed before is left out.
type round struct {
	runner     *workload.Runner
	workload   workload.Workload
	number     int
	schedulers []workload.Scheduler
	// shares are the processors of each, if they run together.
	shares [][]int
}

// outcome is what came of a run.
type outcome struct {
	workload.Figures
	err error
}

// run returns what came of each run, as the schedulers are ordered. Who starts first changes when each has had all processors.
func (r *round) run(ctx context.Context) []outcome {
	outcomes := make([]outcome, len(r.schedulers))
	first := (r.number - 1) / len(r.schedulers)
	var running sync.WaitGroup
	for k := range r.schedulers {
		i := (first + k) % len(r.schedulers)
		s := r.schedulers[i]
		one := func(processors ...int) {
			f, err := r.runner.Measure(ctx, r.workload, s, r.number, processors...)
			outcomes[i] = outcome{f, err}
			if err == nil {
				fmt.Fprintf(os.Stderr, "  %s: %d pods, %.0f pods/s, first bind after %.0f ms\n", s, f.Bound, f.Rate, f.FirstBind*1000)
			}
		}
		if r.shares == nil {
			one()
		} else {
			running.Go(func() { one(r.shares[i]...) })
		}
	}
	running.Wait()
	return outcomes
}

// measure runs a workload with each scheduler in turn, or with all together, so many times. A scheduler that failed is not run again; its
// runs are left out.
func measure(ctx context.Context, r *workload.Runner, w workload.Workload, o options) (map[workload.Scheduler][]workload.Figures, error) {
	results := map[workload.Scheduler][]workload.Figures{}
	left := w.Schedulers
	var errs []error
	for i := range o.runs {
		if len(left) == 0 {
			break
		}
		shares, err := o.shares(len(left), i)
		if err != nil {
			return nil, err
		}
		next := round{runner: r, workload: w, number: i + 1, schedulers: left, shares: shares}
		fmt.Fprintf(os.Stderr, "%s, run %d of %d: %v\n", w, i+1, o.runs, left)
		outcomes := next.run(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		left = nil
		for k, s := range next.schedulers {
			if err := outcomes[k].err; err != nil {
				errs = append(errs, err)
				delete(results, s)
				continue
			}
			left = append(left, s)
			results[s] = append(results[s], outcomes[k].Figures)
		}
	}
	return results, errors.Join(errs...)
}

// shares divides the processors among schedulers that run together; nil when they do not.
func (o options) shares(schedulers, round int) ([][]int, error) {
	if !o.together {
		return nil, nil
	}
	all, err := processor.List()
	if err != nil {
		return nil, err
	}
	shares := processor.Share(all, schedulers, round)
	if shares == nil && schedulers > 0 {
		return nil, fmt.Errorf("--together: %d schedulers do not get a processor each of %d: choose fewer by --schedulers", schedulers, len(all))
	}
	return shares, nil
}
