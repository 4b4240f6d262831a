// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// still is a scheduler at one moment.
type still struct {
	queues  []dispatch.QueueFigures
	shares  map[model.JobKey]float64
	waiting []dispatch.Waiting
	broken  map[dispatch.Break]int
	totals  dispatch.BrokenTotals
	usable  resource.Vector
	slots   map[corev1.ResourceName][]int64
}

func (s still) Figures() []dispatch.QueueFigures { return s.queues }
func (s still) Shares() map[model.JobKey]float64 { return s.shares }
func (s still) Waiting() []dispatch.Waiting      { return s.waiting }
func (s still) Broken() map[dispatch.Break]int   { return s.broken }
func (s still) BrokenTotals() dispatch.BrokenTotals {
	return s.totals
}
func (s still) Usable() resource.Vector                        { return s.usable }
func (s still) Slots(...int64) map[corev1.ResourceName][]int64 { return s.slots }

// scraped is what /metrics shows of the named metrics.
func scraped(t *testing.T, source Source, want string, names ...string) {
	t.Helper()
	registry := metrics.NewKubeRegistry()
	registry.CustomMustRegister(&collector{source: source})
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}

func TestQueuesAreShownAsVolcanoShowsThem(t *testing.T) {
	gpus := func(n int64) resource.Vector {
		return resource.Vector{{Name: "cpu", Value: 1500}, {Name: "memory", Value: 1024}, {Name: "nvidia.com/gpu", Value: n}, {Name: "pods", Value: 3}}
	}
	source := still{queues: []dispatch.QueueFigures{{
		Name: "research", Spec: &model.Queue{Weight: 4}, Usage: account.Usage{Allocated: gpus(2), Jobs: 1}, Deserved: gpus(1).Portion(),
		Real: resource.Limit{Unnamed: resource.Unlimited}, Share: 2, Groups: account.Groups{Running: 5},
	}}}
	scraped(t, source, `
# HELP volcano_queue_allocated_milli_cpu [ALPHA] CPU that the jobs of the queue hold (millicores).
# TYPE volcano_queue_allocated_milli_cpu gauge
volcano_queue_allocated_milli_cpu{queue_name="research"} 1500
# HELP volcano_queue_allocated_scalar_resources [ALPHA] Other resources that the jobs of the queue hold (thousandths; pods: whole).
# TYPE volcano_queue_allocated_scalar_resources gauge
volcano_queue_allocated_scalar_resources{queue_name="research",resource="nvidia.com/gpu"} 2000
volcano_queue_allocated_scalar_resources{queue_name="research",resource="pods"} 3
# HELP volcano_queue_deserved_memory_bytes [ALPHA] Memory that the queue is due (bytes).
# TYPE volcano_queue_deserved_memory_bytes gauge
volcano_queue_deserved_memory_bytes{queue_name="research"} 1024
# HELP volcano_queue_overused [ALPHA] 1 if the queue holds all it is due, else 0.
# TYPE volcano_queue_overused gauge
volcano_queue_overused{queue_name="research"} 1
# HELP volcano_queue_pod_group_running_count [ALPHA] Number of Running PodGroups of the queue.
# TYPE volcano_queue_pod_group_running_count gauge
volcano_queue_pod_group_running_count{queue_name="research"} 5
# HELP volcano_queue_real_capacity_milli_cpu [ALPHA] CPU that the queue may hold at most (millicores).
# TYPE volcano_queue_real_capacity_milli_cpu gauge
volcano_queue_real_capacity_milli_cpu{queue_name="research"} 1.7976931348623157e+308
# HELP volcano_queue_share [ALPHA] Dominant part of what the queue is due that it holds.
# TYPE volcano_queue_share gauge
volcano_queue_share{queue_name="research"} 2
# HELP volcano_queue_weight [ALPHA] Weight of the queue.
# TYPE volcano_queue_weight gauge
volcano_queue_weight{queue_name="research"} 4
`, "volcano_queue_allocated_milli_cpu", "volcano_queue_allocated_scalar_resources", "volcano_queue_deserved_memory_bytes", "volcano_queue_overused",
		"volcano_queue_pod_group_running_count", "volcano_queue_real_capacity_milli_cpu", "volcano_queue_share", "volcano_queue_weight")
}

