// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Keys that say who may be evicted.
const (
	// PreemptableKey on pods and PodGroups: "false" keeps them from being evicted; annotation first, then label.
	PreemptableKey = "volcano.sh/preemptable"
	// RevocableZoneKey: of a node, the zone that is only usable at certain times; of a pod, "*" when it may run there.
	RevocableZoneKey = "volcano.sh/revocable-zone"
	// CooldownKey of a pod: how long after it was scheduled it is left alone; label first, then annotation.
	CooldownKey = "volcano.sh/cooldown-time"
	// MinAvailableAnnotation and MaxUnavailableAnnotation of a PodGroup: how many of its pods are to run, or may be
	// missing, as a number or in percent.
	MinAvailableAnnotation   = "volcano.sh/jdb-min-available"
	MaxUnavailableAnnotation = "volcano.sh/jdb-max-unavailable"
	// MinRuntimeAnnotation of a queue: how long after they were scheduled its running pods are left alone, and those of the queues below it.
	MinRuntimeAnnotation = "caldera.dev/min-runtime"
	// PreemptionDelayAnnotation of a PodGroup: how old it is before others are evicted for its job.
	PreemptionDelayAnnotation = "caldera.dev/preemption-delay"
)

// MayEvictFrom is from when on others may be evicted for the job; zero: from the beginning.
func (j *Job) MayEvictFrom() time.Time {
	if delay := j.PreemptionDelay(); delay > 0 {
		return j.Created.Add(delay)
	}
	return time.Time{}
}

// PreemptionDelay is how old the job is before others are evicted for it, as its PodGroup says; 0 if it does not.
func (j *Job) PreemptionDelay() time.Duration {
	if j.Group == nil {
		return 0
	}
	return j.Group.PreemptionDelay
}

// yes reads a flag; what cannot be read means no.
func yes(said string) bool {
	b, err := strconv.ParseBool(said)
	return err == nil && b
}

// Preemptable reports whether the pod lets itself be evicted: yes if it does not say.
func (t *Task) Preemptable() bool {
	said, ok := t.Pod.Annotations[PreemptableKey]
	if !ok {
		said, ok = t.Pod.Labels[PreemptableKey]
	}
	return !ok || yes(said)
}

// Revocable reports whether the pod may run on nodes that are only usable at certain times.
func (t *Task) Revocable() bool { return Revocable(t.Pod) }

// Revocable reports whether a pod may run on nodes that are only usable at certain times.
func Revocable(pod *corev1.Pod) bool {
	if zone, ok := pod.Annotations[RevocableZoneKey]; ok {
		return zone == "*"
	}
	return yes(pod.Annotations[PreemptableKey])
}

// CoolsUntil is until when a pod that runs is left alone after it was scheduled; zero when it never was to be. Source:
// Volcano pkg/scheduler/plugins/cdp/cdp.go.
func (t *Task) CoolsUntil() time.Time {
	said, ok := t.Pod.Labels[CooldownKey]
	if !ok {
		said, ok = t.Pod.Annotations[CooldownKey]
	}
	if !ok {
		return time.Time{}
	}
	cooldown, err := time.ParseDuration(said)
	if err != nil {
		return time.Time{}
	}
	return t.HasRun(cooldown)
}

// HasRun is when a pod that runs has been scheduled for so long; zero for one that does not run, and where nobody knows.
func (t *Task) HasRun(long time.Duration) time.Time {
	if t.Pod.Status.Phase != corev1.PodRunning {
		return time.Time{}
	}
	for i := range t.Pod.Status.Conditions {
		if c := &t.Pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Add(long)
		}
	}
	return time.Time{}
}

// Index is the number at the end of a pod name of at least three parts ("train-worker-7"). Names without one sort behind
// those that have one, so that the order by it is transitive, which Volcano's is not.
func (t *Task) Index() int { return t.index }

// indexOf reads the index off a pod's name.
func indexOf(name string) int {
	last := strings.LastIndexByte(name, '-')
	if last < 0 || strings.IndexByte(name[:last], '-') < 0 {
		return math.MaxInt
	}
	n, err := strconv.Atoi(name[last+1:])
	if err != nil || n < 0 {
		return math.MaxInt
	}
	return n
}

// spares reports whether a task says otherwise than before whether, how soon and how early among others it may be evicted.
func (t *Task) spares(before *Task) bool {
	return t.Preemptable() != before.Preemptable() || t.Revocable() != before.Revocable() || t.Priority != before.Priority ||
		!t.CoolsUntil().Equal(before.CoolsUntil())
}

