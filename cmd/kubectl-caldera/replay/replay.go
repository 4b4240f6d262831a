// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replay is the command "kubectl caldera replay".
package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/replay"
	"github.com/caldera-scheduler/caldera/pkg/replay/report"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
	"github.com/caldera-scheduler/caldera/pkg/replay/yardstick"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// begin is when every replay begins: what depends on the date is the same each time.
var begin = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)

// shipped is the name of the column for the configuration that Caldera ships.
const shipped = "caldera"

// flags are the command's flags.
type flags struct {
	configs    []string
	yardsticks []string
	load       float64
	compress   float64
	gangs      string
	tick       time.Duration
	checkpoint time.Duration
	partition  bool
	ends       string
	seeds      int
	output     string
	verbose    int
}

// New returns the command.
func New() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "replay SCENARIO.yaml",
		Short: "Play a trace of jobs through the scheduler in virtual time",
		Long: `Play a trace of jobs through the scheduler in virtual time.

The real scheduler runs in this process, with its plugins and configuration. Jobs come when the trace says so, hold their nodes
as long as they did there, and are gone; the clock jumps from one event to the next, so that months take minutes. It prints how
long jobs waited, how full the cluster was, how fair queues were treated, and who was evicted. No cluster is needed or touched.

The scenario names the files of nodes, queues and jobs, and what of them is played. With several --config, and --yardstick, the
same trace is played by each, side by side. Equal input gives equal output.

Output: table; json; html, one page with plots; csv, what was so in each hour; jobs, what became of each job.`,
		Example: `  # A week of Microsoft's Philly cluster
  kubectl caldera replay test/traces/philly-week.yaml

  # What would my tiers do with it, at a load of 1.1, beside what Caldera ships and plain FIFO?
  kubectl caldera replay test/traces/philly-week.yaml --load 1.1 --config default --config volcano-scheduler.conf --yardstick fifo

  # Two configurations as a page with plots
  kubectl caldera replay test/traces/philly-queues.yaml --config a.conf --config b.conf -o html > replay.html`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	set := cmd.Flags()
	set.StringArrayVar(&f.configs, "config", nil, "KubeSchedulerConfiguration or volcano-scheduler.conf to schedule by, or \"default\" for what Caldera ships; "+
		"repeat it to compare. Write NAME=FILE to name a column. Default: what Caldera ships, unless there is a --yardstick.")
	set.StringSliceVar(&f.yardsticks, "yardstick", nil, "Rules to compare with, which see GPUs alone: "+strings.Join(yardstick.Names(), ", ")+".")
	set.Float64Var(&f.load, "load", 0, "Have jobs come so fast that they ask for this part of the GPUs, like 0.9. Default: the scenario's.")
	set.Float64Var(&f.compress, "compress", 0, "Have jobs come so many times as fast, like 1.4. Default: the scenario's.")
	set.StringVar(&f.gangs, "gangs", "", fmt.Sprintf("How jobs are divided into pods: %s, %s or %s. Default: the scenario's.", trace.AsListed, trace.Packed, trace.PodPerGPU))
	set.DurationVar(&f.tick, "tick", 0, "How finely time is divided. Default: the scenario's, or "+replay.DefaultTick.String()+".")
	set.DurationVar(&f.checkpoint, "checkpoint", 0, "Evicted jobs keep what they had done by the last multiple of this. Default: they keep nothing.")
	set.BoolVar(&f.partition, "partitioned", false, "No queue may have more than it is due.")
	set.StringVar(&f.ends, "ends", "", fmt.Sprintf("Tell the scheduler when pods end: %s by activeDeadlineSeconds, %s by annotation. Default: the scenario's.", trace.Enforced, trace.Declared))
	set.IntVar(&f.seeds, "seeds", 1, "Play an inflated list so many times, with the scenario's seed and those after it, and show the means of what is allocated.")
	set.StringVarP(&f.output, "output", "o", report.Formats()[0], "How to write the report: "+strings.Join(report.Formats(), ", ")+".")
	set.IntVarP(&f.verbose, "v", "v", -1, "Verbosity of the scheduler's log on standard error; -1: errors only.")
	return cmd
}

// run plays the trace by each configuration and yardstick, and writes the report.
func (f *flags) run(cmd *cobra.Command, file string) error {
	if err := f.check(); err != nil {
		return err
	}
	s, err := trace.LoadScenario(file)
	if err != nil {
		return err
	}
	t, err := f.trace(s)
	if err != nil {
		return err
	}
	deciders, err := f.deciders()
	if err != nil {
		return err
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(f.verbose), textlogger.Output(cmd.ErrOrStderr())))
	progress := newProgress(cmd.ErrOrStderr())
	defer progress.clear()
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	r := report.New(name, s.About, t)
	traces, err := f.seeded(s, t)
	if err != nil {
		return err
	}
	for _, d := range deciders {
		var played []report.Played
		for _, t := range traces {
			progress.name = d.name
			began := time.Now()
			result, err := replay.Run(klog.NewContext(cmd.Context(), logger), t, replay.Options{
				Config: d.config, Rule: d.rule, Tick: cmp.Or(f.tick, s.Tick.Duration), Checkpoint: f.checkpoint, Partitioned: s.Partitioned || f.partition,
				Ends: cmp.Or(trace.Ends(f.ends), s.Ends), Now: begin, Progress: progress.show,
			})
			if err != nil {
				return fmt.Errorf("by %s: %w", d.name, err)
			}
			progress.clear()
			took := time.Since(began)
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d pods bound in %d ticks, %s; %.2f ms a job\n", d.name, result.Cost.Bound, result.Cost.Ticks,
				took.Round(100*time.Millisecond), took.Seconds()*1000/float64(len(t.Jobs)))
			played = append(played, report.Played{Trace: t, History: result.History})
		}
		r.Add(d.name, played[0], played[1:]...)
	}
	return report.Write(cmd.OutOrStdout(), f.output, r)
}

