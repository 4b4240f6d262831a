// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// overcommitted says which node was given more than it has since the last look; empty if none was.
func (w *world) overcommitted(before map[types.UID]string) string {
	used, fresh := map[string]int{}, map[string]string{}
	for _, p := range w.pods() {
		name := p.Spec.NodeName
		if name == "" || finished(p) {
			continue
		}
		used[name] += sizeOf(p)
		if before[p.UID] == "" {
			fresh[name] = p.Name
		}
		before[p.UID] = name
	}
	for _, name := range slices.Sorted(maps.Keys(fresh)) {
		n := w.node(name)
		if n == nil || time.Now().Before(w.excused[name]) {
			continue
		}
		if has := int(n.Status.Allocatable.Cpu().Value()); used[name] > has {
			return fmt.Sprintf("node %s has %d cores, and pods for %d of them, of which %s came last", name, has, used[name], fresh[name])
		}
	}
	return ""
}

// standing is how many pods of a job are where.
type standing struct {
	ended, placed, waiting int
	// parts are the same of its subgroups.
	parts []standing
}

func (w *world) standing(l *life) standing {
	var s standing
	if l.Part > 0 {
		s.parts = make([]standing, l.Size/l.Part)
	}
	for _, p := range w.pods() {
		if p.Labels[jobLabel] != l.Name || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed {
			continue
		}
		s.add(p)
		if l.Part > 0 {
			s.parts[l.partOf(p)].add(p)
		}
	}
	return s
}

// add counts a pod.
func (s *standing) add(p *corev1.Pod) {
	switch {
	case p.Status.Phase == corev1.PodSucceeded:
		s.ended++
	case p.Spec.NodeName != "":
		s.placed++
	default:
		s.waiting++
	}
}

// missing is how many more pods of a job have to be placed for it to get on; 0 if none can be.
func (l *life) missing(s standing) int {
	on := s.ended + s.placed
	switch {
	case s.waiting == 0 || on+s.waiting < l.min || l.Stuck != "":
		return 0
	case l.Part > 0:
		return l.missingParts(s)
	}
	return max(1, l.min-on)
}

// missingParts is the same for a job in subgroups: at most so many, since any of those that can become whole may come first.
func (l *life) missingParts(s standing) int {
	on, whole := s.ended+s.placed, 0
	var lacks []int
	for _, part := range s.parts {
		switch lack := l.Part - part.ended - part.placed; {
		case lack <= 0:
			whole++
		case part.waiting >= lack:
			lacks = append(lacks, lack)
		}
	}
	slices.Sort(lacks)
	enough := func() bool { return on >= l.min && whole >= l.min/l.Part }
	if enough() {
		if len(lacks) == 0 {
			return 0
		}
		return lacks[0]
	}
	missing := 0
	for _, lack := range slices.Backward(lacks) {
		if enough() {
			break
		}
		missing, on, whole = missing+lack, on+lack, whole+1
	}
	if !enough() {
		return 0
	}
	return missing
}

// complaint says what is not as it has to be when nothing fails any more; empty if all is.
func (w *world) complaint() string {
	room := w.room()
	for _, j := range w.s.Jobs {
		l := w.jobs[j.Name]
		if !l.submitted || l.deleted {
			continue
		}
		s := w.standing(l)
		if !l.whole && s.placed > 0 && s.ended+s.placed < l.min {
			return fmt.Sprintf("%s has %d pods on nodes, needs %d, and was never whole", l.Name, s.placed, l.min)
		}
		need := l.missing(s)
		if phase := w.phase(l); phase == volcano.PodGroupPending && s.placed+s.ended >= l.min && s.placed > 0 {
			return fmt.Sprintf("%s has its minimum of %d pods on nodes, and its PodGroup is %s", l.Name, l.min, phase)
		}
		if w.s.Conf == "plain" && need > 0 && !w.refusesForEver(l.Name) && places(room, l.Cores) >= need {
			return fmt.Sprintf("%s waits though %d more pods of %d cores fit: %v", l.Name, need, l.Cores, room)
		}
	}
	return w.unfair(room)
}

// unfair says what is not as the configuration has it; empty if all is.
func (w *world) unfair(room []idle) string {
	switch w.s.Conf {
	case "capped":
		return w.keptOut()
	case "queues":
		return cmp.Or(w.docket.inVain(), w.allFit(room))
	}
	return ""
}

// exists reports whether there is anything of a job.
func (w *world) exists(job string) bool {
	_, err := w.api.Get(groups, namespace, job)
	return err == nil || slices.ContainsFunc(w.pods(), func(p *corev1.Pod) bool { return p.Labels[jobLabel] == job })
}

// untold says what PodGroups say that is not so, or do not say; empty if nothing.
func (w *world) untold() string {
	for _, j := range w.s.Jobs {
		if l := w.jobs[j.Name]; l.submitted && !l.deleted {
			if complaint := w.tells(l, w.standing(l)); complaint != "" {
				return complaint
			}
		}
	}
	return ""
}

