// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Command compare measures Caldera against stock kube-scheduler on the local control plane: whole runs, alternating,
// same machine, same client limits. Caldera places gangs, stock places as many equal plain pods. Pods are created
// first, then the scheduler is started.
//
//	go run ./test/perf/compare --nodes 1000 --gangs 50 --size 100
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
)

// workload is what one comparison places, and on what.
type workload struct {
	nodes, gangs, size int
	// queues is how many queues the gangs are spread over in runs that compare that; 0: no such runs.
	queues int
	// tiers is a volcano-scheduler.conf by which Caldera is run, too; empty for none.
	tiers    string
	runs     int
	qps      int
	keepLogs string
	only     string
	binary   string
}

func main() {
	var w workload
	cmd := &cobra.Command{
		Use:          "compare",
		Short:        "Compare Caldera with stock kube-scheduler in whole runs",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE:         func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), w) },
	}
	flags := cmd.Flags()
	flags.IntVar(&w.nodes, "nodes", 1000, "number of nodes, 32 cores and 256Gi each")
	flags.IntVar(&w.gangs, "gangs", 50, "number of gangs")
	flags.IntVar(&w.size, "size", 100, "pods in a gang, each asking for 1 core and 1Gi")
	flags.IntVar(&w.queues, "queues", 0, "also run Caldera with the gangs spread over so many queues of different weights")
	flags.StringVar(&w.tiers, "tiers", "", "also run Caldera by this volcano-scheduler.conf")
	flags.IntVar(&w.runs, "runs", 3, "counted runs of each scheduler")
	flags.IntVar(&w.qps, "qps", 5000, "client-side request limit of both schedulers, requests/s")
	flags.StringVar(&w.keepLogs, "logs", "", "directory for the schedulers' logs (default: a temporary one)")
	flags.StringVar(&w.only, "only", "", "run only these, with commas between: caldera, queues, tiers, stock")
	flags.StringVar(&w.binary, "binary", "", "measure this build of Caldera instead of the checkout's")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cmd.ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

func run(ctx context.Context, w workload) error {
	if w.nodes < 1 || w.gangs < 1 || w.size < 1 || w.runs < 1 {
		return fmt.Errorf("--nodes, --gangs, --size and --runs must be at least 1")
	}
	contenders, err := prepare(ctx, w)
	if err != nil {
		return err
	}
	fmt.Printf("%d nodes, %d gangs of %d, %d cores of %s, client limit %d requests/s\n",
		w.nodes, w.gangs, w.size, runtime.NumCPU(), runtime.GOARCH, w.qps)
	results := map[string][]result{}
	for i := range w.runs {
		for _, c := range contenders {
			fmt.Fprintf(os.Stderr, "run %d of %d: %s\n", i+1, w.runs, c.name)
			r, err := measure(ctx, w, c)
			if err != nil {
				return fmt.Errorf("running %s: %w", c.name, err)
			}
			fmt.Fprintf(os.Stderr, "  %s\n", r)
			results[c.name] = append(results[c.name], r)
		}
	}
	report(os.Stdout, contenders, results)
	return nil
}

// contender is one of the schedulers compared.
type contender struct {
	name   string
	binary string
	config []byte
	gangs  bool
	// queues is the number of queues the gangs are spread over; 0: all are in the default queue.
	queues int
	// args are further arguments of the program.
	args []string
}

// prepare builds what is compared.
func prepare(ctx context.Context, w workload) ([]contender, error) {
	fmt.Fprintln(os.Stderr, "building localcluster and the schedulers (a first build takes minutes)")
	if _, err := localcluster.Build(ctx); err != nil {
		return nil, err
	}
	bin, err := filepath.Abs(filepath.Join("_output", "bin"))
	if err != nil {
		return nil, err
	}
	var list []contender
	for _, c := range []contender{
		{name: "caldera", binary: filepath.Join(bin, "kube-scheduler"), config: calderaConfig, gangs: true},
		{name: "queues", binary: filepath.Join(bin, "kube-scheduler"), config: calderaConfig, gangs: true, queues: w.queues},
		{name: "tiers", binary: filepath.Join(bin, "kube-scheduler"), config: calderaConfig, gangs: true, args: []string{"--volcano-conf=" + w.tiers}},
		{name: "stock", binary: filepath.Join(bin, "stock-kube-scheduler"), config: stockConfig},
	} {
		if w.only != "" && !slices.Contains(strings.Split(w.only, ","), c.name) || c.name == "queues" && w.queues == 0 || c.name == "tiers" && w.tiers == "" {
			continue
		}
		pkg := "./cmd/kube-scheduler"
		switch {
		case !c.gangs:
			pkg = "k8s.io/kubernetes/cmd/kube-scheduler"
		case w.binary != "":
			c.binary, pkg = w.binary, ""
		}
		if pkg != "" {
			if err := build(ctx, c.binary, pkg); err != nil {
				return nil, err
			}
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("--only is %q: use caldera, queues, tiers or stock", w.only)
	}
	return list, nil
}
