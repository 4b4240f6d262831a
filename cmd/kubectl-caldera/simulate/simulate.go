// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulate is the command "kubectl caldera simulate".
package simulate

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/report"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// volcanoConf is the file of a directory that configures the scheduler when --config is not given.
const volcanoConf = "volcano-scheduler.conf"

// stdin is the path that stands for standard input.
const stdin = "-"

// flags are the command's flags.
type flags struct {
	config   string
	rounds   int
	least    time.Duration
	recreate bool
	output   string
	at       string
	verbose  int
}

// New returns the command.
func New() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "simulate FILE|DIR",
		Short: "Show what the scheduler would do with the objects in YAML files",
		Long: `Show what the scheduler would do with the objects in YAML files.

The real scheduler runs in this process, with its plugins and configuration, on the Nodes, Queues, PodGroups, Pods,
PriorityClasses, PodDisruptionBudgets, ResourceQuotas and Namespaces of the files; no cluster is needed or touched.
ReplicaSets, StatefulSets and Jobs are read for the gangs that they make of pods in the files; none is made for them.
It prints which pods are bound where, which jobs wait and why, and the figures of the queues.

FILE may hold many documents, and what "kubectl get -o yaml" writes; "-" is standard input. Of DIR all *.yaml files
are read. What the objects leave out is filled in as a cluster would: pods are in namespace default and pending,
PodGroups in queue default, queues open and of weight 1, priorities follow from PriorityClasses.

The simulation goes in rounds: the scheduler does all it can; then bound pods start to run and evicted pods are gone;
then the next round begins. It ends when a round changes nothing and --for has passed, or after --rounds.`,
		Example: `  # What would happen if this gang were submitted to an empty copy of my nodes?
  kubectl get nodes -o yaml > nodes.yaml
  cat nodes.yaml gang.yaml | kubectl caldera simulate -

  # The same with everything that runs today, under a Volcano configuration
  kubectl get nodes,pods,podgroups,queues,priorityclasses -A -o yaml > cluster.yaml
  kubectl caldera simulate cluster.yaml --config volcano-scheduler.conf

  # Three rounds, evicted pods come back, for a script
  kubectl caldera simulate scenario/ --rounds 3 --recreate -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0]) },
	}
	set := cmd.Flags()
	set.StringVar(&f.config, "config", "", "KubeSchedulerConfiguration or volcano-scheduler.conf to schedule by. "+
		"Default: "+volcanoConf+" in DIR, else what Caldera ships.")
	set.IntVar(&f.rounds, "rounds", 0, "Stop after so many rounds. Default: go on until a round changes nothing.")
	set.DurationVar(&f.least, "for", 0, "Simulate at least so much time, like 5m. A round lasts five seconds at least.")
	set.BoolVar(&f.recreate, "recreate", false, "Bring evicted pods back as new pods that wait, as their controllers would.")
	set.StringVarP(&f.output, "output", "o", report.Formats()[0], "How to write the result: "+strings.Join(report.Formats(), ", ")+".")
	set.StringVar(&f.at, "at", "", "Time at which the simulation begins, like 2026-01-31T12:00:00Z. Default: now.")
	set.IntVarP(&f.verbose, "v", "v", -1, "Verbosity of the scheduler's log on standard error; -1: errors only.")
	return cmd
}

// run simulates and writes the result.
func (f *flags) run(cmd *cobra.Command, path string) error {
	if !slices.Contains(report.Formats(), f.output) {
		return fmt.Errorf("--output is %q: use one of %s", f.output, strings.Join(report.Formats(), ", "))
	}
	if f.rounds < 0 {
		return fmt.Errorf("--rounds is %d: use 1 or more, or leave it out", f.rounds)
	}
	if f.least < 0 {
		return fmt.Errorf("--for is %s: use a time of 0s or more", f.least)
	}
	now, err := f.begin()
	if err != nil {
		return err
	}
	objects, err := read(cmd.InOrStdin(), path)
	if err != nil {
		return err
	}
	completed, err := scenario.Complete(objects, now)
	if err != nil {
		return err
	}
	config, err := f.schedulerConfig(path)
	if err != nil {
		return err
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(f.verbose), textlogger.Output(cmd.ErrOrStderr())))
	progress := newProgress(cmd.ErrOrStderr())
	defer progress.clear()
	result, err := simulate.Run(klog.NewContext(cmd.Context(), logger), completed, simulate.Options{
		Config: config, Rounds: f.rounds, For: f.least, Recreate: f.recreate, Now: now, Progress: progress.show,
	})
	if err != nil {
		return fmt.Errorf("simulating: %w", err)
	}
	progress.clear()
	return report.Write(cmd.OutOrStdout(), f.output, result)
}

// begin is the time at which the simulation begins.
func (f *flags) begin() (time.Time, error) {
	if f.at == "" {
		return time.Now(), nil
	}
	t, err := time.Parse(time.RFC3339, f.at)
	if err != nil {
		return time.Time{}, fmt.Errorf("--at is %q: write a time like 2026-01-31T12:00:00Z", f.at)
	}
	return t, nil
}

// read reads the objects of a file, a directory or standard input.
func read(in io.Reader, path string) ([]scenario.Sourced, error) {
	if path != stdin {
		return scenario.Load(path)
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("reading standard input: %w", err)
	}
	return scenario.Read("standard input", data)
}

// schedulerConfig reads the configuration: the one that was named, else the directory's, else the shipped one.
func (f *flags) schedulerConfig(path string) (*schedulerconfig.KubeSchedulerConfiguration, error) {
	file := f.config
	if file == "" {
		file = filepath.Join(path, volcanoConf)
		if _, err := os.Stat(file); path == stdin || err != nil {
			return profile.Only.Config()
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration: %w", err)
	}
	return profile.Read(file, data, profile.Only)
}