// tells says what the PodGroup of a job says that is not so, or does not say: how many of its pods run and have succeeded, and why it waits; empty if
// nothing.
func (w *world) tells(l *life, s standing) string {
	o, err := w.api.Get(groups, namespace, l.Name)
	if err != nil {
		return ""
	}
	status := o.(*volcano.PodGroup).Status
	if running := w.running(l); int(status.Running) != running || int(status.Succeeded) != s.ended {
		return fmt.Sprintf("%s has %d pods that run and %d that have succeeded, and its PodGroup says %d and %d", l.Name, running, s.ended, status.Running, status.Succeeded)
	}
	why := slices.IndexFunc(status.Conditions, func(c volcano.PodGroupCondition) bool {
		return c.Type == volcano.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue
	})
	switch {
	case l.missing(s) > 0 && s.ended+s.placed < l.min && (why < 0 || status.Conditions[why].Message == ""):
		return fmt.Sprintf("%s waits, and its PodGroup does not say why", l.Name)
	case why >= 0 && s.waiting == 0 && s.ended+s.placed >= l.min:
		return fmt.Sprintf("%s has all it needs, and its PodGroup says that it waits: %s", l.Name, status.Conditions[why].Message)
	}
	return ""
}

// running counts the pods of a job that run.
func (w *world) running(l *life) int {
	n := 0
	for _, p := range w.pods() {
		if p.Labels[jobLabel] == l.Name && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// places is for how many pods there is room.
func places(room []idle, size int) int {
	n := 0
	for _, r := range room {
		n += max(0, r.idle) / size
	}
	return n
}

// allFit complains if there is room for all that wait at once: then nobody's share, and nothing that was promised, is in anybody's way.
func (w *world) allFit(room []idle) string {
	waits := ""
	for _, j := range w.s.Jobs {
		l := w.jobs[j.Name]
		if !l.submitted || l.deleted {
			continue
		}
		s := w.standing(l)
		if s.waiting > 0 && (l.missing(s) == 0 || w.refusesForEver(l.Name)) {
			// It is let in, but never starts.
			return ""
		}
		for range s.waiting {
			waits = l.Name
			i := slices.IndexFunc(room, func(r idle) bool { return r.idle >= l.Cores })
			if i < 0 {
				return ""
			}
			room[i].idle -= l.Cores
		}
	}
	if waits == "" {
		return ""
	}
	return fmt.Sprintf("%s waits though there is room for everybody", waits)
}

// phase is what the PodGroup of a job says.
func (w *world) phase(l *life) volcano.PodGroupPhase {
	o, err := w.api.Get(groups, namespace, l.Name)
	if err != nil {
		return ""
	}
	return o.(*volcano.PodGroup).Status.Phase
}

func (w *world) refusesForEver(job string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.refusals, func(r refusal) bool { return r.until.IsZero() && r.verb != "pods/eviction" && r.job == job })
}

// differs says where the scheduler's model is not what the API server has; empty if nowhere.
func (w *world) differs(state *model.State) string {
	known := map[types.UID]string{}
	for job := range state.Snapshot().Jobs {
		for _, task := range job.Tasks {
			known[task.UID] = task.Node
		}
	}
	for _, p := range w.pods() {
		if finished(p) {
			delete(known, p.UID)
			continue
		}
		node, ok := known[p.UID]
		if !ok || node != p.Spec.NodeName {
			return fmt.Sprintf("pod %s is on %q, and the model has it (%t) on %q", p.Name, p.Spec.NodeName, ok, node)
		}
		delete(known, p.UID)
	}
	if len(known) > 0 {
		return fmt.Sprintf("the model has pods that are gone: %v", known)
	}
	return ""
}

// miscounts says which of the scheduler's accounts of queues are not what the API server has; empty if all are.
func (w *world) miscounts(figures []dispatch.QueueFigures) string {
	held, kept := map[string]int{}, map[string]int{}
	for _, p := range w.pods() {
		queue := w.jobs[p.Labels[jobLabel]].Queue
		switch {
		case finished(p):
		case p.Spec.NodeName != "":
			held[queue] += sizeOf(p)
		case p.DeletionTimestamp == nil && p.Status.NominatedNodeName == "" && p.Annotations[model.QueueAdmittedAnnotation] != "":
			kept[queue] += sizeOf(p)
		}
	}
	for _, f := range figures {
		if got := f.Usage.Claimed.Get(corev1.ResourceCPU); got != int64(1000*kept[f.Name]) {
			return fmt.Sprintf("queue %s keeps %dm cores for pods that it let through, and these ask for %d cores", f.Name, got, kept[f.Name])
		}
		if got := f.Usage.Allocated.Get(corev1.ResourceCPU); got != int64(1000*held[f.Name]) {
			return fmt.Sprintf("queue %s has %dm cores by its account, and its pods have %d cores", f.Name, got, held[f.Name])
		}
		for what, sum := range map[string]resource.Vector{"requested": f.Usage.Requested, "promised": f.Usage.Inqueue, "beyond minimums": f.Usage.Elastic} {
			for _, amount := range sum {
				if amount.Value < 0 {
					return fmt.Sprintf("queue %s has %d of %s %s", f.Name, amount.Value, amount.Name, what)
				}
			}
		}
	}
	return ""
}
