// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/internal/demo"
)

// run plays the whole demo.
func run(ctx context.Context, o options) (err error) {
	p := demo.NewProgress(os.Stderr, clock.RealClock{})
	s := &stage{}
	defer func() {
		if err != nil && demo.Interrupted(ctx) {
			err = demo.ErrInterrupted
		}
		if p.Hushed() { // else the cluster says so
			p.Say("stopping")
		}
		if stopErr := s.strike(err != nil && !errors.Is(err, demo.ErrInterrupted)); stopErr != nil {
			err = errors.Join(err, stopErr)
		}
	}()
	if err := s.build(ctx, o, p); err != nil {
		return err
	}
	if err := demo.DivertLogs(filepath.Join(s.dir, "demo.log")); err != nil {
		return err
	}
	p.Say("applying manifests/examples")
	p.Hush()
	failed, err := demo.Play(ctx, s, os.Stdout, o.Options)
	if err != nil {
		return err
	}
	if o.keep {
		fmt.Printf(keepText, s.cluster.Kubeconfig, s.scheduler.LogFile)
		if err := s.stay(ctx); err != nil {
			return err
		}
	}
	return failed
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

// stay waits for the signal to end, or for something to break.
func (s *stage) stay(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-s.cluster.Exited():
	case <-s.scheduler.Exited():
	}
	if demo.Interrupted(ctx) {
		return nil
	}
	return s.Ended()
}
