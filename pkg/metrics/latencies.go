// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Volcano's histograms of latencies. They stay silent until RegisterLatencies is called.
var (
	turnLatency = metrics.NewHistogram(latencyOpts("e2e_scheduling",
		"Time from the offer of a turn to its end. Volcano: of one session.", metrics.ExponentialBucketsRange(1, 5000, 20)))
	actionLatency = metrics.NewHistogramVec(latencyOpts("action_scheduling",
		"Time of a turn that sought no victims (allocate), or of one search for victims (preempt, reclaim).",
		metrics.ExponentialBucketsRange(1, 2000, 20)), []string{"action"})
	taskLatency = metrics.NewHistogramVec(latencyOpts("task_scheduling",
		"Time from a pod's creation to when it was seen without a node (Watched), had a reservation (Assumed), or a node in the API (Bound).",
		metrics.ExponentialBucketsRange(50, 60_000, 30)), []string{"stage"})
	jobLatency = metrics.NewHistogram(latencyOpts("e2e_job_scheduling",
		"Time from a job's creation to the reservation of each of its tasks.", metrics.ExponentialBucketsRange(100, 120_000, 30)))
)

func latencyOpts(name, help string, milliseconds []float64) *metrics.HistogramOpts {
	return &metrics.HistogramOpts{
		Subsystem: "volcano", Name: name + "_latency_milliseconds", StabilityLevel: metrics.ALPHA, Help: help, Buckets: milliseconds,
	}
}

// Volcano's gauges of single jobs.
var (
	jobLabels   = []string{"job_name", "queue", "job_namespace"}
	jobDuration = describe("e2e_job_scheduling_duration", "Time from the job's creation to the last reservation of one of its tasks (ms).", jobLabels...)
	jobStart    = describe("e2e_job_scheduling_start_time", "When the job was first seen in a queue (Unix seconds).", jobLabels...)
	jobLast     = describe("e2e_job_scheduling_last_time", "When a task of the job last got a reservation (Unix seconds).", jobLabels...)
)

// The stages of a task, as Volcano names them.
const (
	watched = "Watched"
	assumed = "Assumed"
	bound   = "Bound"
)

// latencies follows tasks from their creation to their nodes, for the metrics of Volcano that are kept for each job. Before this process
// leads, another one assumes tasks: then none is counted as Assumed or Bound.
type latencies struct {
	metrics.BaseStableCollector
	state *model.State
	clock clock.PassiveClock

	mu sync.Mutex
	// waiting are the tasks that are not bound, each with the last stage in which it was counted.
	waiting map[types.UID]string
	jobs    map[model.JobKey]*milestones
}

// milestones are when things happened to a job.
type milestones struct {
	// uid tells a job from one that takes its name.
	uid                  types.UID
	queue                string
	created, start, last time.Time
}

// RegisterLatencies adds Volcano's metrics of latencies to the registry that the scheduler serves. There are up to three series for each
// PodGroup, as long as it exists. It must be called once, before the first turn.
func RegisterLatencies(state *model.State, clock clock.PassiveClock) {
	legacyregistry.MustRegister(turnLatency, actionLatency, taskLatency, jobLatency)
	legacyregistry.CustomMustRegister(newLatencies(state, clock))
}

func newLatencies(state *model.State, clock clock.PassiveClock) *latencies {
	l := &latencies{state: state, clock: clock, waiting: map[types.UID]string{}, jobs: map[model.JobKey]*milestones{}}
	state.Observe(l.note)
	return l
}

// note takes in what a change of the model did to tasks and jobs.
func (l *latencies) note(c model.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range c.Jobs {
		l.follow(key)
	}
	for _, uid := range c.Tasks {
		l.advance(uid)
	}
}

// follow takes in that something about a job changed.
func (l *latencies) follow(key model.JobKey) {
	if key.Source == model.FromPod {
		return
	}
	job := l.state.Summary(key)
	if job == nil {
		delete(l.jobs, key)
		return
	}
	m := l.jobs[key]
	if m == nil || m.uid != job.UID {
		m = &milestones{uid: job.UID, start: l.clock.Now()}
		l.jobs[key] = m
	}
	m.queue, m.created = job.Queue, job.Created
}

// advance takes in that something about a task changed.
func (l *latencies) advance(uid types.UID) {
	task := l.state.Task(uid)
	if task == nil {
		delete(l.waiting, uid)
		return
	}
	stage, known := l.waiting[uid]
	switch {
	case task.Status == model.Pending && !known:
		l.reach(task, watched)
	case task.Status == model.Allocated && known && stage != assumed:
		l.reach(task, assumed)
		l.place(task)
	case task.Node != "" && task.Status != model.Allocated || task.Completed():
		if stage == assumed && task.Node != "" {
			l.reach(task, bound)
		}
		delete(l.waiting, uid)
	}
}

// reach counts that a task came to a stage.
func (l *latencies) reach(task *model.Task, stage string) {
	l.waiting[task.UID] = stage
	taskLatency.WithLabelValues(stage).Observe(milliseconds(l.clock.Since(task.Created)))
}

// place notes that a task of a job has a reservation.
func (l *latencies) place(task *model.Task) {
	created := task.Created
	if m := l.jobs[task.Job]; m != nil {
		m.last, created = l.clock.Now(), m.created
	}
	jobLatency.Observe(milliseconds(l.clock.Since(created)))
}

// DescribeWithStability implements metrics.StableCollector.
func (l *latencies) DescribeWithStability(out chan<- *metrics.Desc) {
	out <- jobDuration
	out <- jobStart
	out <- jobLast
}

// CollectWithStability implements metrics.StableCollector.
func (l *latencies) CollectWithStability(out chan<- metrics.Metric) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// Jobs of two sources may have one name. No metric may be shown twice.
	type name struct{ job, queue, namespace string }
	latest := map[name]*milestones{}
	for key, m := range l.jobs {
		n := name{key.Name, m.queue, key.Namespace}
		if other := latest[n]; other == nil || m.start.After(other.start) {
			latest[n] = m
		}
	}
	for n, m := range latest {
		gauge := func(d *metrics.Desc, value float64) {
			out <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, value, n.job, n.queue, n.namespace)
		}
		gauge(jobStart, unixSeconds(m.start))
		if !m.last.IsZero() {
			gauge(jobLast, unixSeconds(m.last))
			gauge(jobDuration, milliseconds(m.last.Sub(m.created)))
		}
	}
}

// turned records how long a turn took.
func turned(took time.Duration, sought bool) {
	turnLatency.Observe(milliseconds(took))
	if !sought {
		actionLatency.WithLabelValues("allocate").Observe(milliseconds(took))
	}
}

// milliseconds is a duration as Volcano shows it; clocks of machines that differ make none negative.
func milliseconds(d time.Duration) float64 { return max(0, d.Seconds()*1000) }

func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
