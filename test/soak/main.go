// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command soak lets queues live on the local control plane for a while: jobs arrive in waves, borrow, are reclaimed
// from, complete, lose nodes and are deleted, and controllers create again what was evicted. A monitor that sees only
// what the API server tells judges the scheduler all the time. The command fails if a promise was broken.
//
//	go run ./test/soak --duration 30m --nodes 200
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/soak/monitor"
)

// options are the command's flags.
type options struct {
	duration      time.Duration
	nodes, queues int
	seed          uint64
	conf          string
	logs          string
	binary        string
}

const (
	// tick is how often jobs are looked after, and the monitor is.
	tick = 200 * time.Millisecond
	// progressEvery is how often the program tells how it goes.
	progressEvery = 30 * time.Second
)

func main() {
	var o options
	cmd := &cobra.Command{
		Use:          "soak",
		Short:        "Let queues live and reclaim from each other, and judge the scheduler by what the API server tells",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := soak(cmd.Context(), o, cmd.OutOrStdout())
			return err
		},
	}
	flags := cmd.Flags()
	flags.DurationVar(&o.duration, "duration", 30*time.Minute, "how long the queues live")
	flags.IntVar(&o.nodes, "nodes", 200, "number of nodes, 8 cores and 32Gi each")
	flags.IntVar(&o.queues, "queues", 5, "number of queues")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of all that is random; the latencies of a run are not")
	flags.StringVar(&o.conf, "conf", "shares", "the scheduler's queues and tiers: shares, capacity, or a volcano-scheduler.conf")
	flags.StringVar(&o.logs, "logs", "", "directory for the scheduler's log (default: a temporary one)")
	flags.StringVar(&o.binary, "scheduler", "", "run this build of the scheduler (default: build it)")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cmd.ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// soak runs one life from beginning to end, and returns what the monitor saw. The error tells of promises that were broken.
func soak(ctx context.Context, o options, out io.Writer) (seen monitor.Figures, err error) {
	if o.nodes < 2 || o.queues < 2 || o.duration < 10*time.Second {
		return seen, errors.New("--nodes and --queues must be at least 2, --duration at least 10s")
	}
	conf, err := readConf(o.conf)
	if err != nil {
		return seen, err
	}
	klog.SetOutput(io.Discard) // Client libraries tell of each write that meets another one.
	klog.LogToStderr(false)
	s := &stage{}
	defer func() { err = errors.Join(err, s.strike()) }()
	if err := s.build(ctx, o, conf, out); err != nil {
		return seen, err
	}
	config := monitor.Defaults()
	config.ByObject = conf.byObject
	w, err := newWorld(ctx, s, o, monitor.New(config))
	if err != nil {
		return seen, err
	}
	stopWatching, err := w.watch(ctx)
	if err != nil {
		return seen, err
	}
	defer stopWatching()
	r := &report{out: out, options: o, conf: conf, begun: time.Now(), log: s.scheduler.LogFile}
	if err := w.live(ctx, s, r); err != nil {
		return seen, err
	}
	figures, err := s.asker.ask(ctx, w.monitor)
	if err != nil {
		return seen, err
	}
	seen = w.monitor.Figures()
	r.final(w, seen, figures)
	usage, err := s.stopScheduler()
	if err != nil {
		return seen, err
	}
	r.usage(usage)
	return seen, r.verdict(w.monitor.Violations(), s.asker)
}

// live plays until the time is over. What was begun by then is given the time to be judged.
func (w *world) live(ctx context.Context, s *stage, r *report) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	told := time.Now()
	defer w.finish()
	for now := range ticks(ctx, ticker) {
		if err := s.ended(); err != nil {
			return err
		}
		w.monitor.Tick(now)
		if now.Sub(r.begun) > w.options.duration {
			return nil
		}
		w.step(now)
		if now.Sub(told) >= min(progressEvery, w.options.duration/4) {
			told = now
			figures, err := s.asker.ask(ctx, w.monitor)
			if err != nil {
				return err
			}
			r.progress(now, w, figures)
			r.evidence(w.monitor.Violations(), s.asker)
		}
	}
	return context.Cause(ctx)
}

// ticks yields the times of a ticker until the context ends.
func ticks(ctx context.Context, t *time.Ticker) func(yield func(time.Time) bool) {
	return func(yield func(time.Time) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if !yield(time.Now()) {
					return
				}
			}
		}
	}
}

// usageLine is what a process consumed.
func usageLine(u schedulerprocess.Usage) string {
	return fmt.Sprintf("%.1f CPU seconds, peak memory %d MB", u.CPU.Seconds(), u.PeakMemory>>20)
}
