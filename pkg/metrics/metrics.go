// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package metrics shows what the scheduler decides on its /metrics: Volcano's metrics of queues and jobs with their
// names and labels, and Caldera's own of turns and admission.
package metrics

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

var (
	turns = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "caldera", Name: "turns_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of turns of jobs, by how far they had come (offered, planning, preempting: others are sought who may be evicted, placing) and how they ended: placed, refused (no room), pipelined (others are evicted for it), reserved (room is reserved for it), repeated (the scheduler's cache had yet to learn of room), broken (a member was lost, or nothing was heard of it), errored (a plugin or an extender failed), changed (what it was given for is gone, or not in the scheduling queue).",
	}, []string{"phase", "result"})
	parks = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "caldera", Name: "jobs_parked_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of times that jobs alike were set aside until something changes, by the reason.",
	}, []string{"reason"})
	retries = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "caldera", Name: "turn_retries_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of turns of jobs that were refused before though there seemed to be room, or failed; they may take a tenth of the time.",
	})
	sweeps = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "caldera", Name: "missed_wakeups_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of jobs that were placed in a turn for which nothing had happened: what helped them was missed. Anything but 0 is a bug.",
	})
	reservations = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "caldera", Name: "reservations_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of times that room was reserved for a job (made), and what became of it: the job started, by when it was first told if that was a bound (kept), or later (late: a node was lost, pods did not end, somebody with precedence came), or it was gone, gave up, or had others evicted (ended).",
	}, []string{"result"})
	releases = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "caldera", Name: "gangs_released_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of times that gangs which held nodes for too few of their members for too long had these evicted though nobody needed it, by cause: half (they were never whole), lost (they were).",
	}, []string{"cause"})
	abandoned = metrics.NewCounter(&metrics.CounterOpts{
		Subsystem: "caldera", Name: "turns_abandoned_total", StabilityLevel: metrics.ALPHA,
		Help: "Number of turns, of those that are broken, that were given up because nothing was heard of them; anything but 0 is a bug, or a plugin that hangs.",
	})
	waits = newByQueue(&metrics.HistogramOpts{
		Subsystem: "caldera", Name: "admission_wait_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time from a job's creation to its admission to its queue.",
		Buckets: metrics.ExponentialBuckets(0.01, 4, 12),
	})
	starts = newByQueue(&metrics.HistogramOpts{
		Subsystem: "caldera", Name: "start_wait_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time from the creation of a group, or of a pod of its own, until it is bound with its minimum for the first time. A job that starts anew after its eviction is not counted again unless another process leads by then.",
		Buckets: metrics.ExponentialBuckets(0.01, 4, 13),
	})
	plans = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: "caldera", Name: "plan_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time of one plan for a gang, or for a pod of its own: placed (there is room for all that it needs), refused (there is not), errored (a plugin failed). The search for victims is not part of it.",
		Buckets: metrics.ExponentialBuckets(0.0001, 2, 18),
	}, []string{"result"})
)

var reloads = metrics.NewCounterVec(&metrics.CounterOpts{
	Subsystem: "caldera", Name: "configuration_changes_total", StabilityLevel: metrics.ALPHA,
	Help: "Number of changes of the configuration's file, by what became of them: applied, or refused (the configuration from before stays in force).",
}, []string{"result"})

var refused = metrics.NewGauge(&metrics.GaugeOpts{
	Subsystem: "caldera", Name: "configuration_refused", StabilityLevel: metrics.ALPHA,
	Help: "1 while the configuration's file has something in it that was refused, or cannot be read: one from before is in force. Else 0.",
})

// ConfigurationRefused tells whether what is in the configuration's file now is not what is in force.
func ConfigurationRefused(is bool) { refused.Set(indicator(is)) }

// What becomes of changes of the configuration's file.
const (
	reloadApplied = "applied"
	reloadRefused = "refused"
)

// Reloaded counts a change of the configuration's file.
func Reloaded(applied bool) {
	result := reloadRefused
	if applied {
		result = reloadApplied
	}
	reloads.WithLabelValues(result).Inc()
}