// seeded returns a trace for each seed. The first one has been read already.
func (f *flags) seeded(s *trace.Scenario, first *trace.Trace) ([]*trace.Trace, error) {
	traces := []*trace.Trace{first}
	for range f.seeds - 1 {
		if s.Inflate == nil {
			return nil, fmt.Errorf("--seeds is %d: only an inflated list has any, leave it out", f.seeds)
		}
		s.Inflate.Seed++
		t, err := s.Trace()
		if err != nil {
			return nil, err
		}
		traces = append(traces, t)
	}
	return traces, nil
}

// check finds flags that cannot be.
func (f *flags) check() error {
	var errs []error
	if !slices.Contains(report.Formats(), f.output) {
		errs = append(errs, fmt.Errorf("--output is %q: use one of %s", f.output, strings.Join(report.Formats(), ", ")))
	}
	if f.load != 0 && f.compress != 0 {
		errs = append(errs, fmt.Errorf("--load is %g and --compress is %g: use one of them", f.load, f.compress))
	}
	if !trace.Ends(f.ends).Valid() {
		errs = append(errs, fmt.Errorf("--ends is %q: use %s or %s", f.ends, trace.Enforced, trace.Declared))
	}
	if f.seeds < 1 {
		errs = append(errs, fmt.Errorf("--seeds is %d: use 1 or more", f.seeds))
	}
	if f.tick < 0 || f.checkpoint < 0 {
		errs = append(errs, fmt.Errorf("--tick is %s and --checkpoint is %s: use times of 0s or more", f.tick, f.checkpoint))
	}
	for _, name := range f.yardsticks {
		if !slices.Contains(yardstick.Names(), name) {
			errs = append(errs, fmt.Errorf("--yardstick is %q: use one of %s", name, strings.Join(yardstick.Names(), ", ")))
		}
	}
	return errors.Join(errs...)
}

// trace reads the scenario with what the flags say otherwise.
func (f *flags) trace(s *trace.Scenario) (*trace.Trace, error) {
	if f.load != 0 || f.compress != 0 {
		s.Load, s.Compress = f.load, f.compress
	}
	if f.gangs != "" {
		s.Gangs = trace.Gangs(f.gangs)
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	return s.Trace()
}

// decider is who decides in a replay. It has either a scheduler's configuration or a rule.
type decider struct {
	name   string
	config *schedulerconfig.KubeSchedulerConfiguration
	rule   *yardstick.Rule
}

// deciders are the configurations and rules, in the order given.
func (f *flags) deciders() ([]decider, error) {
	var all []decider
	configs := f.configs
	if len(configs) == 0 && len(f.yardsticks) == 0 {
		configs = []string{"default"}
	}
	for _, flag := range configs {
		name, file, named := strings.Cut(flag, "=")
		if !named {
			file = flag
			name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		}
		d := decider{name: name}
		var err error
		if file == "default" {
			if !named {
				d.name = shipped
			}
			d.config, err = profile.Only.Config()
		} else {
			d.config, err = read(file)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	for _, name := range f.yardsticks {
		all = append(all, decider{name: name, rule: yardstick.Named(name)})
	}
	seen := map[string]bool{}
	for _, d := range all {
		if seen[d.name] {
			return nil, fmt.Errorf("two columns would be called %s: give one of them another name by --config NAME=FILE", d.name)
		}
		seen[d.name] = true
	}
	return all, nil
}

// read reads a configuration.
func read(file string) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return profile.Read(file, data, profile.Only)
}

// eraseLine returns the cursor to the beginning of the line and erases it.
const eraseLine = "\r\x1b[K"

// How often it is said how far a replay is, on a terminal and elsewhere.
const (
	lively  = 200 * time.Millisecond
	quietly = 10 * time.Second
)

// progress says how far a replay is: on a terminal in a line that changes, elsewhere in a line now and then.
type progress struct {
	out      io.Writer
	terminal bool
	name     string
	drawn    bool
	last     time.Time
}

func newProgress(out io.Writer) *progress {
	file, ok := out.(*os.File)
	return &progress{out: out, terminal: ok && term.IsTerminal(int(file.Fd())), last: time.Now()}
}

// show is told how far a replay is.
func (p *progress) show(at replay.Progress) {
	line := fmt.Sprintf("%s: day %.1f of %.1f, %d of %d jobs came, %d wait, %d are done",
		p.name, at.Now.Hours()/24, at.Last.Hours()/24, at.Came, at.Jobs, at.Waiting, at.Done)
	switch {
	case p.terminal && time.Since(p.last) >= lively:
		fmt.Fprint(p.out, eraseLine+line)
		p.drawn, p.last = true, time.Now()
	case !p.terminal && time.Since(p.last) >= quietly:
		fmt.Fprintln(p.out, line)
		p.last = time.Now()
	}
}

// clear takes the line away.
func (p *progress) clear() {
	if p.drawn {
		fmt.Fprint(p.out, eraseLine)
		p.drawn = false
	}
}
