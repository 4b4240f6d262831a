// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

func gpus(n int64) resource.Vector { return resource.Vector{{Name: "nvidia.com/gpu", Value: n}} }

func TestQueuesAreShownInUnits(t *testing.T) {
	const header = `
# HELP caldera_queue_below_due_seconds_total [ALPHA] Seconds for which jobs of the queue waited that were let in, or have their pods, and that the queue could hold without holding more than it is due.
# TYPE caldera_queue_below_due_seconds_total counter
# HELP caldera_queue_due [ALPHA] What the queue is due, with all queues below it (cores, bytes, counts). There is none where nothing divides the cluster, nor of resources of which it is due nothing.
# TYPE caldera_queue_due gauge
# HELP caldera_queue_held [ALPHA] What the queue and all queues below it hold (cores, bytes, counts).
# TYPE caldera_queue_held gauge
# HELP caldera_queue_left_out [ALPHA] 1 if the queue contradicts itself or the others, so that none of its jobs has turns, else 0.
# TYPE caldera_queue_left_out gauge
# HELP caldera_queue_limit [ALPHA] What the queue may hold at most, with all queues below it (cores, bytes, counts). There is none where there is no limit.
# TYPE caldera_queue_limit gauge
`
	for name, tc := range map[string]struct {
		queue dispatch.QueueFigures
		want  string
	}{
		"what it holds is that of all queues below it": {dispatch.QueueFigures{
			Spec: &model.Queue{}, Usage: account.Usage{Allocated: gpus(1)}, BelowDue: 90.5,
			Total:    account.Usage{Allocated: resource.Vector{{Name: "cpu", Value: 1500}, {Name: "memory", Value: 1024}, {Name: "nvidia.com/gpu", Value: 2}}},
			Deserved: gpus(4).Portion(), Real: resource.Limit{Amounts: gpus(8).Portion(), Unnamed: resource.Unlimited},
		}, `
caldera_queue_below_due_seconds_total{queue="research"} 90.5
caldera_queue_due{queue="research",resource="nvidia.com/gpu"} 4
caldera_queue_held{queue="research",resource="cpu"} 1.5
caldera_queue_held{queue="research",resource="memory"} 1024
caldera_queue_held{queue="research",resource="nvidia.com/gpu"} 2
caldera_queue_left_out{queue="research"} 0
caldera_queue_limit{queue="research",resource="nvidia.com/gpu"} 8
`},
		"it holds nothing of what it is due": {dispatch.QueueFigures{Spec: &model.Queue{}, Deserved: gpus(4).Portion()}, `
caldera_queue_below_due_seconds_total{queue="research"} 0
caldera_queue_due{queue="research",resource="nvidia.com/gpu"} 4
caldera_queue_held{queue="research",resource="nvidia.com/gpu"} 0
caldera_queue_left_out{queue="research"} 0
`},
		"nothing divides the cluster": {dispatch.QueueFigures{Spec: &model.Queue{}, Total: account.Usage{Allocated: gpus(4)}}, `
caldera_queue_below_due_seconds_total{queue="research"} 0
caldera_queue_held{queue="research",resource="nvidia.com/gpu"} 4
caldera_queue_left_out{queue="research"} 0
`},
		"it is left out": {dispatch.QueueFigures{Spec: &model.Queue{}, Fault: model.Reason{Kind: model.QueueMisconfigured}}, `
caldera_queue_below_due_seconds_total{queue="research"} 0
caldera_queue_left_out{queue="research"} 1
`},
		"it is only named by jobs": {dispatch.QueueFigures{Total: account.Usage{Allocated: gpus(4)}, Deserved: gpus(4).Portion(), BelowDue: 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.queue.Name = "research"
			want := ""
			for line := range strings.Lines(header) {
				// Only what has a series has a header.
				if of := strings.Fields(line); len(of) > 2 && strings.Contains(tc.want, "\n"+of[2]+"{") {
					want += line
				}
			}
			scraped(t, still{queues: []dispatch.QueueFigures{tc.queue}}, want+tc.want, "caldera_queue_held", "caldera_queue_due", "caldera_queue_limit",
				"caldera_queue_left_out", "caldera_queue_below_due_seconds_total")
		})
	}
}

// TestWaitingJobsAreCountedByReason: whatever queues users name, there is one series more.
func TestWaitingJobsAreCountedByReason(t *testing.T) {
	queues := []dispatch.QueueFigures{{Name: "empty", Spec: &model.Queue{}}, {Name: "research", Spec: &model.Queue{}}, {Name: "made-up"}}
	waiting := []dispatch.Waiting{
		{Queue: "research", Reason: model.Reason{Kind: model.QueueFull}},
		{Queue: "research", Reason: model.Reason{Kind: model.QueueFull}},
		{Queue: "research"},
		{Queue: "made-up", Reason: model.Reason{Kind: model.QueueNotFound}},
		{Queue: "made-up-2", Reason: model.Reason{Kind: model.QueueNotFound}},
	}
	scraped(t, still{queues: queues, waiting: waiting}, `
# HELP caldera_jobs_waiting [ALPHA] Number of jobs that wait, by queue and by the reason that they were last told; InLine: nothing is known to be in their way. Jobs of queues that do not exist are those of the queue (none).
# TYPE caldera_jobs_waiting gauge
caldera_jobs_waiting{queue="(none)",reason="QueueNotFound"} 2
caldera_jobs_waiting{queue="empty",reason="InLine"} 0
caldera_jobs_waiting{queue="research",reason="InLine"} 1
caldera_jobs_waiting{queue="research",reason="QueueFull"} 2
`, "caldera_jobs_waiting")
}