// Source is where the metrics of queues and jobs are read when they are asked for.
type Source interface {
	Figures() []dispatch.QueueFigures
	Shares() map[model.JobKey]float64
	Waiting() []dispatch.Waiting
	Broken() map[dispatch.Break]int
	// BrokenTotals are what those came to so far.
	BrokenTotals() dispatch.BrokenTotals
	// Usable is the part of the cluster that jobs can use, and what they hold of the rest.
	Usable() resource.Vector
	// Slots are the numbers of pods for which there is room, by the resource and the amount of it that each of them asks for.
	Slots(sizes ...int64) map[corev1.ResourceName][]int64
}

// Register adds the metrics to the registry that the scheduler serves.
func Register(source Source) {
	RegisterCounters()
	legacyregistry.CustomMustRegister(&collector{source: source})
	legacyregistry.MustRegister(build)
	showBuild()
}

// RegisterCounters adds those that do not ask a scheduler. They count from then on.
func RegisterCounters() {
	legacyregistry.MustRegister(turns, parks, retries, sweeps, reservations, releases, abandoned, waits.vec, starts.vec, plans, reloads, refused)
	beginAtNought()
}

// beginAtNought shows counters before there is anything to count: Prometheus tells no increase of a series that it has not seen before.
func beginAtNought() {
	for vec, values := range map[*metrics.CounterVec][]string{
		reloads:      {reloadApplied, reloadRefused},
		releases:     {string(dispatch.Half), string(dispatch.Lost)},
		reservations: {string(dispatch.ReservationMade), string(dispatch.ReservationKept), string(dispatch.ReservationLate), string(dispatch.ReservationEnded)},
	} {
		for _, value := range values {
			vec.WithLabelValues(value)
		}
	}
}

// RegisterStarts has the time counted that each job waits for its start, as far as this process decides.
func RegisterStarts(state *model.State, clock clock.PassiveClock) {
	state.Observe(func(c model.Change) {
		for _, s := range c.Started {
			starts.observe(s.Queue, clock.Since(s.Created))
		}
	})
}

// The results of plans.
const (
	planPlaced  = "placed"
	planRefused = "refused"
	planErrored = "errored"
)

// Planned counts a plan for so many tasks, of which 0 is a refusal, and how long it took.
func Planned(tasks int, err error, took time.Duration) {
	result := planPlaced
	switch {
	case err != nil:
		result = planErrored
	case tasks == 0:
		result = planRefused
	}
	plans.WithLabelValues(result).Observe(took.Seconds())
}

// Recorder counts what the dispatcher does.
type Recorder struct{}

// Turn counts a turn that ended, and how long it took.
func (Recorder) Turn(phase dispatch.TurnPhase, result dispatch.TurnResult, took time.Duration) {
	turns.WithLabelValues(string(phase), string(result)).Inc()
	turned(took, phase == dispatch.Preempting)
}

// Parked counts a lot that was set aside.
func (Recorder) Parked(reason model.ReasonKind) { parks.WithLabelValues(string(reason)).Inc() }

// Retried counts a turn of a job that was refused before though there seemed to be room.
func (Recorder) Retried() { retries.Inc() }

// Swept counts a job that was placed though nothing had happened.
func (Recorder) Swept() { sweeps.Inc() }

// Reservation counts room that is reserved, and what became of it.
func (Recorder) Reservation(how dispatch.ReservationResult) {
	reservations.WithLabelValues(string(how)).Inc()
}

// Released counts a broken gang that gives back what it holds.
func (Recorder) Released(how dispatch.Break) { releases.WithLabelValues(string(how)).Inc() }

// Abandoned counts a turn that is given up because nothing was heard of it.
func (Recorder) Abandoned() { abandoned.Inc() }

// Admitted records how long a job waited for its admission.
func (Recorder) Admitted(queue string, waited time.Duration) { waits.observe(queue, waited) }
