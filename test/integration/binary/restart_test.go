// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package binary_test runs the scheduler as users do: the program, its shipped configuration, its RBAC rules.
package binary_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// start runs the scheduler's program, with the shipped configuration unless there is another.
func start(t *testing.T, o schedulerprocess.Options) *schedulerprocess.Process {
	t.Helper()
	binary, err := schedulerprocess.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if o.Config == nil {
		if o.Config, err = manifests.All.ReadFile("config/scheduler-config.yaml"); err != nil {
			t.Fatal(err)
		}
	}
	o.Binary, o.Dir = binary, t.TempDir()
	p, err := schedulerprocess.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// moves remembers where pods were bound, and complains about a pod that changes its node.
type moves struct {
	mu    sync.Mutex // guards the rest
	nodes map[string]string
	moved []string
}

func (m *moves) observe(_, after *corev1.Pod) {
	if after == nil || after.Spec.NodeName == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := string(after.UID)
	if before, ok := m.nodes[id]; ok && before != after.Spec.NodeName {
		m.moved = append(m.moved, fmt.Sprintf("%s from %s to %s", after.Name, before, after.Spec.NodeName))
	}
	m.nodes[id] = after.Spec.NodeName
}

// TestAGangIsCompletedAfterACrashInTheMiddleOfBinding kills the scheduler while it binds 500 pods and starts it again.
func TestAGangIsCompletedAfterACrashInTheMiddleOfBinding(t *testing.T) {
	t.Parallel()
	const size = 500
	m := &moves{nodes: map[string]string{}}
	e := env.New(t, localcluster.Options{Nodes: 20, Shapes: []string{"cpu=32,memory=256Gi"}}, m.observe)
	gang := env.Gang{Name: "big", Min: size, Size: size, CPU: "1"}
	e.Create(t, gang)

	first := start(t, schedulerprocess.Options{Kubeconfig: e.Kubeconfig})
	env.Eventually(t, time.Minute, func() string {
		if bound, _ := e.Bound(t, gang.Name); bound < size/10 {
			return fmt.Sprintf("%d pods have nodes, want %d before the crash", bound, size/10)
		}
		return ""
	})
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	if bound, _ := e.Bound(t, gang.Name); bound == size {
		t.Fatal("the gang was bound before the crash: nothing was tested")
	} else {
		t.Logf("killed with about %d of %d pods bound", bound, size)
	}
	// A smaller gang, submitted meanwhile, must not take the room of the rest.
	e.Create(t, env.Gang{Name: "later", Min: 140, Size: 140, CPU: "1"})
	start(t, schedulerprocess.Options{Kubeconfig: e.Kubeconfig})
	env.Eventually(t, time.Minute, e.AllBound(t, gang.Name, size))
	env.Eventually(t, time.Minute, e.AllBound(t, "later", 140))
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.moved) > 0 {
		t.Errorf("pods changed their nodes: %v", m.moved)
	}
}
