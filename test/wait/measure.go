// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/harm"
)

// result is what one run showed. Durations are written in nanoseconds.
type result struct {
	// Probes is how many were made, Latencies are of those that were bound: from the return of the request that made the last pod
	// until the watch told of the last node.
	Probes    int             `json:"probes"`
	Latencies []time.Duration `json:"latencies"`
	// CPU is what the scheduler's process used in the window, from the first probe to the end of the last.
	CPU    time.Duration `json:"cpu"`
	Window time.Duration `json:"window"`
	// Memory is the resident set of the scheduler's process at the end of the window, in bytes.
	Memory int64 `json:"memory"`
	// Replaced is how long new pods of others waited that got their nodes in the window, from just before they were made. Waiting
	// is how many had none at its end.
	Replaced []time.Duration `json:"replaced"`
	Waiting  int             `json:"waiting"`
	// Turns is how many jobs became possible, Turned how long each was possible until it was bound.
	Turns  int             `json:"turns"`
	Turned []time.Duration `json:"turned"`
	// Escaped is how many hopeless pods were bound that should not have been: if there are any, the run says little.
	Escaped int `json:"escaped"`
}

// load is the use of one core, 0-1 for each.
func (r result) load() float64 { return r.CPU.Seconds() / max(r.Window.Seconds(), 1e-3) }

func (r result) String() string {
	return fmt.Sprintf("%d of %d probes bound, p50 %s ms, max %s ms, %.0f %% CPU, %d MB, %d of others replaced and %d waiting, %d of %d turned",
		len(r.Latencies), r.Probes, millis(quantile(r.Latencies, 0.5)), millis(quantile(r.Latencies, 1)), 100*r.load(), r.Memory>>20,
		len(r.Replaced), r.Waiting, len(r.Turned), r.Turns)
}

// startTimeout is how long a scheduler may take to bind the first pod, and kubelets to run all fillers.
const startTimeout = 3 * time.Minute

// trial is one scheduler on a cluster of its own.
type trial struct {
	plan      plan
	kind      kind
	contender contender
	cluster   *localcluster.Cluster
	clients   clients
	watcher   *watcher
	churn     *churn
	prober    *prober
	turner    *turner
	scheduler *schedulerprocess.Process
}

// measure runs one scheduler once with one kind of hopeless work.
func measure(ctx context.Context, p plan, k kind, c contender) (r result, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cluster, err := localcluster.Start(ctx, localcluster.Options{Shapes: nodeShapes(p.scenario, k), NoKubelets: !p.Kubelets, NoControllers: true})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	m := &trial{plan: p, kind: k, contender: c, cluster: cluster}
	if err := m.prepare(ctx); err != nil {
		return r, err
	}
	return m.withScheduler(ctx)
}

// prepare fills the nodes and begins to watch.
func (m *trial) prepare(ctx context.Context) (err error) {
	if m.clients, err = newClients(m.cluster.RESTConfig()); err != nil {
		return err
	}
	s := m.plan.scenario
	if err := m.clients.put(ctx, append(priorityClasses(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenants}})...); err != nil {
		return err
	}
	sitting := sitters(m.contender, s)
	if err := m.clients.putAll(ctx, len(sitting), func(i int) []runtime.Object { return sitting[i : i+1] }); err != nil {
		return err
	}
	who := m.contender
	who.batch = who.batch && !s.PlainOthers
	err = m.clients.putAll(ctx, s.fullNodes()*s.Fill, func(i int) []runtime.Object {
		p := filler(who, i)
		p.Spec.NodeName = nodeName(poolFull, i%s.fullNodes())
		return []runtime.Object{p}
	})
	if err != nil {
		return err
	}
	m.churn = newChurn(m.clients, who, s)
	m.prober = newProber(s, m.clients, m.contender)
	m.turner = newTurner(s, m.kind, m.clients)
	m.watcher = &watcher{bound: map[string]func(*corev1.Pod, time.Time){
		roleFiller: m.churn.bound, roleProbe: m.prober.board.bound, roleHopeless: m.turner.board.bound,
	}}
	if err := m.watcher.watch(ctx, m.clients); err != nil {
		return err
	}
	if !m.plan.Kubelets {
		return nil
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true, func(context.Context) (bool, error) {
		return int(m.watcher.running.Load()) >= s.fullNodes()*s.Fill, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %d pods to run, %d do: %w", s.fullNodes()*s.Fill, m.watcher.running.Load(), err)
	}
	return nil
}

