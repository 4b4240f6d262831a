// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command compare measures schedulers against each other on the local control plane: whole runs, in turn, same machine, same client
// limits. Pods are created first, then the scheduler is started. Raw figures and plots are kept in a directory.
//
//	go run ./test/perf/compare --nodes 1000,5000 --gangs 50x100 --contenders caldera,stock,limit
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// options are the flags.
type options struct {
	nodes      []int
	shapes     []string
	bound      int
	spread     string
	contenders []string
	others     []string
	queues     int
	tiers      string
	runs       int
	qps        int
	logs       string
	out        string
	binary     string
	profile    int
	views      int
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
		Use:   "compare",
		Short: "Compare schedulers in whole runs",
		Long: "Compare schedulers in whole runs. Contenders are\n" + describe() + `
and those of --other, which names a program, what pods it is given (plain, alone, volcano, native or batch-native) and its command line, in which
{kubeconfig} and {qps} are replaced:
  --other 'vc:volcano=/usr/bin/vc-scheduler --kubeconfig={kubeconfig} --kube-api-qps={qps} --scheduler-conf=/etc/volcano.conf'`,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.IntSliceVar(&o.nodes, "nodes", []int{1000}, "numbers of nodes, 32 cores and 256Gi each")
	flags.StringSliceVar(&o.shapes, "gangs", []string{"50x100"}, "how many gangs, and of how many pods, each asking for 1 core and 1Gi")
	flags.IntVar(&o.bound, "bound", 0, "pods that have their nodes before the scheduler is started, in gangs of 100 where there are gangs")
	flags.StringVar(&o.spread, "spread", "", "a label of nodes over whose values the pods of each gang must be spread evenly, such as kubernetes.io/hostname")
	flags.StringSliceVar(&o.contenders, "contenders", []string{"caldera", "stock"}, "what is compared")
	flags.StringArrayVar(&o.others, "other", nil, "another scheduler to compare, NAME:PODS=COMMAND LINE")
	flags.IntVar(&o.queues, "queues", 10, "over how many queues of different weights the contender queues spreads the gangs")
	flags.StringVar(&o.tiers, "tiers", "manifests/volcano/gpu-training.conf", "the volcano-scheduler.conf of the contender tiers")
	flags.IntVar(&o.runs, "runs", 3, "counted runs of each contender")
	flags.IntVar(&o.qps, "qps", 5000, "client-side request limit of all schedulers, requests/s")
	flags.StringVar(&o.logs, "logs", "", "directory for the schedulers' logs (default: a temporary one)")
	flags.StringVar(&o.out, "out", "_output/compare", "directory for the raw figures and the plots")
	flags.StringVar(&o.binary, "binary", "", "measure this build of Caldera instead of the checkout's")
	flags.IntVar(&o.profile, "profile", 0, "keep CPU profiles of so many seconds, and heap profiles at their end, of kube-schedulers with --out")
	flags.IntVar(&o.views, "views", 100, "how many times a second the contender viewed is asked for its queues")
	cmd.AddCommand(newLimitCommand())
	return cmd
}

func run(ctx context.Context, o options) error {
	scenarios, err := o.scenarios()
	if err != nil {
		return err
	}
	contenders, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("%d cores of %s, client limit %d requests/s, medians of %d runs\n", runtime.NumCPU(), runtime.GOARCH, o.qps, o.runs)
	var records []record
	for _, s := range scenarios {
		got, err := runScenario(ctx, o, s, contenders)
		records = append(records, got...)
		if err != nil {
			return err
		}
		report(os.Stdout, s, contenders, got)
		// After each, so that what was measured outlives an interrupt.
		if err := keep(o.out, records); err != nil {
			return err
		}
	}
	return plotAll(o.out, contenders, records)
}

// runScenario measures the contenders in turn.
func runScenario(ctx context.Context, o options, s scenario, contenders []contender) ([]record, error) {
	var records []record
	for i := range o.runs {
		for _, c := range contenders {
			fmt.Fprintf(os.Stderr, "%s, run %d of %d: %s\n", s, i+1, o.runs, c.name)
			r, err := measure(ctx, o, s, c)
			if err != nil {
				return records, fmt.Errorf("running %s: %w", c.name, err)
			}
			fmt.Fprintf(os.Stderr, "  %s\n", r)
			records = append(records, record{Scenario: s, Contender: c.name, Run: i + 1, Result: r})
		}
	}
	return records, nil
}

// scenario is what is placed, and on what.
type scenario struct {
	Nodes int `json:"nodes"`
	Gangs int `json:"gangs"`
	Size  int `json:"size"`
	// Bound is how many pods have a node before the scheduler is started.
	Bound int `json:"bound,omitempty"`
	// Spread is the label of nodes over whose values the pods of a gang must be spread evenly; empty: anyhow.
	Spread string `json:"spread,omitempty"`
}

func (s scenario) String() string {
	text := fmt.Sprintf("%d nodes, %d gangs of %d", s.Nodes, s.Gangs, s.Size)
	if s.Bound > 0 {
		text += fmt.Sprintf(" after %d bound pods", s.Bound)
	}
	if s.Spread != "" {
		text += ", spread by " + s.Spread
	}
	return text
}

func (s scenario) pods() int { return s.Gangs * s.Size }

// coresOfNode is how many of the pods one node holds.
const coresOfNode = 32

// scenarios are all combinations of nodes and gangs.
func (o options) scenarios() ([]scenario, error) {
	if o.runs < 1 || o.qps < 1 || o.bound < 0 {
		return nil, fmt.Errorf("--runs is %d, --qps %d and --bound %d: they must be at least 1, 1 and 0", o.runs, o.qps, o.bound)
	}
	var list []scenario
	for _, nodes := range o.nodes {
		for _, shape := range o.shapes {
			s := scenario{Nodes: nodes, Bound: o.bound, Spread: o.spread}
			if _, err := fmt.Sscanf(strings.TrimSpace(shape), "%dx%d", &s.Gangs, &s.Size); err != nil || s.Gangs < 1 || s.Size < 1 {
				return nil, fmt.Errorf("--gangs has %q: write how many gangs and of how many pods, such as 50x100", shape)
			}
			if s.pods()+s.Bound > nodes*coresOfNode {
				return nil, fmt.Errorf("%s: the nodes hold %d pods only", s, nodes*coresOfNode)
			}
			list = append(list, s)
		}
	}
	return list, nil
}
