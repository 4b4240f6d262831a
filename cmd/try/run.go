// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/component-base/version"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/internal/demo"
)

// run plays the examples.
func run(ctx context.Context, o demo.Options) (err error) {
	dir, err := os.MkdirTemp("", "caldera-try-")
	if err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	log := filepath.Join(dir, "scheduler.log")
	defer func() {
		switch {
		case err != nil && ctx.Err() != nil:
			err = errors.Join(demo.ErrInterrupted, os.RemoveAll(dir))
		case err != nil:
			fmt.Fprintln(os.Stderr, "The scheduler's log is", log)
		default:
			err = os.RemoveAll(dir)
		}
	}()
	if err := demo.DivertLogs(log); err != nil {
		return err
	}
	p := demo.NewProgress(os.Stderr, clock.RealClock{})
	p.Say("no API server runs: the objects are in memory, with %d simulated nodes with %d GPUs each", demo.Nodes, demo.GPUsPerNode)
	p.Say("starting the scheduler of Kubernetes %s with manifests/config/scheduler-config.yaml, and the controllers of Jobs and Deployments",
		version.Get().GitVersion)
	s, err := newStage(ctx)
	if err != nil {
		return err
	}
	defer s.strike()
	p.Say("the scheduler is ready; applying manifests/examples")
	failed, err := demo.Play(ctx, s, os.Stdout, o)
	if err != nil {
		return err
	}
	fmt.Print(endText)
	return failed
}

const endText = `
Scheduler, plugins and controllers were the real ones. API server, nodes and kubelets were not: nothing is left that kubectl could look at.
make demo plays the same on a real API server, and make demo KEEP=1 leaves it running: docs/getting-started.md.
`