// withScheduler runs the scheduler on the full cluster.
func (m *trial) withScheduler(ctx context.Context) (r result, err error) {
	dir, remove, err := m.logs()
	if err != nil {
		return r, err
	}
	defer remove()
	extender, err := m.extender()
	if err != nil {
		return r, err
	}
	if extender != nil {
		defer func() { err = errors.Join(err, extender.Close()) }()
	}
	config, err := m.contender.config(extender)
	if err != nil {
		return r, err
	}
	m.scheduler, err = schedulerprocess.Start(schedulerprocess.Options{
		Binary: m.contender.binary, Kubeconfig: m.cluster.Kubeconfig, Config: config, QPS: m.plan.qps, Burst: m.plan.qps, Dir: dir,
	})
	if err != nil {
		return r, err
	}
	defer func() {
		if _, stopErr := m.scheduler.Stop(); err == nil {
			err = stopErr
		}
	}()
	// A scheduler that ends by itself ends the run.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-m.scheduler.Exited():
			cancel(fmt.Errorf("the scheduler has ended by itself; with --logs, its log is kept (%s)", m.scheduler.LogFile))
		case <-ctx.Done():
		}
	}()
	if r, err = m.play(ctx); err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return r, err
}

// extender serves the one that the hopeless work needs; nil if it needs none.
func (m *trial) extender() (*harm.Extender, error) {
	if m.kind.extender == nil {
		return nil, nil //nolint:nilnil // most kinds need none
	}
	e, err := harm.NewExtender()
	if err == nil {
		e.Behave(*m.kind.extender)
	}
	return e, err
}

// logs returns the directory of the scheduler's log, and what to do with it in the end.
func (m *trial) logs() (string, func(), error) {
	if m.plan.logs == "" {
		dir, err := os.MkdirTemp("", "wait")
		return dir, func() { _ = os.RemoveAll(dir) }, err // a leftover log does no harm
	}
	dir := filepath.Join(m.plan.logs, m.kind.name+"-"+m.contender.name)
	return dir, func() {}, os.MkdirAll(dir, 0o755)
}

// despair makes the hopeless work, once the scheduler is active, and waits until it got through it.
func (m *trial) despair(ctx context.Context) error {
	s := m.plan.scenario
	if _, ok, err := m.prober.one(ctx, "probe-first", 1, startTimeout); err != nil || !ok {
		return errors.Join(err, errors.New("the scheduler bound nothing before there was anything hopeless"))
	}
	if err := m.clients.put(ctx, m.kind.shared...); err != nil {
		return err
	}
	if m.kind.refused {
		if err := refusal.InForce(ctx, m.clients.kube, tenants, witnessName, startTimeout); err != nil {
			return err
		}
	}
	if err := m.clients.putAll(ctx, m.kind.jobs(s), func(i int) []runtime.Object { return hopeless(m.contender, s, m.kind, i) }); err != nil {
		return err
	}
	if err := m.clients.put(ctx, m.kind.after...); err != nil {
		return err
	}
	// A scheduler that does not get through it in time is measured all the same.
	_, _, err := m.prober.one(ctx, "probe-warm", 1, s.Warm)
	return err
}

// play makes the hopeless work, lets others come and go, and measures.
func (m *trial) play(ctx context.Context) (r result, err error) {
	s := m.plan.scenario
	if err := m.despair(ctx); err != nil {
		return r, err
	}
	events, ctx := errgroup.WithContext(ctx)
	coming, stop := context.WithCancel(ctx)
	defer stop()
	events.Go(func() error { return m.churn.run(coming, s.Ends) })
	if m.kind.disturb != nil {
		events.Go(func() error {
			return repeat(coming, disturbances, func(ctx context.Context, n int) error { return m.kind.disturb(ctx, m.clients, s, n) })
		})
	}
	events.Go(func() (err error) {
		defer stop()
		select {
		case <-time.After(s.Settle):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		r, err = m.window(ctx)
		return err
	})
	return r, events.Wait()
}

// window makes the probes and measures.
func (m *trial) window(ctx context.Context) (r result, err error) {
	before, err := m.scheduler.Sample()
	if err != nil {
		return r, err
	}
	begun := time.Now()
	_, earlier := m.churn.replaced(0)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { r.Latencies, err = m.prober.run(ctx); return err })
	group.Go(func() (err error) { r.Turned, err = m.turner.run(ctx); return err })
	if err := group.Wait(); err != nil {
		return r, err
	}
	after, err := m.scheduler.Sample()
	if err != nil {
		return r, err
	}
	r.Window, r.CPU, r.Memory = time.Since(begun), after.CPU-before.CPU, after.Memory
	r.Waiting, r.Replaced = m.churn.replaced(len(earlier))
	r.Probes, r.Turns, r.Escaped = m.plan.Probes, m.plan.turns(m.kind), int(m.watcher.escaped.Load())
	for _, list := range [][]time.Duration{r.Latencies, r.Replaced, r.Turned} {
		slices.Sort(list)
	}
	return r, nil
}
