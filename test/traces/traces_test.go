// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package traces_test plays workloads that others published.
package traces_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/caldera-scheduler/caldera/pkg/replay"
	"github.com/caldera-scheduler/caldera/pkg/replay/figures"
	"github.com/caldera-scheduler/caldera/pkg/replay/history"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
	"github.com/caldera-scheduler/caldera/pkg/replay/yardstick"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// load reads a scenario, so long of it; 0: all.
func load(t *testing.T, file string, long time.Duration) *trace.Trace {
	t.Helper()
	s, err := trace.LoadScenario(file)
	if err != nil {
		t.Fatal(err)
	}
	if long > 0 {
		s.To.Duration = s.From.Duration + long
	}
	tr, err := s.Trace()
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestScenariosAreWhatTheyWereSaidToBe: README.md has these numbers.
func TestScenariosAreWhatTheyWereSaidToBe(t *testing.T) {
	t.Parallel()
	want := map[string]struct {
		jobs, pods, gpus int
		load             float64
	}{
		"philly-week.yaml":      {15731, 16622, 2816, 0.89},
		"philly-queues.yaml":    {90954, 98709, 2816, 0.90},
		"philly-scale.yaml":     {111549, 122045, 6212, 0.56},
		"lingjun.yaml":          {2498, 13094, 2048, 0.88},
		"lingjun-topology.yaml": {2498, 13094, 2048, 0.88},
		"large-gangs.yaml":      {2207, 2297, 160, 0.855},
		// Nothing of it has a duration.
		"inflate-default.yaml":     {10829, 10829, 6212, 0},
		"inflate-gpuspec33.yaml":   {10829, 10829, 6212, 0},
		"inflate-multigpu50.yaml":  {6404, 6404, 6212, 0},
		"inflate-gpushare100.yaml": {16665, 16665, 6212, 0},
		"inflate-cpu250.yaml":      {12529, 12529, 6212, 0},
	}
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) != len(want) {
		t.Fatalf("there are %d scenarios, %d of them are known; %v", len(files), len(want), err)
	}
	for _, file := range files {
		tr := load(t, file, 0)
		pods := 0
		for _, j := range tr.Jobs {
			pods += j.Workers
		}
		w := want[file]
		if len(tr.Jobs) != w.jobs || pods != w.pods || tr.GPUs() != w.gpus || math.Abs(tr.Load()-w.load) > 0.006 {
			t.Errorf("%s: %d jobs, %d pods, %d GPUs, load %.3f; want %+v", file, len(tr.Jobs), pods, tr.GPUs(), tr.Load(), w)
		}
	}
}

// TestDaysOfPhilly plays the first three days of a week: all jobs start and end, no hour has more GPUs held than there are, nobody of a queue and size is overtaken, and
// with pods packed jobs wait no longer than first come, first served has them wait on all nodes at once.
func TestDaysOfPhilly(t *testing.T) {
	t.Parallel()
	tr := load(t, "philly-week.yaml", 3*24*time.Hour)
	conf, err := os.ReadFile("conf/binpack.conf")
	if err != nil {
		t.Fatal(err)
	}
	config, err := profile.Read("binpack.conf", conf, profile.Only)
	if err != nil {
		t.Fatal(err)
	}
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(-1)))
	play := func(o replay.Options) (*history.History, figures.Figures) {
		o.Now = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
		r, err := replay.Run(klog.NewContext(t.Context(), logger), tr, o)
		if err != nil {
			t.Fatal(err)
		}
		return r.History, figures.Of(tr, r.History)
	}
	h, got := play(replay.Options{Config: config})
	for i, o := range h.Jobs {
		if !o.Started() || !o.Ended() || o.End-o.Start < tr.Jobs[i].Duration {
			t.Errorf("job %d: %+v; it is to run for %s", i, o, tr.Jobs[i].Duration)
		}
	}
	for i, hour := range h.Hours {
		if hour.Held > float64(h.GPUs)+1e-6 {
			t.Errorf("hour %d: %g of %d GPUs are held", i, hour.Held, h.GPUs)
		}
	}
	if got.Overtook.Jobs != 0 || got.Evicted.Evictions != 0 {
		t.Errorf("%+v were overtaken, %+v evicted: nobody is to be", got.Overtook, got.Evicted)
	}
	_, fifo := play(replay.Options{Rule: yardstick.Named("fifo")})
	if got.Wait.Mean > fifo.Wait.Mean || got.Wait.Max > fifo.Wait.Max {
		t.Errorf("jobs wait %+v, first come, first served %+v", got.Wait, fifo.Wait)
	}
}
