// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// clockwork is a model and the metrics of latencies of what happens to it.
type clockwork struct {
	t        *testing.T
	clock    *clocktesting.FakePassiveClock
	state    *model.State
	registry metrics.KubeRegistry
}

func newClockwork(t *testing.T) *clockwork {
	c := &clockwork{t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0)), state: model.NewState(), registry: metrics.NewKubeRegistry()}
	c.state.AddScheduler("volcano")
	for _, h := range []interface{ Reset() }{taskLatency, actionLatency} {
		h.Reset()
	}
	c.registry.MustRegister(turnLatency, actionLatency, taskLatency, jobLatency)
	c.registry.CustomMustRegister(newLatencies(c.state, c.clock))
	return c
}

func (c *clockwork) pass(d time.Duration) { c.clock.SetTime(c.clock.Now().Add(d)) }

// histogram returns how many samples a metric has by a label's value, and their sum in milliseconds.
func (c *clockwork) histogram(name string) (counts map[string]uint64, sums map[string]float64) {
	c.t.Helper()
	return histogram(c.t, c.registry, name)
}

// histogram returns how many samples a metric has by a label's value, and their sum.
func histogram(t *testing.T, registry metrics.KubeRegistry, name string) (counts map[string]uint64, sums map[string]float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts, sums = map[string]uint64{}, map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			counts[value(m)] = m.GetHistogram().GetSampleCount()
			sums[value(m)] = m.GetHistogram().GetSampleSum()
		}
	}
	return counts, sums
}

func value(m *dto.Metric) string {
	if len(m.GetLabel()) == 0 {
		return ""
	}
	return m.GetLabel()[0].GetValue()
}

func (c *clockwork) shows(want string, names ...string) {
	c.t.Helper()
	if err := testutil.GatherAndCompare(c.registry, strings.NewReader(want), names...); err != nil {
		c.t.Error(err)
	}
}

var gauges = []string{"volcano_e2e_job_scheduling_duration", "volcano_e2e_job_scheduling_start_time", "volcano_e2e_job_scheduling_last_time"}

func TestTheWayOfAJobIsTimed(t *testing.T) {
	c := newClockwork(t)
	key := model.JobKey{Source: model.FromVolcano, Namespace: "ml", Name: "train"}
	c.state.UpsertGroup(key, &model.Group{Queue: "research", MinMember: 1, Created: c.clock.Now()})
	pod := builders.Pod("ml", "p").
		Annotation("scheduling.k8s.io/group-name", "train").CreationTimestamp(metav1.NewTime(c.clock.Now())).Obj()
	c.pass(time.Second)
	c.state.UpsertPod(pod)
	c.state.UpsertPod(pod)
	c.shows(`
# HELP volcano_e2e_job_scheduling_start_time [ALPHA] When the job was first seen in a queue (Unix seconds).
# TYPE volcano_e2e_job_scheduling_start_time gauge
volcano_e2e_job_scheduling_start_time{job_name="train",job_namespace="ml",queue="research"} 1e+06
`, gauges...)
	before, sumBefore := c.histogram("volcano_e2e_job_scheduling_latency_milliseconds")

	c.pass(2 * time.Second)
	c.state.Assume("p", "node")
	c.pass(3 * time.Second)
	onNode := pod.DeepCopy()
	onNode.Spec.NodeName = "node"
	c.state.UpsertPod(onNode)
	c.state.UpsertPod(onNode)
	counts, sums := c.histogram("volcano_task_scheduling_latency_milliseconds")
	for stage, want := range map[string]float64{"Watched": 1000, "Assumed": 3000, "Bound": 6000} {
		if counts[stage] != 1 || sums[stage] != want {
			t.Errorf("%s: %d tasks, %v ms in all; want 1 and %v ms", stage, counts[stage], sums[stage], want)
		}
	}
	if counts, sums := c.histogram("volcano_e2e_job_scheduling_latency_milliseconds"); counts[""]-before[""] != 1 || sums[""]-sumBefore[""] != 3000 {
		t.Errorf("%d jobs' tasks, %v ms in all; want 1 and 3000 ms more than %d and %v", counts[""], sums[""], before[""], sumBefore[""])
	}
	c.shows(`
# HELP volcano_e2e_job_scheduling_duration [ALPHA] Time from the job's creation to the last reservation of one of its tasks (ms).
# TYPE volcano_e2e_job_scheduling_duration gauge
volcano_e2e_job_scheduling_duration{job_name="train",job_namespace="ml",queue="research"} 3000
# HELP volcano_e2e_job_scheduling_last_time [ALPHA] When a task of the job last got a reservation (Unix seconds).
# TYPE volcano_e2e_job_scheduling_last_time gauge
volcano_e2e_job_scheduling_last_time{job_name="train",job_namespace="ml",queue="research"} 1.000003e+06
# HELP volcano_e2e_job_scheduling_start_time [ALPHA] When the job was first seen in a queue (Unix seconds).
# TYPE volcano_e2e_job_scheduling_start_time gauge
volcano_e2e_job_scheduling_start_time{job_name="train",job_namespace="ml",queue="research"} 1e+06
`, gauges...)

	c.state.DeletePod("p")
	c.state.DeleteGroup(key)
	c.shows("", gauges...)
}