func TestSlotsAreShownBySize(t *testing.T) {
	scraped(t, still{slots: map[corev1.ResourceName][]int64{"nvidia.com/gpu": {9, 4, 2, 0}}}, `
# HELP caldera_slots [ALPHA] Number of pods that would find room now, each with so many devices of the resource on one node that is ready and not cordoned.
# TYPE caldera_slots gauge
caldera_slots{resource="nvidia.com/gpu",size="1"} 9
caldera_slots{resource="nvidia.com/gpu",size="2"} 4
caldera_slots{resource="nvidia.com/gpu",size="4"} 2
caldera_slots{resource="nvidia.com/gpu",size="8"} 0
`, "caldera_slots")
}

// TestHistogramsOfQueuesThatAreGoneGo: those of the others stay.
func TestHistogramsOfQueuesThatAreGoneGo(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(waits.vec, starts.vec)
	waits.keep(nil)
	starts.keep(nil)
	for _, queue := range []string{"stays", "goes"} {
		Recorder{}.Admitted(queue, time.Second)
		starts.observe(queue, time.Second)
	}
	scraped(t, still{queues: []dispatch.QueueFigures{{Name: "stays", Spec: &model.Queue{}}, {Name: "goes"}}}, "", "caldera_slots")
	for name, h := range map[string]*byQueue{"admission": waits, "start": starts} {
		if n := testutil.CollectAndCount(h.vec.HistogramVec); n != 1 {
			t.Errorf("%d queues have a histogram of waits for %s, want 1", n, name)
		}
	}
	if n, err := testutil.GatherAndCount(registry, "caldera_start_wait_seconds"); n != 1 || err != nil {
		t.Errorf("%d series are shown, want 1; error %v", n, err)
	}
}

// TestWaitsForStartsAreCounted: of jobs that start while this process decides, once each.
func TestWaitsForStartsAreCounted(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(starts.vec)
	starts.keep(nil)
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	clock := clocktesting.NewFakePassiveClock(created.Add(90 * time.Second))
	state := model.NewState()
	state.AddScheduler("volcano")
	RegisterStarts(state, clock)
	member := func(group, name string) *corev1.Pod { return builders.Member("ml", group, name, "1").UID(name).Obj() }
	begin := func(group string) {
		state.UpsertGroup(model.JobKey{Source: model.FromVolcano, Namespace: "ml", Name: group}, &model.Group{MinMember: 2, Queue: "research", Created: created})
		for _, name := range []string{group + "-0", group + "-1"} {
			p := member(group, name)
			state.UpsertPod(p.DeepCopy())
			p.Spec.NodeName = "node-0"
			state.UpsertPod(p)
		}
	}
	begin("before")
	state.Lead()
	begin("now")
	counts, sums := histogram(t, registry, "caldera_start_wait_seconds")
	if len(counts) != 1 || counts["research"] != 1 || sums["research"] != 90 {
		t.Errorf("starts are counted as %v, with %v s in all; want one in research after 90 s", counts, sums)
	}
}

func TestPlansAreCountedByResult(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(plans)
	plans.Reset()
	Planned(8, nil, time.Second)
	Planned(0, nil, time.Second)
	Planned(0, nil, time.Second)
	Planned(0, errors.New("a plugin failed"), time.Second)
	counts, sums := histogram(t, registry, "caldera_plan_seconds")
	if diff := cmp.Diff(map[string]uint64{planPlaced: 1, planRefused: 2, planErrored: 1}, counts); diff != "" || sums[planRefused] != 2 {
		t.Errorf("plans that were refused took %v s, want 2; counts (-want,+got)\n%s", sums[planRefused], diff)
	}
}

func TestTheStateOfTheFileIsShown(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(refused, abandoned)
	for _, is := range []bool{true, false} {
		ConfigurationRefused(is)
		if got := testutil.ToFloat64(refused); got != indicator(is) {
			t.Errorf("the gauge is %v when the file is refused: %v", got, is)
		}
	}
	before := testutil.ToFloat64(abandoned)
	Recorder{}.Abandoned()
	if got := testutil.ToFloat64(abandoned) - before; got != 1 {
		t.Errorf("%v turns were given up, want 1", got)
	}
}

// BenchmarkHotPath measures what is counted while jobs are placed: one plan, one start.
func BenchmarkHotPath(b *testing.B) {
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(plans, starts.vec)
	b.Run("plan", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			Planned(8, nil, time.Millisecond)
		}
	})
	b.Run("start", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			starts.observe("research", time.Second)
		}
	})
}
