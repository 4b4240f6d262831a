// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulate is the command "kubectl caldera simulate".
package simulate

import (
	"context"
	"errors"
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

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
	"github.com/caldera-scheduler/caldera/pkg/simulate/live"
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
	*leader.Flags
	live     bool
	changes  changes
	config   string
	rounds   int
	least    time.Duration
	recreate bool
	output   string
	at       string
	verbose  int
}

// long and examples are the help.
const (
	long = `Show what the scheduler would do with the objects of the cluster, or in YAML files.

The real scheduler runs in this process, with its plugins and configuration, on the Nodes, Queues, PodGroups, Pods and whatever else
scheduling looks at. With --live these are read from the cluster, and the configuration is that of the scheduler that leads there;
nothing is written. Else they are in the files, and no cluster is needed.
ReplicaSets, StatefulSets and Jobs are read for the gangs that they make of pods that there are; none is made for them.
It prints which pods are bound where, which jobs wait and why, and the figures of the queues.

FILE may hold many documents, and what "kubectl get -o yaml" writes; "-" is standard input. Of DIR all *.yaml files
are read. What the objects leave out is filled in as a cluster would: pods are in namespace default and pending,
PodGroups in queue default, queues open and of weight 1, priorities follow from PriorityClasses.

--add, --drain and --set change the objects when nothing more happens. What happens then is compared with what happens without that. For a
pod that is drained another one is created, unless it has no controller; then the pods leave one after the other. What is added is there at
once. --set takes queue.NAME.{weight,priority,parent,reclaimable,state} and
queue.NAME.{capability,deserved,guarantee}.RESOURCE; podgroup.[NAMESPACE/]NAME.{minMember,queue}; node.NAME.unschedulable,
node.NAME.allocatable.RESOURCE and node.NAME.labels.KEY. Without a value an amount or a label is taken out.

The simulation goes in rounds: the scheduler does all it can; then bound pods start to run and evicted pods are gone;
then the next round begins. It ends when a round changes nothing and --for has passed, or after --rounds.`
	examples = `  # What would happen if a node were drained, or this gang were submitted?
  kubectl caldera simulate --live --drain node-17
  kubectl caldera simulate --live --add gang.yaml

  # Would this limit let more jobs start?
  kubectl caldera simulate --live --set queue.research.capability.nvidia.com/gpu=64

  # What will happen on a copy of my nodes without anything else?
  kubectl get nodes -o yaml > nodes.yaml
  cat nodes.yaml gang.yaml | kubectl caldera simulate -

  # What would another configuration do with everything there is today?
  kubectl caldera snapshot > cluster.yaml
  kubectl caldera simulate cluster.yaml --config volcano-scheduler.conf

  # Three rounds, evicted pods come back, for a script
  kubectl caldera simulate scenario/ --rounds 3 --recreate -o json`
)

// New returns the command.
func New() *cobra.Command {
	f := flags{Flags: leader.NewFlags()}
	cmd := &cobra.Command{
		Use:     "simulate FILE|DIR|--live",
		Short:   "Show what the scheduler would do with the objects of the cluster, or in YAML files",
		Long:    long,
		Example: examples,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case f.live == (len(args) == 1):
				return errors.New("simulate what? Name a file, a directory or - for standard input, or say --live")
			case f.live:
				return f.run(cmd, "")
			}
			return f.run(cmd, args[0])
		},
	}
	f.Add(cmd, false)
	set := cmd.Flags()
	set.BoolVar(&f.live, "live", false, "Begin with the objects of the cluster, and schedule as its scheduler does unless --config is given.")
	f.changes.addFlags(set)
	set.StringVar(&f.config, "config", "", "KubeSchedulerConfiguration or volcano-scheduler.conf to schedule by. "+
		"Default: what the cluster's scheduler goes by with --live, "+volcanoConf+" in DIR, else what Caldera ships.")
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
	objects, err := f.read(cmd, path)
	if err != nil {
		return err
	}
	namespace, err := f.Scope()
	if err != nil {
		return err
	}
	complete, changes, err := f.changes.read(objects, now, namespace)
	if err != nil {
		return err
	}
	config, err := f.schedulerConfig(cmd, path)
	if err != nil {
		return err
	}
	logger := textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(f.verbose), textlogger.Output(cmd.ErrOrStderr())))
	progress := newProgress(cmd.ErrOrStderr())
	defer progress.clear()
	run := func(changes []change.Change) (*simulate.Result, error) {
		defer progress.clear()
		result, err := simulate.Run(klog.NewContext(cmd.Context(), logger), complete, simulate.Options{
			Config: config, Rounds: f.rounds, For: f.least, Recreate: f.recreate, Now: now, Progress: progress.show, Changes: changes,
		})
		if err != nil {
			return nil, fmt.Errorf("simulating: %w", err)
		}
		return result, nil
	}
	before, err := run(nil)
	if err != nil {
		return err
	}
	if len(changes) == 0 {
		return report.Write(cmd.OutOrStdout(), f.output, before)
	}
	after, err := run(changes)
	if err != nil {
		return err
	}
	return report.Compare(cmd.OutOrStdout(), f.output, report.Comparison{Without: before, With: after})
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

// read reads the objects of the cluster, a file, a directory or standard input.
func (f *flags) read(cmd *cobra.Command, path string) ([]scenario.Sourced, error) {
	if f.live {
		config, err := f.ToRESTConfig()
		if err != nil {
			return nil, err
		}
		return live.Read(cmd.Context(), config)
	}
	if path != stdin {
		return scenario.Load(path)
	}
	data, err := io.ReadAll(cmd.InOrStdin())
	if err != nil {
		return nil, fmt.Errorf("reading standard input: %w", err)
	}
	return scenario.Read("standard input", data)
}

// schedulerConfig reads the configuration: the one that was named, else the cluster's, else the directory's, else the shipped one.
func (f *flags) schedulerConfig(cmd *cobra.Command, path string) (config *schedulerconfig.KubeSchedulerConfiguration, err error) {
	file := f.config
	if file == "" && f.live {
		err = f.With(cmd, func(ctx context.Context, client *leader.Client) error {
			config, err = client.Configuration(ctx)
			return err
		})
		return config, err
	}
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
