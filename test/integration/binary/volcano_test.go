// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

const (
	packing = `
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - name: predicates
  - name: proportion
  - name: binpack
    arguments: {binpack.weight: 10}
`
	spreading = `
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
`
)

// TestTheProgramRunsByVolcanosFile places pods by one file, and more by another one.
func TestTheProgramRunsByVolcanosFile(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 3, Shapes: []string{"cpu=8,memory=32Gi"}})
	run := func(conf string) *schedulerprocess.Process {
		file := filepath.Join(t.TempDir(), "volcano-scheduler.conf")
		if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
		return start(t, schedulerprocess.Options{Kubeconfig: e.Kubeconfig, Args: []string{"--volcano-conf=" + file}})
	}
	place := func(names ...string) map[string]int {
		nodes := map[string]int{}
		for _, name := range names {
			e.CreatePods(t, env.Pod(name, "1"))
			env.Eventually(t, 30*time.Second, func() string {
				p, err := e.Kube.CoreV1().Pods(env.Namespace).Get(t.Context(), name, metav1.GetOptions{})
				if err != nil || p.Spec.NodeName == "" {
					return fmt.Sprintf("pod %s is not bound (%v)", name, err)
				}
				nodes[p.Spec.NodeName]++
				return ""
			})
		}
		return nodes
	}
	first := run(packing)
	if nodes := place("a", "b", "c"); len(nodes) != 1 {
		t.Errorf("binpack put the pods on %v, want them on one node", nodes)
	}
	if _, err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	run(spreading)
	if nodes := place("d", "e"); len(nodes) != 2 {
		t.Errorf("nodeorder put the pods on %v, want the two empty nodes", nodes)
	}
}

// TestAVolcanoConfThatIsWrongIsRefusedAtTheStart: the log has errors in quotes.
func TestAVolcanoConfThatIsWrongIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "volcano-scheduler.conf")
	if err := os.WriteFile(file, []byte("actions: allocate, alocate\ntiers:\n- plugins: [{name: binpak}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, "--volcano-conf="+file)
	if err == nil {
		t.Fatal("the scheduler started")
	}
	for _, want := range []string{`actions[1]: Unsupported value: \"alocate\"`, `tiers[0].plugins[0].name: Unsupported value: \"binpak\"`} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q, but\n%s", want, out)
		}
	}
}

// run runs the program until it ends by itself, and returns what it wrote.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	binary, err := schedulerprocess.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, args...).CombinedOutput()
	return string(out), err
}