func TestJobsAreShownWhileTheyExist(t *testing.T) {
	train := model.JobKey{Source: model.FromVolcano, Namespace: "ml", Name: "train"}
	pod := model.JobKey{Source: model.FromPod, Namespace: "ml", Name: "pod"}
	names := []string{"volcano_job_share", "volcano_job_retry_counts", "volcano_unschedule_task_count", "volcano_unschedule_job_count"}
	scraped(t, still{
		shares:  map[model.JobKey]float64{train: 0.25, pod: 0.5},
		waiting: []dispatch.Waiting{{Job: train, Tasks: 8, Refused: 3}, {Job: pod, Tasks: 1, Refused: 1}},
	}, `
# HELP volcano_job_retry_counts [ALPHA] Number of turns that a waiting job had without being placed.
# TYPE volcano_job_retry_counts counter
volcano_job_retry_counts{job_id="train"} 3
# HELP volcano_job_share [ALPHA] Dominant part of the cluster that the job holds.
# TYPE volcano_job_share gauge
volcano_job_share{job_id="train",job_ns="ml"} 0.25
# HELP volcano_unschedule_job_count [ALPHA] Number of jobs that wait.
# TYPE volcano_unschedule_job_count gauge
volcano_unschedule_job_count 2
# HELP volcano_unschedule_task_count [ALPHA] Number of tasks of a waiting job that have no node.
# TYPE volcano_unschedule_task_count gauge
volcano_unschedule_task_count{job_id="train"} 8
`, names...)
	scraped(t, still{}, `
# HELP volcano_unschedule_job_count [ALPHA] Number of jobs that wait.
# TYPE volcano_unschedule_job_count gauge
volcano_unschedule_job_count 0
`, names...)
}

// TestJobsOfOneNameAreShownTogether: Volcano's metrics of waiting jobs do not have the namespace, and two metrics that look the same would
// be an error instead of all metrics. Those of the job's shares do, but not where the PodGroup comes from.
func TestJobsOfOneNameAreShownTogether(t *testing.T) {
	ours := model.JobKey{Source: model.FromVolcano, Namespace: "ours", Name: "train"}
	native := model.JobKey{Source: model.FromNative, Namespace: "ours", Name: "train"}
	theirs := model.JobKey{Source: model.FromVolcano, Namespace: "theirs", Name: "train"}
	scraped(t, still{
		shares:  map[model.JobKey]float64{ours: 0.25, native: 0.5, theirs: 0.125},
		waiting: []dispatch.Waiting{{Job: ours, Tasks: 8, Refused: 3}, {Job: native, Tasks: 4}, {Job: theirs, Tasks: 1, Refused: 1}},
	}, `
# HELP volcano_job_retry_counts [ALPHA] Number of turns that a waiting job had without being placed.
# TYPE volcano_job_retry_counts counter
volcano_job_retry_counts{job_id="train"} 4
# HELP volcano_job_share [ALPHA] Dominant part of the cluster that the job holds.
# TYPE volcano_job_share gauge
volcano_job_share{job_id="train",job_ns="ours"} 0.75
volcano_job_share{job_id="train",job_ns="theirs"} 0.125
# HELP volcano_unschedule_task_count [ALPHA] Number of tasks of a waiting job that have no node.
# TYPE volcano_unschedule_task_count gauge
volcano_unschedule_task_count{job_id="train"} 13
`, "volcano_job_share", "volcano_job_retry_counts", "volcano_unschedule_task_count")
}

