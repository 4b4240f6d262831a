// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/replay"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
)

// flaky is a plugin that lets each pod be bound only after so many attempts. It takes its time in the cycles of scheduling, or in those of binding.
type flaky struct {
	fails            int
	schedules, binds time.Duration

	mu    sync.Mutex
	tries map[string]int
	// asked are the questions it was asked, in order.
	asked []string
}

func (f *flaky) Name() string { return "Flaky" }

// PreBindPreFlight implements fwk.PreBindPlugin.
func (f *flaky) PreBindPreFlight(context.Context, fwk.CycleState, *corev1.Pod, string) (*fwk.PreBindPreFlightResult, *fwk.Status) {
	return nil, nil
}

// Permit implements fwk.PermitPlugin.
func (f *flaky) Permit(_ context.Context, _ fwk.CycleState, p *corev1.Pod, node string) (*fwk.Status, time.Duration) {
	time.Sleep(f.schedules)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, p.Name+" is to be on "+node)
	return nil, 0
}

// PreBind implements fwk.PreBindPlugin.
func (f *flaky) PreBind(_ context.Context, _ fwk.CycleState, p *corev1.Pod, node string) *fwk.Status {
	time.Sleep(f.binds)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, p.Name+" is being bound to "+node)
	if f.tries[p.Name]++; f.tries[p.Name] <= f.fails {
		return fwk.NewStatus(fwk.Error, "not yet")
	}
	return nil
}

// TestPodsThatFailAreTriedAgainAtTheSameTimes: binding fails once or twice for each pod, in a goroutine of its own, before the next
// pod's cycle begins or after it ended. Upstream tries pods again beside its clock. In a replay it must not matter which comes first.
func TestPodsThatFailAreTriedAgainAtTheSameTimes(t *testing.T) {
	t.Parallel()
	for _, fails := range []int{1, 2} {
		t.Run(fmt.Sprint(fails), func(t *testing.T) {
			t.Parallel()
			var first [][3]int
			var firstAsked []string
			for n := range 6 {
				config := configured(t, allocate)
				for i := range config.Profiles {
					p := config.Profiles[i].Plugins
					for _, set := range []*schedulerconfig.PluginSet{&p.Permit, &p.PreBind} {
						set.Enabled = append(set.Enabled, schedulerconfig.Plugin{Name: "Flaky"})
					}
				}
				plugin := &flaky{fails: fails, tries: map[string]int{}}
				if later := 2 * time.Millisecond; n%2 == 0 {
					plugin.binds = later
				} else {
					plugin.schedules = later
				}
				extensions := plugins.Extensions{Plugins: frameworkruntime.Registry{
					"Flaky": func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return plugin, nil },
				}}
				tr := &trace.Trace{Nodes: nodes(4, 8)}
				for i := range 10 {
					tr.Jobs = append(tr.Jobs, job(i, i, 7, 1+i%2, 8, ""))
				}
				h, err := run(t, tr, replay.Options{Config: config, Extensions: extensions})
				check(t, err)
				got := ticks(h)
				if first == nil {
					first, firstAsked = got, plugin.asked
				}
				if diff := cmp.Diff(firstAsked, plugin.asked); diff != "" {
					t.Fatalf("pods are scheduled and bound (-once,+again)\n%s", diff)
				}
				if diff := cmp.Diff(first, got); diff != "" {
					t.Fatalf("jobs come, start and end (-once,+again)\n%s", diff)
				}
			}
			for i, j := range first {
				if j[2] < 0 {
					t.Errorf("job %d never ends", i)
				}
			}
		})
	}
}

// TestWhereJobsComeOnceNobodyIsEvicted: queue b may take back what a holds. Then the list would not be inflated as it was published.
func TestWhereJobsComeOnceNobodyIsEvicted(t *testing.T) {
	t.Parallel()
	tr := &trace.Trace{
		Nodes: nodes(2, 8), Queues: []trace.Queue{{Name: "a", Nodes: 1}, {Name: "b", Nodes: 1}}, Once: true,
		Jobs: []trace.Job{job(0, 0, 0, 1, 8, "a"), job(1, 1, 0, 1, 8, "a"), job(2, 2, 0, 1, 8, "b")},
	}
	for i := range tr.Jobs {
		tr.Jobs[i].Submit = time.Duration(i) * trace.Every
	}
	_, err := run(t, tr, replay.Options{Config: configured(t, reclaim)})
	if err == nil || !strings.Contains(err.Error(), "was evicted: where jobs come once none leaves, play it by a configuration without preempt and reclaim") {
		t.Errorf("got %v", err)
	}
}

// TestQueuesOfPlainNodesAreDueNodes: without GPUs queues are due the CPU of their nodes.
func TestQueuesOfPlainNodesAreDueNodes(t *testing.T) {
	t.Parallel()
	tr := &trace.Trace{Queues: []trace.Queue{{Name: "a", Nodes: 1}, {Name: "b", Nodes: 3}}}
	for i := range 4 {
		tr.Nodes = append(tr.Nodes, trace.Node{Name: fmt.Sprintf("n%d", i), MilliCPU: 8000, MemoryMiB: 8192})
	}
	for i := range 4 {
		j := job(i, 0, 10, 1, 0, "a")
		j.MilliCPU = 4000
		tr.Jobs = append(tr.Jobs, j)
	}
	h, err := run(t, tr, replay.Options{Config: configured(t, allocate), Partitioned: true})
	check(t, err)
	if diff := cmp.Diff([][3]int{{0, 0, 10}, {0, 0, 10}, {0, 10, 20}, {0, 10, 20}}, ticks(h)); diff != "" {
		t.Errorf("jobs come, start and end (-want,+got)\n%s", diff)
	}
}