// TestWhatOthersBindIsNotTimed: a process that waits to lead sees pods appear on nodes, and one that starts sees those that were there.
func TestWhatOthersBindIsNotTimed(t *testing.T) {
	c := newClockwork(t)
	waits := builders.Pod("ml", "a").CreationTimestamp(metav1.NewTime(c.clock.Now())).Obj()
	c.state.UpsertPod(waits)
	onNode := waits.DeepCopy()
	onNode.Spec.NodeName = "node"
	c.state.UpsertPod(onNode)
	there := onNode.DeepCopy()
	there.UID, there.Name = "b", "b"
	c.state.UpsertPod(there)
	if counts, _ := c.histogram("volcano_task_scheduling_latency_milliseconds"); counts["Watched"] != 1 || counts["Assumed"] != 0 || counts["Bound"] != 0 {
		t.Errorf("tasks by stage: %v, want one that was watched", counts)
	}
}

func TestOneJobOfANameIsShown(t *testing.T) {
	c := newClockwork(t)
	for _, source := range []model.Source{model.FromVolcano, model.FromNative} {
		c.state.UpsertGroup(model.JobKey{Source: source, Namespace: "ml", Name: "train"}, &model.Group{Queue: "research"})
		c.pass(time.Second)
	}
	c.shows(`
# HELP volcano_e2e_job_scheduling_start_time [ALPHA] When the job was first seen in a queue (Unix seconds).
# TYPE volcano_e2e_job_scheduling_start_time gauge
volcano_e2e_job_scheduling_start_time{job_name="train",job_namespace="ml",queue="research"} 1.000001e+06
`, gauges...)
}

// TestAJobThatTakesANameBeginsAnew: nobody was told that the first one is gone.
func TestAJobThatTakesANameBeginsAnew(t *testing.T) {
	c := newClockwork(t)
	key := model.JobKey{Source: model.FromVolcano, Namespace: "ml", Name: "train"}
	for _, uid := range []types.UID{"first", "second", "second"} {
		c.state.UpsertGroup(key, &model.Group{Queue: "research", UID: uid})
		c.pass(time.Second)
	}
	c.shows(`
# HELP volcano_e2e_job_scheduling_start_time [ALPHA] When the job was first seen in a queue (Unix seconds).
# TYPE volcano_e2e_job_scheduling_start_time gauge
volcano_e2e_job_scheduling_start_time{job_name="train",job_namespace="ml",queue="research"} 1.000001e+06
`, gauges...)
}

func TestTurnsAreTimedByWhatTheyDo(t *testing.T) {
	c := newClockwork(t)
	before, _ := c.histogram("volcano_e2e_scheduling_latency_milliseconds")
	r := Recorder{}
	r.Turn(dispatch.Placing, dispatch.TurnPlaced, 20*time.Millisecond)
	r.Turn(dispatch.Preempting, dispatch.TurnRefused, time.Second)
	PreemptionAttempt(config.Reclaim, 0, 7*time.Millisecond)
	after, _ := c.histogram("volcano_e2e_scheduling_latency_milliseconds")
	if n := after[""] - before[""]; n != 2 {
		t.Errorf("%d turns were timed, want 2", n)
	}
	counts, sums := c.histogram("volcano_action_scheduling_latency_milliseconds")
	if len(counts) != 2 || sums["allocate"] != 20 || sums["reclaim"] != 7 {
		t.Errorf("milliseconds by action: %v, want 20 of allocate and 7 of reclaim", sums)
	}
}