func TestBrokenGangsAreShownByCause(t *testing.T) {
	scraped(t, still{broken: map[dispatch.Break]int{dispatch.Half: 2, dispatch.Lost: 0}}, `
# HELP caldera_broken_gangs [ALPHA] Number of gangs of which some members hold nodes, and too few, by cause: half (they were never whole), lost (they were).
# TYPE caldera_broken_gangs gauge
caldera_broken_gangs{cause="half"} 2
caldera_broken_gangs{cause="lost"} 0
`, "caldera_broken_gangs")
	scraped(t, still{totals: dispatch.BrokenTotals{
		Seconds: map[dispatch.Break]float64{dispatch.Half: 90.5, dispatch.Lost: 0},
		Held:    map[corev1.ResourceName]float64{"cpu": 1500, "nvidia.com/gpu": 16},
	}}, `
# HELP caldera_gang_broken_resource_seconds_total [ALPHA] What the members on nodes of such gangs had asked for meanwhile, times the seconds (core-seconds, byte-seconds, device-seconds).
# TYPE caldera_gang_broken_resource_seconds_total counter
caldera_gang_broken_resource_seconds_total{resource="cpu"} 1.5
caldera_gang_broken_resource_seconds_total{resource="nvidia.com/gpu"} 16
# HELP caldera_gang_broken_seconds_total [ALPHA] Seconds for which gangs held nodes for too few of their members, by cause: half (they were never whole), lost (they were).
# TYPE caldera_gang_broken_seconds_total counter
caldera_gang_broken_seconds_total{cause="half"} 90.5
caldera_gang_broken_seconds_total{cause="lost"} 0
`, "caldera_gang_broken_seconds_total", "caldera_gang_broken_resource_seconds_total")
}

func TestWhatTheDispatcherDoesIsCounted(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	registry.MustRegister(turns, parks, waits.vec)
	turns.Reset()
	parks.Reset()
	waits.keep(nil)
	r := Recorder{}
	r.Turn(dispatch.Placing, dispatch.TurnPlaced, time.Second)
	r.Turn(dispatch.Placing, dispatch.TurnPlaced, time.Second)
	r.Turn(dispatch.Planning, dispatch.TurnRefused, time.Second)
	r.Parked(model.QueueFull)
	r.Admitted("research", 3*time.Second)
	r.Admitted("research", -time.Second)
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP caldera_jobs_parked_total [ALPHA] Number of times that jobs alike were set aside until something changes, by the reason.
# TYPE caldera_jobs_parked_total counter
caldera_jobs_parked_total{reason="QueueFull"} 1
# HELP caldera_turns_total [ALPHA] Number of turns of jobs, by how far they had come (offered, planning, preempting: others are sought who may be evicted, placing) and how they ended: placed, refused (no room), pipelined (others are evicted for it), reserved (room is reserved for it), repeated (the scheduler's cache had yet to learn of room), broken (a member was lost, or nothing was heard of it), errored (a plugin or an extender failed), changed (what it was given for is gone, or not in the scheduling queue).
# TYPE caldera_turns_total counter
caldera_turns_total{phase="placing",result="placed"} 2
caldera_turns_total{phase="planning",result="refused"} 1
`), "caldera_jobs_parked_total", "caldera_turns_total"); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(waits.vec.HistogramVec); n != 1 {
		t.Errorf("%d queues have a histogram of waits, want 1", n)
	}
}

func TestWhatOfTheClusterIsUsable(t *testing.T) {
	source := still{usable: resource.Vector{{Name: "cpu", Value: 2500}, {Name: "memory", Value: 1 << 20}, {Name: "nvidia.com/gpu", Value: 8}}}
	scraped(t, source, `
# HELP caldera_cluster_usable [ALPHA] What of all nodes jobs can use or hold: without nodes that no job's pods may go to, and without what pods of other schedulers hold (cores, bytes, devices).
# TYPE caldera_cluster_usable gauge
caldera_cluster_usable{resource="cpu"} 2.5
caldera_cluster_usable{resource="memory"} 1.048576e+06
caldera_cluster_usable{resource="nvidia.com/gpu"} 8
`, "caldera_cluster_usable")
}
