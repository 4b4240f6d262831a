// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package demo is what make demo and make try have in common: the examples that they apply, the screen that shows what becomes of them, and the
// verdict. Where the scheduler runs, and on what, is theirs.
package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/internal/demo/history"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Nodes and GPUsPerNode are what the examples are made for.
const (
	Nodes       = 20
	GPUsPerNode = 8
)

const (
	// gpu is the resource that the examples compete for.
	gpu corev1.ResourceName = "nvidia.com/gpu"
	// partialLimit is how long binding the minimum of a gang may take.
	partialLimit = 2 * time.Second
	// startTimeout is how long the scheduler may take to become active; it takes two seconds at most.
	startTimeout = time.Minute
	// redrawEvery is how often the screen is brought up to date.
	redrawEvery = 200 * time.Millisecond
)

// Shape is what a node has, as localcluster's flag --node takes it.
func Shape() string { return fmt.Sprintf("cpu=32,memory=256Gi,%s=%d", gpu, GPUsPerNode) }

// Stage is where the examples are played.
type Stage interface {
	// RESTConfig leads to the API that is watched.
	RESTConfig() *rest.Config
	// Apply creates an object of the examples in the namespace default.
	Apply(ctx context.Context, object *unstructured.Unstructured) error
	// Ended returns an error if the scheduler, or what it runs on, has stopped by itself.
	Ended() error
}

// Await returns when the scheduler of a stage is active: it then has created the default queue. It fails after a minute, or if what runs has ended.
func Await(ctx context.Context, s Stage) error {
	client, err := volcanoclient.NewForConfig(s.RESTConfig())
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		if err := s.Ended(); err != nil {
			return false, err
		}
		_, err := client.SchedulingV1beta1().Queues().Get(ctx, model.DefaultQueue, metav1.GetOptions{})
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the scheduler to create the queue %q: %w", model.DefaultQueue, err)
	}
	return nil
}

// Options say how the examples are played.
type Options struct {
	// Timeout is how long everything that can run may take to do so.
	Timeout time.Duration
	// Clock tells the time.
	Clock clock.PassiveClock
	// Record is a file that is told what became of every pod, as JSON; empty: none.
	Record string
}

// Play applies the examples, shows on out what becomes of them until all has happened that should or the time is over, and tells how each of them
// started. Failed is what did not go as it should; err is why there is nothing to tell.
func Play(ctx context.Context, stage Stage, out *os.File, o Options) (failed, err error) {
	list, err := Scenes()
	if err != nil {
		return nil, err
	}
	var workloads []history.Workload
	for _, s := range list {
		workloads = append(workloads, s.Workloads...)
	}
	seen := &observer{clock: o.Clock, history: history.New(workloads, o.Clock.Now(), partialLimit)}
	unwatch, err := seen.watch(ctx, stage.RESTConfig())
	if err != nil {
		return nil, err
	}
	defer unwatch()
	verdict, err := play(ctx, stage, list, seen, newScreen(out), o.Timeout)
	if err != nil {
		return nil, err
	}
	seen.look(func(h *history.History) { fmt.Fprint(out, summary(h.Starts(), verdict)) })
	return errors.Join(failure(verdict), seen.record(o.Record)), nil
}

// play applies the scenes and shows what becomes of them until all has happened that should, or the time is over.
func play(ctx context.Context, stage Stage, list []Scene, seen *observer, out screen, timeout time.Duration) (history.Verdict, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	applied := make(chan struct{})
	go func() {
		defer close(applied)
		if err := apply(ctx, list, stage.Apply); err != nil {
			cancel(err)
		}
	}()
	defer func() {
		cancel(nil)
		<-applied
	}()
	begun := seen.clock.Now()
	ticker := time.NewTicker(redrawEvery)
	defer ticker.Stop()
	for {
		var (
			v     history.Verdict
			rows  []history.Row
			inUse int64
		)
		now := seen.clock.Now()
		seen.look(func(h *history.History) { v, rows, inUse = h.Verdict(now), h.Rows(), h.InUse(gpu) })
		out.draw(now.Sub(begun), fmt.Sprintf("%d of %d GPUs in use", inUse, Nodes*GPUsPerNode), rows)
		if len(v.Missing) == 0 || now.Sub(begun) > timeout {
			return v, nil
		}
		select {
		case <-ctx.Done():
			return v, context.Cause(ctx)
		case <-ticker.C:
			if err := stage.Ended(); err != nil {
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
