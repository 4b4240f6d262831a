// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/cmd/demo/history"
)

const (
	// gpu is the resource that the examples compete for.
	gpu corev1.ResourceName = "nvidia.com/gpu"
	// partialLimit is how long binding the minimum of a gang may take.
	partialLimit = 2 * time.Second
	// redrawEvery is how often the screen is brought up to date.
	redrawEvery = 200 * time.Millisecond
	// signalGrace is how much later than the scheduler the demo may learn of a Ctrl-C, which the terminal sends to both.
	signalGrace = 500 * time.Millisecond
)

// run plays the whole demo.
func run(ctx context.Context, o options) (err error) {
	list, err := scenes()
	if err != nil {
		return err
	}
	p := newProgress(os.Stderr)
	s := &stage{}
	defer func() {
		if err != nil && interrupted(ctx) {
			err = errInterrupted
		}
		if p.quiet.Load() { // else the cluster says so
			p.say("stopping")
		}
		if stopErr := s.strike(err != nil && !errors.Is(err, errInterrupted)); stopErr != nil {
			err = errors.Join(err, stopErr)
		}
	}()
	if err := s.build(ctx, o, p); err != nil {
		return err
	}
	if err := s.divertLogs(); err != nil {
		return err
	}
	var workloads []history.Workload
	for _, scene := range list {
		workloads = append(workloads, scene.workloads...)
	}
	p.say("applying manifests/examples")
	p.quiet.Store(true)
	begun := time.Now()
	seen := &observer{history: history.New(workloads, begun, partialLimit)}
	unwatch, err := seen.watch(ctx, s.cluster.RESTConfig())
	if err != nil {
		return err
	}
	defer unwatch()
	verdict, err := play(ctx, s, list, seen, newScreen(os.Stdout), o.timeout)
	if err != nil {
		return err
	}
	seen.look(func(h *history.History) { fmt.Print(summary(h.Starts(), verdict)) })
	unrecorded := seen.record(o.record)
	if o.keep {
		fmt.Printf(keepText, s.cluster.Kubeconfig, s.scheduler.LogFile)
		if err := s.stay(ctx); err != nil {
			return err
		}
	}
	return errors.Join(failure(verdict), unrecorded)
}

const keepText = `
The cluster and the scheduler keep running. In another terminal, from the top of the project:

  export KUBECONFIG=%s

  kubectl get podgroups,queues
  kubectl describe podgroup impossible
  kubectl get events --field-selector involvedObject.kind=PodGroup
  kubectl delete -f manifests/examples/two-gangs.yaml && kubectl apply -f manifests/examples/two-gangs.yaml
  kubectl get pods --watch --output wide

The scheduler's log is %s. Stop with Ctrl-C.
`

// interrupted reports whether a signal is why something ended.
func interrupted(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(signalGrace):
		return false
	}
}

// play applies the scenes and shows what becomes of them until all has happened that should, or the time is over.
func play(ctx context.Context, s *stage, list []scene, seen *observer, out screen, timeout time.Duration) (history.Verdict, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	applied := make(chan struct{})
	go func() {
		defer close(applied)
		if err := applyAll(ctx, s.cluster.RESTConfig(), list); err != nil {
			cancel(err)
		}
	}()
	defer func() {
		cancel(nil)
		<-applied
	}()
	begun := time.Now()
	ticker := time.NewTicker(redrawEvery)
	defer ticker.Stop()
	for {
		var (
			v     history.Verdict
			rows  []history.Row
			inUse int64
		)
		now := time.Now()
		seen.look(func(h *history.History) { v, rows, inUse = h.Verdict(now), h.Rows(), h.InUse(gpu) })
		out.draw(now.Sub(begun), fmt.Sprintf("%d of %d GPUs in use", inUse, nodes*gpusPerNode), rows)
		if len(v.Missing) == 0 || now.Sub(begun) > timeout {
			return v, nil
		}
		select {
		case <-ctx.Done():
			return v, context.Cause(ctx)
		case <-ticker.C:
			if err := s.ended(); err != nil {
				return v, err
			}
		}
	}
}

// failure turns what went wrong into an error.
func failure(v history.Verdict) error {
	wrong := slices.Concat(v.Broken, v.Missing)
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("not everything went as it should:\n  %s", strings.Join(wrong, "\n  "))
}

// stay waits for the signal to end, or for something to break.
func (s *stage) stay(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-s.cluster.Exited():
	case <-s.scheduler.Exited():
	}
	if interrupted(ctx) {
		return nil
	}
	return s.ended()
}

// divertLogs keeps what client libraries log off the terminal.
func (s *stage) divertLogs() error {
	file, err := os.OpenFile(filepath.Join(s.dir, "demo.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening a log: %w", err)
	}
	klog.LogToStderr(false)
	klog.SetOutput(file) // until the program ends
	return nil
}

// progress tells what is being done and since when. As a writer it passes on what the cluster says of its start.
type progress struct {
	out   io.Writer
	begun time.Time
	quiet atomic.Bool
}

func newProgress(out io.Writer) *progress { return &progress{out: out, begun: time.Now()} }

// Write implements io.Writer.
func (p *progress) Write(text []byte) (int, error) {
	if p.quiet.Load() {
		return len(text), nil
	}
	return p.out.Write(text)
}

func (p *progress) say(format string, a ...any) {
	fmt.Fprintf(p.out, "%6.1fs  %s\n", time.Since(p.begun).Seconds(), fmt.Sprintf(format, a...))
}
