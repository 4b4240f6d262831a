// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// collector reads the metrics of queues and jobs when they are asked for, so that none outlives its queue or job.
type collector struct {
	metrics.BaseStableCollector
	source Source
}

func describe(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc("volcano_"+name, help, labels, nil, metrics.ALPHA, "")
}

// amounts are the three metrics by which Volcano shows one vector of a queue.
type amounts struct{ cpu, memory, scalar *metrics.Desc }

func describeAmounts(name, what string) amounts {
	return amounts{
		cpu:    describe("queue_"+name+"_milli_cpu", "CPU that "+what+" (millicores).", "queue_name"),
		memory: describe("queue_"+name+"_memory_bytes", "Memory that "+what+" (bytes).", "queue_name"),
		scalar: describe("queue_"+name+"_scalar_resources", "Other resources that "+what+" (thousandths; pods: whole).", "queue_name", "resource"),
	}
}

// The metrics of Volcano (pkg/scheduler/metrics).
var (
	allocated    = describeAmounts("allocated", "the jobs of the queue hold")
	requested    = describeAmounts("request", "the jobs of the queue hold or wait for")
	deserved     = describeAmounts("deserved", "the queue is due")
	inqueue      = describeAmounts("inqueue", "admitted jobs of the queue were promised")
	capacity     = describeAmounts("capacity", "the queue's capability allows")
	realCapacity = describeAmounts("real_capacity", "the queue may hold at most")

	share    = describe("queue_share", "Dominant part of what the queue is due that it holds.", "queue_name")
	weight   = describe("queue_weight", "Weight of the queue.", "queue_name")
	overused = describe("queue_overused", "1 if the queue holds all it is due, else 0.", "queue_name")

	groupCounts = map[model.Phase]*metrics.Desc{
		model.PhasePending:   describe("queue_pod_group_pending_count", "Number of Pending PodGroups of the queue.", "queue_name"),
		model.PhaseInqueue:   describe("queue_pod_group_inqueue_count", "Number of Inqueue PodGroups of the queue.", "queue_name"),
		model.PhaseRunning:   describe("queue_pod_group_running_count", "Number of Running PodGroups of the queue.", "queue_name"),
		model.PhaseUnknown:   describe("queue_pod_group_unknown_count", "Number of Unknown PodGroups of the queue.", "queue_name"),
		model.PhaseCompleted: describe("queue_pod_group_completed_count", "Number of Completed PodGroups of the queue.", "queue_name"),
	}

	jobShare         = describe("job_share", "Dominant part of the cluster that the job holds.", "job_ns", "job_id")
	jobRetries       = describe("job_retry_counts", "Number of turns that a waiting job had without being placed.", "job_id")
	unscheduledTasks = describe("unschedule_task_count", "Number of tasks of a waiting job that have no node.", "job_id")
	unscheduledJobs  = describe("unschedule_job_count", "Number of jobs that wait.")

	clusterUsable = metrics.NewDesc("caldera_cluster_usable",
		"What of all nodes jobs can use or hold: without nodes that no job's pods may go to, and without what pods of other schedulers hold (cores, bytes, devices).",
		[]string{"resource"}, nil, metrics.ALPHA, "")
	brokenGangs = metrics.NewDesc("caldera_broken_gangs",
		"Number of gangs of which some members hold nodes, and too few, by cause: half (they were never whole), lost (they were).",
		[]string{"cause"}, nil, metrics.ALPHA, "")
	brokenSeconds = metrics.NewDesc("caldera_gang_broken_seconds_total",
		"Seconds for which gangs held nodes for too few of their members, by cause: half (they were never whole), lost (they were).",
		[]string{"cause"}, nil, metrics.ALPHA, "")
	brokenHeld = metrics.NewDesc("caldera_gang_broken_resource_seconds_total",
		"What the members on nodes of such gangs had asked for meanwhile, times the seconds (core-seconds, byte-seconds, device-seconds).",
		[]string{"resource"}, nil, metrics.ALPHA, "")
)

// DescribeWithStability implements metrics.StableCollector.
func (c *collector) DescribeWithStability(out chan<- *metrics.Desc) {
	for _, a := range []amounts{allocated, requested, deserved, inqueue, capacity, realCapacity} {
		out <- a.cpu
		out <- a.memory
		out <- a.scalar
	}
	for _, d := range groupCounts {
		out <- d
	}
	for _, d := range []*metrics.Desc{share, weight, overused, jobShare, jobRetries, unscheduledTasks, unscheduledJobs, clusterUsable, brokenGangs, brokenSeconds, brokenHeld} {
		out <- d
	}
	fairness{c.source}.describe(out)
}

