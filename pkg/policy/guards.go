// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Why a guard protects a task.
const (
	whyMinimum    = "its job would fall below its minimum"
	whyRole       = "its job would fall below the minimum of a role"
	whySubGroups  = "its job would have too few whole subgroups (spec.subGroupPolicy)"
	whyPart       = "its subgroup goes as a whole only (spec.subGroupPolicy)"
	whyWhole      = "its PodGroup is disrupted as a whole only (spec.disruptionMode)"
	whyCritical   = "it is critical to the cluster"
	whyCooling    = "it was scheduled a short while ago"
	whyTooSoon    = "it has not run for as long as its queue gives it (" + model.MinRuntimeAnnotation + ")"
	whyRevocable  = "this job may run on revocable nodes, or be evicted itself"
	whyNotRunning = "it does not run yet"
	whyOnZone     = "it is on a revocable node"
	whyAtOnce     = "too many of its job would be missing at once"
)

// The classes of pods that the cluster cannot do without.
const (
	clusterCritical = "system-cluster-critical"
	nodeCritical    = "system-node-critical"
)

// conformance protects what the cluster cannot do without: by the names of priority classes, not their values, as in
// Volcano (pkg/scheduler/plugins/conformance/conformance.go).
type conformance struct{}

func (conformance) guard(_ *Trial, v model.Victim, _ *jobUsage) string {
	class := v.Task.Pod.Spec.PriorityClassName
	if class == clusterCritical || class == nodeCritical || v.Task.Pod.Namespace == metav1.NamespaceSystem {
		return whyCritical
	}
	return ""
}

// pdb protects pods of which no more may be disrupted. There is one count for a whole trial; Volcano counts anew for
// every node and every pod that is to be placed. Pods without labels are not protected unless an empty selector matches
// them: Volcano never evicts them.
type pdb struct{}

func (pdb) guard(t *Trial, v model.Victim, _ *jobUsage) string {
	for _, b := range t.budgetsOf(v.Task.Pod.Namespace) {
		if b.left <= 0 && b.covers(v.Task.Pod) {
			return b.why
		}
	}
	return ""
}

// allowance is what is left of a disruption budget.
type allowance struct {
	*model.DisruptionBudget
	left int32
	why  string
}

// covers reports whether the eviction of a pod counts against the budget.
func (b *allowance) covers(pod *corev1.Pod) bool {
	return b.Selector != nil && b.Selector.Matches(labels.Set(pod.Labels)) && !b.Disrupted[pod.Name]
}

// budgetsOf returns what is left of the budgets of a namespace.
func (t *Trial) budgetsOf(namespace string) []*allowance {
	if t.world.Budgets == nil {
		return nil
	}
	list, known := t.budgets[namespace]
	if !known {
		for _, b := range t.world.Budgets(namespace) {
			list = append(list, &allowance{
				DisruptionBudget: b, left: b.Allowed, why: "protected by PodDisruptionBudget " + b.Namespace + "/" + b.Name,
			})
		}
		t.budgets[namespace] = list
	}
	return list
}

// spend counts so many more disruptions of a pod.
func (t *Trial) spend(pod *corev1.Pod, n int32) {
	for _, b := range t.budgetsOf(pod.Namespace) {
		if b.covers(pod) {
			b.left -= n
		}
	}
}

// cdp protects pods for a while after they were scheduled.
type cdp struct{}

func (cdp) guard(t *Trial, v model.Victim, _ *jobUsage) string {
	if until := v.Task.CoolsUntil(); until.After(t.world.Now) {
		t.refusedUntil(until)
		return whyCooling
	}
	return ""
}

// minRuntime protects running pods of queues that give their pods a minimum, the nearest that says so up the tree. It needs no plugin in the tiers, and
// holds whatever a pod says itself. Source: KAI's minRuntime of queues.
func minRuntime(t *Trial, v model.Victim, h *jobUsage) string {
	for q := h.queue; q != nil; q = q.Parent {
		if q.Spec == nil || !q.Spec.MinRuntime.Given {
			continue
		}
		if until := v.Task.HasRun(q.Spec.MinRuntime.Value); until.After(t.world.Now) {
			t.refusedUntil(until)
			return whyTooSoon
		}
		return ""
	}
	return ""
}

// tdm is Volcano's plugin of that name, as far as it concerns the order of jobs and preemption: jobs that must not be evicted go first; jobs that may themselves be evicted, or run on
// revocable nodes, take nothing from others; and the others take of each job so many running pods on ordinary nodes as
// its PodGroup allows. Revocable nodes are those of a zone that is only usable at certain times; what runs there does not
// stand in the way of a pod that may not.
type tdm struct{}

func (tdm) guardInside(t *Trial, v model.Victim, h *jobUsage) string {
	switch {
	case t.own.revocable:
		return whyRevocable
	case v.Task.Status != model.Running:
		return whyNotRunning
	case v.Node != nil && v.Node.Labels[model.RevocableZoneKey] != "":
		return whyOnZone
	case h.taken >= h.atOnce:
		return whyAtOnce
	}
	return ""
}

// CompareJobs puts jobs that may not be evicted before those that may. Source: Volcano pkg/scheduler/plugins/tdm/tdm.go, jobOrderFn.
func (tdm) CompareJobs(a, b *Ranked) int {
	x, _ := a.Preemptable()
	y, _ := b.Preemptable()
	switch {
	case x == y:
		return 0
	case y:
		return -1
	}
	return 1
}

func (tdm) starving(job *model.Job) bool {
	may, _ := job.Preemptable()
	return !may && job.Counts.ByStatus[model.Pending] > job.Counts.Nominated
}

// starving: too few tasks of the job have nodes, or room kept for them on one, for its minimum. As in Volcano the
// minimums of roles do not count; those of subgroups do, as long as no room is kept for any.
func (gang) starving(job *model.Job) bool {
	return job.Counts.Ready()+job.Counts.Nominated < job.Min() || job.Counts.Nominated == 0 && len(job.Requirement().SubGroups) > 0
}

// starving: the job has tasks that could be placed, and for which no room is kept. In Volcano failed tasks, and those
// behind scheduling gates, have a job starve too, which no eviction ends.
func (priority) starving(job *model.Job) bool { return job.Counts.Placeable() > job.Counts.Nominated }

// keepsMinimum is the guard of the plugin gang: it says why so many more tasks like this one may not go from a
// job; none with nil. Unlike in Volcano the minimums of roles and of subgroups count. An action on whole gangs may take a job below its minimum if it takes everything. A
// job that was below it to begin with is about to be completed, or of no use to anybody: it goes as a whole, too, and only
// where whole jobs do not go may it lose some. Volcano lets it lose some always. A gang that has been broken for too long goes as a whole
// by any action.
func (t *Trial) keepsMinimum(h *jobUsage, task *model.Task, more int) string {
	if t.ruleSet.ofGangs() && (t.ruleSet.whole && h.left.Placed == more || h.broken && !t.ruleSet.whole) || h.lapsed(t.world.Now) && h.left.Placed == more {
		return ""
	}
	if h.lapses.After(t.world.Now) {
		t.refusedUntil(h.lapses)
	}
	switch h.left.Without(task, more) {
	case model.LacksTasks:
		return whyMinimum
	case model.LacksRole:
		return whyRole
	case model.LacksSubGroups:
		return whySubGroups
	case model.LacksPart:
		return whyPart
	case model.LacksOthers:
		return whyWhole
	}
	return ""
}
