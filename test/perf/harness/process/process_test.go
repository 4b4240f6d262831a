// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	_ "k8s.io/component-base/logs/json/register"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"

	"github.com/caldera-scheduler/caldera/test/perf/harness/process"
	"github.com/caldera-scheduler/caldera/test/perf/harness/workload"
)

// options are the flags that this binary has besides the harness's.
var options process.Options

func TestMain(m *testing.M) {
	flag.StringVar(&options.Workload, "workload", "", "file of the workload to measure")
	flag.StringVar(&options.Kubernetes, "kubernetes", "", "directory of upstream's module, as the go command has it")
	flag.BoolVar(&options.Caldera, "caldera", false, "compile Caldera's plugins into the scheduler")
	flag.BoolVar(&options.Kubelets, "kubelets", false, "have pods run when they are bound")
	flag.DurationVar(&options.Patience, "patience", time.Minute, "how long the pods of one step may take to be bound")
	flag.StringVar(&options.Binds, "binds", "", "file to write the times of binds to")
	if err := perf.InitTests(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// BenchmarkWorkload is what the command harness starts this binary for.
func BenchmarkWorkload(b *testing.B) {
	if options.Workload == "" {
		b.Skip("there is no workload: go run ./test/perf/harness starts this with one")
	}
	process.Run(b, options)
}

// Each tiny workload is run by the scheduler it was written for, which is the last one, and the first workload by all.
func TestTinyWorkloadsAreMeasured(t *testing.T) {
	t.Parallel()
	workloads, err := workload.List()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	runner := &workload.Runner{Binary: binary, Out: t.TempDir(), Timeout: 2 * time.Minute}
	if err := runner.Prepare(t.Context(), t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for i, w := range workloads {
		if w.Tiny == "" {
			continue
		}
		w = w.Smallest()
		schedulers := w.Schedulers
		if i > 0 {
			schedulers = schedulers[len(schedulers)-1:]
		}
		for _, s := range schedulers {
			t.Run(fmt.Sprintf("%s with %s", w, s), func(t *testing.T) {
				t.Parallel()
				f, err := runner.Measure(t.Context(), w, s, 1)
				if err != nil {
					t.Fatal(err)
				}
				if f.Created == 0 || f.Bound < f.Created || f.Rate <= 0 || f.CPU <= 0 || f.FirstBind <= 0 {
					t.Errorf("got %+v, want all pods bound, and the times of it", f)
				}
			})
		}
	}
}
