// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
)

// result is what one run showed. Durations are written in nanoseconds.
type result struct {
	// Rate is pods bound a second, from the first bind to the last.
	Rate float64 `json:"podsPerSecond"`
	// Done is the same until the last event of a bound pod was written, too.
	Done float64 `json:"podsPerSecondWithEvents"`
	// First is from the scheduler's start to the first bind.
	First time.Duration `json:"firstBind"`
	// CPU is what the scheduler's process used, from its start to its end.
	CPU time.Duration `json:"cpu"`
	// ServerCPU is what the API server and etcd used in that time, one process together; 0 where the system does not tell.
	ServerCPU time.Duration `json:"serverCPU"`
	// Memory is the largest resident set of the scheduler's process, in bytes.
	Memory int64 `json:"peakMemory"`
	// P50 and P99 are over gangs: from the first bind of the run to the last of the gang.
	P50 time.Duration `json:"gangP50"`
	P99 time.Duration `json:"gangP99"`
	// Spread is the median time between the first and the last bind of a gang.
	Spread time.Duration `json:"gangSpread"`
	// Told is how long after the last bind the last event of a bound pod was written.
	Told time.Duration `json:"eventsAfter"`
	// Views is how many times it has answered who asked for its queues.
	Views int `json:"views,omitempty"`
	// Requests are the writes that the API server answered, by verb and resource.
	Requests map[string]int `json:"requests"`
}

func (r result) String() string {
	return fmt.Sprintf("%.0f pods/s, %.0f with events, %.1f s CPU and %.1f s of the API server, %d MB, first bind after %s, last event %s after the last bind", r.Rate, r.Done,
		r.CPU.Seconds(), r.ServerCPU.Seconds(), r.Memory>>20, r.First.Round(time.Millisecond), r.Told.Round(time.Millisecond))
}

// measure runs one scheduler once, on a cluster of its own.
func measure(ctx context.Context, o options, s scenario, c contender) (r result, err error) {
	cluster, err := localcluster.Start(ctx, localcluster.Options{
		Nodes: s.Nodes, Shapes: []string{fmt.Sprintf("cpu=%d,memory=256Gi", coresOfNode)}, NoKubelets: true, NoControllers: true,
		FeatureGates: c.gates, RuntimeConfig: c.apis,
	})
	if err != nil {
		return r, err
	}
	defer func() {
		if stopErr := cluster.Stop(); err == nil {
			err = stopErr
		}
	}()
	if err := create(ctx, s, c, cluster.RESTConfig()); err != nil {
		return r, err
	}
	return runOn(ctx, o, s, c, cluster)
}

// runOn runs one scheduler on a cluster that has everything else.
func runOn(ctx context.Context, o options, s scenario, c contender, cluster *localcluster.Cluster) (r result, err error) {
	w, err := newWatcher(ctx, cluster.RESTConfig())
	if err != nil {
		return r, err
	}
	defer w.stop()
	dir, done, err := o.logDir()
	if err != nil {
		return r, err
	}
	defer done()
	p := profiler{options: o, scenario: s, contender: c}
	port, err := p.port()
	if err != nil {
		return r, err
	}
	args, err := withPort(c.arguments(cluster.Kubeconfig, o.qps), schedulerprocess.FreePort)
	if err != nil {
		return r, err
	}
	before, err := served(ctx, w, cluster)
	if err != nil {
		return r, err
	}
	start := time.Now()
	scheduler, err := schedulerprocess.Start(schedulerprocess.Options{
		Binary: c.binary, Kubeconfig: cluster.Kubeconfig, Config: c.config, QPS: o.qps, Burst: o.qps, Dir: dir,
		Args: args, Port: port,
	})
	if err != nil {
		return r, err
	}
	profiled := p.begin(ctx, port)
	asking, err := askForViews(ctx, cluster.RESTConfig(), portOfViews(args), c.views)
	if err != nil {
		return r, err
	}
	times, told, waitErr := w.await(ctx, s, scheduler.Exited())
	views := asking.end()
	if err := <-profiled; waitErr == nil {
		waitErr = err
	}
	usage, err := scheduler.Stop()
	if waitErr != nil {
		return r, fmt.Errorf("%w (see %s)", waitErr, scheduler.LogFile)
	}
	if err != nil {
		return r, err
	}
	r = summarise(times, start, told)
	r.CPU, r.Memory, r.Views = usage.CPU, usage.PeakMemory, views
	after, err := served(ctx, w, cluster)
	if err != nil {
		return r, err
	}
	r.ServerCPU, r.Requests = after.cpu-before.cpu, difference(before.writes, after.writes)
	return r, nil
}

// logDir is where a scheduler writes its log. Done is to be called when nobody reads it any more.
func (o options) logDir() (dir string, done func(), err error) {
	if o.logs != "" {
		return o.logs, func() {}, os.MkdirAll(o.logs, 0o755)
	}
	if dir, err = os.MkdirTemp("", "compare"); err != nil {
		return "", nil, err
	}
	return dir, func() { os.RemoveAll(dir) }, nil //nolint:errcheck,gosec // a leftover log does no harm
}

// service is what a control plane has done so far.
type service struct {
	writes map[string]int
	// cpu is 0 where the system does not tell.
	cpu time.Duration
}

func served(ctx context.Context, w *watcher, cluster *localcluster.Cluster) (service, error) {
	writes, err := w.writes(ctx)
	if err != nil || runtime.GOOS != "linux" {
		return service{writes: writes}, err
	}
	s, err := schedulerprocess.SampleOf(cluster.PID())
	return service{writes: writes, cpu: s.CPU}, err
}

// summarise computes what follows from the times of the binds and from when the last event was written.
func summarise(all []bind, start, told time.Time) result {
	slices.SortFunc(all, func(a, b bind) int { return a.at.Compare(b.at) })
	first, last := all[0].at, all[len(all)-1].at
	type span struct{ from, to time.Time }
	gangs := map[string]span{}
	for _, b := range all {
		s, ok := gangs[b.group]
		if !ok {
			s.from = b.at
		}
		s.to = b.at
		gangs[b.group] = s
	}
	var latencies, spreads []time.Duration
	for _, s := range gangs {
		latencies = append(latencies, s.to.Sub(first))
		spreads = append(spreads, s.to.Sub(s.from))
	}
	if told.Before(last) {
		told = last
	}
	return result{
		Rate:   rate(len(all), last.Sub(first)),
		Done:   rate(len(all), told.Sub(first)),
		First:  first.Sub(start),
		P50:    quantile(latencies, 0.5),
		P99:    quantile(latencies, 0.99),
		Spread: quantile(spreads, 0.5),
		Told:   told.Sub(last),
	}
}

func rate(n int, d time.Duration) float64 { return float64(n) / max(d.Seconds(), 1e-3) }

// difference is what was counted between two looks.
func difference(before, after map[string]int) map[string]int {
	d := map[string]int{}
	for name, n := range after {
		if n > before[name] {
			d[name] = n - before[name]
		}
	}
	return d
}

// quantile returns the value below which the share q of the values lies.
func quantile[T cmp.Ordered](values []T, q float64) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
