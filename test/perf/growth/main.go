// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command growth measures what the scheduler does again and again on clusters of more and more nodes, each with ten pods, beside 100,000 jobs that
// wait in 1,000 queues. All of it is in one process: kube-scheduler's cache and plugins, Caldera's model, planner and dispatcher, and objects in memory.
// There is no API server, so that nothing is bound. It prints how long each operation takes, by how much that grows, and what nodes, pods and queues take
// of the memory, and draws a plot.
//
//	go run ./test/perf/growth --nodes 1000,5000,50000
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/caldera-scheduler/caldera/test/perf/median"
)

// options are the flags.
type options struct {
	nodes   []int
	queues  int
	jobs    int
	repeat  int
	seconds float64
	output  string
	plot    string
	profile string
	only    string
	from    string
	whatIf  bool
}

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
		Use:          "growth",
		Short:        "Measure what grows with the cluster",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), o, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.IntSliceVar(&o.nodes, "nodes", []int{1000, 2000, 5000, 10_000, 20_000, 50_000}, "numbers of nodes, with ten pods each")
	flags.IntVar(&o.queues, "queues", 1000, "in how many queues jobs wait, a gang of 100 in each")
	flags.IntVar(&o.jobs, "jobs", 100_000, "how many jobs wait, the gangs included")
	flags.IntVar(&o.repeat, "repeat", 5000, "how often each operation is done at most; the fastest counts")
	flags.Float64Var(&o.seconds, "seconds", 2, "how long each operation is repeated at most, in seconds; it is done three times at least")
	flags.StringVarP(&o.output, "output", "o", "table", "how it is printed: table or json")
	flags.StringVar(&o.plot, "plot", "", "an SVG file for the plot; empty: none")
	flags.StringVar(&o.profile, "profile", "", "a directory for a CPU profile of each operation and size; empty: none")
	flags.StringVar(&o.only, "only", "", "measure only the operations whose name contains this")
	flags.BoolVar(&o.whatIf, "what-if", false, "measure instead what it takes to find out what would have a job start, beside --jobs gangs that wait; --queues does not count")
	flags.StringVar(&o.from, "from", "", "a file of --output json to print and draw, instead of measuring anything")
	return cmd
}

func run(ctx context.Context, o options, out, progress io.Writer) error {
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("flag --output is %q: set it to table or json", o.output)
	}
	if o.from == "" && (len(o.nodes) == 0 || slices.Min(o.nodes) < roomy || o.queues < 1 || o.jobs < o.queues) {
		return fmt.Errorf("flags --nodes %v, --queues %d, --jobs %d: set at least one size of %d nodes or more, one queue, and as many jobs as queues", o.nodes, o.queues, o.jobs, roomy)
	}
	all, err := o.figures(ctx, progress)
	if err != nil {
		return err
	}
	if o.plot != "" {
		if err := draw(o.plot, all); err != nil {
			return err
		}
	}
	if o.output == "json" {
		return writeJSON(out, all)
	}
	return writeTable(out, all)
}

// figures measures all sizes, or reads what was measured before.
func (o options) figures(ctx context.Context, progress io.Writer) (all []result, err error) {
	if o.from != "" {
		return readJSON(o.from)
	}
	for _, nodes := range o.nodes {
		r, err := measure(ctx, o, nodes, func(what string) {
			fmt.Fprintf(progress, "%s  %d nodes: %s\n", time.Now().Format(time.TimeOnly), nodes, what)
		})
		if err != nil {
			return nil, err
		}
		all = append(all, r)
		// What the last size took is free before the next one is built.
		debug.FreeOSMemory()
	}
	return all, nil
}

// result is what was measured on a cluster of a size.
type result struct {
	Nodes      int        `json:"nodes"`
	Pods       int        `json:"pods"`
	Queues     int        `json:"queues"`
	Jobs       int        `json:"jobs"`
	Start      float64    `json:"startSeconds"`
	Memory     memory     `json:"memoryBytes"`
	Operations []measured `json:"operations"`
}

// measured is how long an operation took.
type measured struct {
	Name    string        `json:"name"`
	Fastest time.Duration `json:"fastestNanoseconds"`
	Median  time.Duration `json:"medianNanoseconds"`
	Times   int           `json:"times"`
	Limit   time.Duration `json:"limitNanoseconds,omitempty"`
}

// measure builds a cluster and does each operation on it, some times.
func measure(ctx context.Context, o options, nodes int, say func(string)) (result, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	stop, err := profiling(o.profile, fmt.Sprintf("building-%d", nodes))
	if err != nil {
		return result{}, err
	}
	w, ops := &world{size: size{nodes: nodes, queues: o.queues, jobs: o.jobs}}, whatIf()
	if !o.whatIf {
		ops = operations()
		w, err = newWorld(ctx, w.size, say)
	}
	stop()
	if err != nil {
		return result{}, err
	}
	defer w.stopTrials()
	r := result{Nodes: nodes, Pods: nodes * podsOnNode, Queues: o.queues, Jobs: o.jobs, Memory: w.memory, Start: w.began.Seconds()}
	for _, op := range ops {
		if !op.matches(o.only) {
			continue
		}
		m, err := op.measure(ctx, o, w)
		if err != nil {
			return result{}, fmt.Errorf("%s, on %d nodes: %w", op.name, nodes, err)
		}
		say(fmt.Sprintf("%s: %s, %d times%s", op.name, round(m.Fastest), m.Times, w.said))
		w.said = ""
		r.Operations = append(r.Operations, m)
	}
	return r, nil
}

// measure does an operation some times.
func (op *operation) measure(ctx context.Context, o options, w *world) (m measured, err error) {
	stop, err := profiling(o.profile, fmt.Sprintf("%s-%d", op.name, w.nodes))
	if err != nil {
		return measured{}, err
	}
	defer stop()
	const least = 3
	var took []float64
	for began := time.Now(); len(took) < least || len(took) < o.repeat && time.Since(began).Seconds() < o.seconds; {
		if err := ctx.Err(); err != nil {
			return measured{}, fmt.Errorf("stopped: %w", err)
		}
		t, err := op.once(ctx, w)
		if err != nil {
			return measured{}, err
		}
		took = append(took, float64(t))
	}
	m = measured{Name: op.name, Limit: op.limit, Times: len(took), Median: time.Duration(median.Of(took)), Fastest: time.Duration(took[0])}
	for _, t := range took {
		m.Fastest = min(m.Fastest, time.Duration(t))
	}
	return m, nil
}

// profiling writes a CPU profile into a directory, if there is one, until stop is called.
func profiling(dir, name string) (stop func(), err error) {
	if dir == "" {
		return func() {}, nil
	}
	f, err := os.Create(profileFile(dir, name))
	if err != nil {
		return nil, fmt.Errorf("writing a profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("writing a profile: %w", err)
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}