// CollectWithStability implements metrics.StableCollector.
func (c *collector) CollectWithStability(out chan<- metrics.Metric) {
	gauge := func(d *metrics.Desc, value float64, labels ...string) {
		out <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, value, labels...)
	}
	queues, waiting := c.source.Figures(), c.source.Waiting()
	for _, q := range queues {
		collectQueue(q, gauge)
	}
	fairness{c.source}.collect(queues, waiting, out)
	c.collectJobs(waiting, gauge, out)
	for how, n := range c.source.Broken() {
		gauge(brokenGangs, float64(n), string(how))
	}
	for _, a := range c.source.Usable() {
		gauge(clusterUsable, inUnits(a.Name, float64(a.Value)), string(a.Name))
	}
	c.collectBroken(out)
}

// collectJobs shows the jobs that have a PodGroup or the like. By Volcano's labels some may look the same, those of one name in several
// namespaces for one, and no metric may be shown twice: what they come to together is shown.
func (c *collector) collectJobs(waiting []dispatch.Waiting, gauge func(*metrics.Desc, float64, ...string), out chan<- metrics.Metric) {
	shares := map[types.NamespacedName]float64{}
	for key, part := range c.source.Shares() {
		if key.Source != model.FromPod {
			shares[types.NamespacedName{Namespace: key.Namespace, Name: key.Name}] += part
		}
	}
	for name, part := range shares {
		gauge(jobShare, part, name.Namespace, name.Name)
	}
	gauge(unscheduledJobs, float64(len(waiting)))
	tasks, refused := map[string]int{}, map[string]int{}
	for _, w := range waiting {
		if w.Job.Source != model.FromPod {
			tasks[w.Job.Name] += w.Tasks
			refused[w.Job.Name] += w.Refused
		}
	}
	for name, n := range tasks {
		gauge(unscheduledTasks, float64(n), name)
		out <- metrics.NewLazyConstMetric(jobRetries, metrics.CounterValue, float64(refused[name]), name)
	}
}

// collectBroken shows what broken gangs came to.
func (c *collector) collectBroken(out chan<- metrics.Metric) {
	totals := c.source.BrokenTotals()
	for how, seconds := range totals.Seconds {
		out <- metrics.NewLazyConstMetric(brokenSeconds, metrics.CounterValue, seconds, string(how))
	}
	for name, held := range totals.Held {
		if name == corev1.ResourceCPU {
			held /= 1000
		}
		out <- metrics.NewLazyConstMetric(brokenHeld, metrics.CounterValue, held, string(name))
	}
}

// collectQueue writes the metrics of one queue.
func collectQueue(q dispatch.QueueFigures, gauge func(*metrics.Desc, float64, ...string)) {
	show := func(a amounts, p resource.Portion) {
		gauge(a.cpu, p.Get(corev1.ResourceCPU), q.Name)
		gauge(a.memory, p.Get(corev1.ResourceMemory), q.Name)
		for _, x := range p {
			switch x.Name {
			case corev1.ResourceCPU, corev1.ResourceMemory:
			case corev1.ResourcePods:
				gauge(a.scalar, x.Value, q.Name, string(x.Name))
			default:
				gauge(a.scalar, x.Value*1000, q.Name, string(x.Name))
			}
		}
	}
	show(allocated, q.Usage.Allocated.Portion())
	show(requested, q.Usage.Requested.Portion())
	show(inqueue, q.Usage.Inqueue.Portion())
	show(deserved, q.Deserved)
	show(capacity, bounded(q.Capability))
	show(realCapacity, bounded(q.Real))
	gauge(share, q.Share, q.Name)
	over := 0.0
	if q.Usage.Jobs > 0 && (q.Overused || q.Share > 1) {
		over = 1
	}
	gauge(overused, over, q.Name)
	if q.Spec != nil {
		gauge(weight, float64(q.Spec.Weight), q.Name)
	}
	for phase, n := range map[model.Phase]int{
		model.PhasePending: q.Groups.Pending, model.PhaseInqueue: q.Groups.Inqueue, model.PhaseRunning: q.Groups.Running,
		model.PhaseUnknown: q.Groups.Unknown, model.PhaseCompleted: q.Groups.Completed,
	} {
		gauge(groupCounts[phase], float64(n), q.Name)
	}
}

// bounded is a limit with cpu and memory at Volcano's stand-in for "no limit" where there is none.
func bounded(l resource.Limit) resource.Portion {
	p := l.Amounts
	if l.Unnamed != resource.Unlimited {
		return p
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if _, limited := l.Of(name); !limited {
			p = p.Plus(resource.Portion{{Name: name, Value: math.MaxFloat64}})
		}
	}
	return p
}
