// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// The files of the test of changes. One places pods that ask for nothing and spreads; the other one does neither.
const (
	backfilling = `
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
`
	allocating = `
actions: "enqueue, allocate, reclaim, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins:
  - {name: drf}
  - {name: predicates}
  - {name: capacity}
  - {name: nodegroup, arguments: {strict: false}}
  - {name: task-topology}
  - {name: network-topology-aware}
  - name: binpack
    arguments: {binpack.weight: 10}
`
)

// wrong are files that are refused.
var wrong = []string{"\tactions: allocate", "actions: alocate", allocating + "  - {name: proportion}\n", "tiers: [{plugins: [{name: binpack, arguments: {binpack.weight: -1}}]}]"}

// starts watches how gangs start: all members within a short time.
type starts struct {
	mu          sync.Mutex // guards the rest
	first, last map[string]time.Time
	bound       map[string]int
}

func (s *starts) observe(before, after *corev1.Pod) {
	if after == nil || after.Spec.NodeName == "" || before != nil && before.Spec.NodeName != "" || after.Labels[env.GroupLabel] == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	gang, now := after.Labels[env.GroupLabel], time.Now()
	if s.bound[gang]++; s.bound[gang] == 1 {
		s.first[gang] = now
	}
	s.last[gang] = now
}

// told counts the lines of a log that contain a text.
func told(t *testing.T, p *schedulerprocess.Process, text string) int {
	t.Helper()
	log, err := os.ReadFile(p.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(log), text)
}

// replace puts a file in the place of another one, as ConfigMap mounts and editors do.
func replace(t *testing.T, file, content string) {
	t.Helper()
	next := file + ".next"
	if err := os.WriteFile(next, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, file); err != nil {
		t.Fatal(err)
	}
}

const (
	applied = "Configuration applied"
	refused = "Configuration refused"
	// inForce is within what time a valid change has to be in force.
	inForce = 5 * time.Second
)

// TestChangesOfTheFileTakeEffectUnderLoad changes the file 200 times, every other time to something wrong, while gangs come and go.
// Pods that ask for nothing show that a change is in force: one file places them, the other one does not.
func TestChangesOfTheFileTakeEffectUnderLoad(t *testing.T) {
	t.Parallel()
	const changes, size = 200, 8
	s := &starts{first: map[string]time.Time{}, last: map[string]time.Time{}, bound: map[string]int{}}
	e := env.New(t, localcluster.Options{Nodes: 4, Shapes: []string{"cpu=16,memory=64Gi"}}, s.observe)
	file := filepath.Join(t.TempDir(), "volcano-scheduler.conf")
	replace(t, file, allocating)
	p := start(t, schedulerprocess.Options{Kubeconfig: e.Kubeconfig, Args: []string{"--volcano-conf=" + file}})
	t.Cleanup(func() {
		if log, err := os.ReadFile(p.LogFile); t.Failed() && err == nil {
			t.Logf("the end of the log:\n%s", log[max(0, len(log)-4000):])
		}
	})

	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var gangs []string
	load.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			g := env.Gang{Name: fmt.Sprintf("gang-%d", i), Min: size, Size: size, CPU: "1", Pod: func(_ int, p *corev1.Pod) {
				p.Annotations["localcluster.caldera.dev/run-for"] = "1s"
			}}
			gangs = append(gangs, g.Name)
			e.Create(t, g)
			// Four of them fill a cluster that empties every second or two, so that some wait all the time.
			select {
			case <-ctx.Done():
			case <-time.After(150 * time.Millisecond):
			}
		}
	})

	env.Eventually(t, time.Minute, e.AllBound(t, "gang-0", size))
	var slowest time.Duration
	for i := range changes {
		switch i % 4 {
		case 0: // To the file that places pods that ask for nothing.
			probe := fmt.Sprintf("probe-%d", i)
			e.CreatePods(t, env.Pod(probe, ""))
			from := time.Now()
			replace(t, file, fmt.Sprintf("%s# %d\n", backfilling, i))
			env.Eventually(t, inForce, func() string {
				pod, err := e.Kube.CoreV1().Pods(env.Namespace).Get(ctx, probe, metav1.GetOptions{})
				if err != nil || pod.Spec.NodeName == "" {
					return fmt.Sprintf("change %d is not in force: %s has no node (%v)", i, probe, err)
				}
				return ""
			})
			slowest = max(slowest, time.Since(from))
		case 2: // To the file that does not.
			from, before := time.Now(), told(t, p, applied)
			replace(t, file, fmt.Sprintf("%s# %d\n", allocating, i))
			env.Eventually(t, inForce, func() string {
				if told(t, p, applied) == before {
					return fmt.Sprintf("change %d was not applied", i)
				}
				return ""
			})
			slowest = max(slowest, time.Since(from))
		default:
			before := told(t, p, refused)
			replace(t, file, fmt.Sprintf("%s\n# %d\n", wrong[i/2%len(wrong)], i))
			env.Eventually(t, inForce, func() string {
				if told(t, p, refused) == before {
					return fmt.Sprintf("change %d was not refused", i)
				}
				return ""
			})
		}
	}
	stop()
	load.Wait()
	for _, g := range gangs {
		env.Eventually(t, time.Minute, e.AllBound(t, g, size))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var longest time.Duration
	for _, g := range gangs {
		if s.bound[g] != size {
			t.Errorf("gang %s has bound %d of %d pods", g, s.bound[g], size)
		}
		longest = max(longest, s.last[g].Sub(s.first[g]))
	}
	if longest > inForce {
		t.Errorf("a gang took %s from its first pod to its last: it was partial", longest)
	}
	t.Logf("%d gangs; the slowest change took %s, the slowest gang %s from its first pod to its last", len(gangs), slowest, longest)
}