// evictedLike reports whether a PodGroup says the same as another of whether, and how many at a time, its pods may be evicted.
func (g *Group) evictedLike(o *Group) bool {
	if g.Object == o.Object {
		return true
	}
	for _, key := range []string{PreemptableKey, MinAvailableAnnotation, MaxUnavailableAnnotation} {
		a, saysA := g.annotation(key, key == PreemptableKey)
		if b, saysB := o.annotation(key, key == PreemptableKey); a != b || saysA != saysB {
			return false
		}
	}
	return true
}

// annotation returns what a PodGroup, nil where there is none, says under a key, as an annotation or, if asked, as a label.
func (g *Group) annotation(key string, orLabel bool) (said string, ok bool) {
	if g == nil || g.Object == nil {
		return "", false
	}
	object, err := meta.Accessor(g.Object)
	if err != nil {
		return "", false
	}
	if said, ok = object.GetAnnotations()[key]; !ok && orLabel {
		said, ok = object.GetLabels()[key]
	}
	return said, ok
}

// Preemptable returns what the job's PodGroup says of being evicted, and whether it says anything.
func (j *Job) Preemptable() (may, said bool) {
	flag, said := j.Group.annotation(PreemptableKey, true)
	return yes(flag), said
}

// EvictableAtOnce is how many running tasks of the job may be evicted together as far as its PodGroup goes: 1 unless it
// says how many are to run or may be missing. Source: Volcano pkg/scheduler/plugins/tdm/tdm.go; there a job with fewer
// running tasks than it is to keep loses one all the same.
func (j *Job) EvictableAtOnce() int {
	total, running := j.Counts.Total(), j.Counts.ByStatus[Running]
	if said, ok := j.Group.annotation(MinAvailableAnnotation, false); ok {
		if least, err := scaled(said, total); err == nil {
			return max(0, running-least)
		}
	} else if said, ok := j.Group.annotation(MaxUnavailableAnnotation, false); ok {
		if most, err := scaled(said, total); err == nil {
			return max(0, most-(total-j.Counts.Completed()-running))
		}
	}
	return 1
}

// scaled reads a number, or a part of the total in percent, rounded up.
func scaled(said string, total int) (int, error) {
	value := intstr.Parse(said)
	return intstr.GetScaledValueFromIntOrPercent(&value, total, true)
}

// Placed is the number of tasks on nodes, those that terminate left out.
func (j *Job) Placed() int { return j.Counts.Ready() - j.Counts.ByStatus[Succeeded] }

// Supposing returns the job as it would be with some of its tasks in another status: Pending, as if they were created
// again, or Running.
func (j *Job) Supposing(status Status, tasks ...*Task) *Job {
	c := *j
	c.Usage, c.Roles, c.SubGroups = j.Usage.clone(), slices.Clone(j.Roles), slices.Clone(j.SubGroups)
	c.Pending, c.Tasks = slices.Clone(j.Pending), slices.Clone(j.Tasks)
	for _, t := range tasks {
		then := t.with(status, "")
		then.Gated, then.QueueGated, then.Claims = false, false, false
		c.put(t, -1)
		c.put(then, 1)
		if i := slices.IndexFunc(c.Tasks, func(o *Task) bool { return o.UID == t.UID }); i >= 0 {
			c.Tasks[i] = then
		} else {
			c.Tasks = append(c.Tasks, then)
		}
	}
	return &c
}

// put counts a task in or out.
func (j *Job) put(t *Task, n int) {
	j.Counts.add(t, n)
	j.Usage.add(t, int64(n))
	i, ok := findRole(j.Roles, t.Role)
	if !ok {
		j.Roles = slices.Insert(j.Roles, i, RoleCounts{Role: t.Role})
	}
	j.Roles[i].add(t, n)
	j.countSubGroup(t, n)
	if !t.Placeable() {
		return
	}
	i, ok = findDemand(j.Pending, t)
	// Tasks that had a node have no class, and need not be equal.
	if !ok || n > 0 && !j.Pending[i].Charge.Equal(t.Charge) {
		j.Pending = slices.Insert(j.Pending, i, demandOf(t))
	}
	j.Pending[i].Count += n
	if j.Pending[i].Count == 0 {
		j.Pending = slices.Delete(j.Pending, i, i+1)
	}
}
