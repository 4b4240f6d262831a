// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// highest is the highest priority that users may give.
const highest = 1_000_000_000

// itself looks for what the job could ask for instead.
func (s *search) itself() error {
	for _, find := range []func() error{s.asIs, s.fewer, s.reduced, s.elsewhere, s.tolerating, s.priority} {
		if err := find(); err != nil {
			return err
		}
	}
	return nil
}

func namesOf(tasks []*model.Task) map[types.NamespacedName]bool {
	names := map[types.NamespacedName]bool{}
	for _, t := range tasks {
		names[types.NamespacedName{Namespace: t.Pod.Namespace, Name: t.Pod.Name}] = true
	}
	return names
}

// asIs looks for what the job lacks or has too much of.
func (s *search) asIs() error {
	if s.limits {
		return nil
	}
	if u := s.ungating(); len(u.changes) > 0 {
		if _, err := s.try(once(u)); err != nil {
			return err
		}
	}
	lacks := s.lacks()
	if len(lacks) == 0 {
		return nil
	}
	_, err := s.try(measure{kind: OfItself, most: len(lacks), guess: len(lacks), of: func(size int) (string, []change.Change) {
		return count(size, "more pod", "more pods") + " of it", []change.Change{change.Add{Objects: lacks[:size]}}
	}})
	return err
}

// ungating takes the scheduling gates off the pods. The queue's own gate is opened by the queue.
func (w *waiter) ungating() step {
	names := map[string]bool{}
	for _, t := range w.pending() {
		if t.Gated && !t.QueueGated {
			for _, gate := range t.Pod.Spec.SchedulingGates {
				names[gate.Name] = true
			}
		}
	}
	if len(names) == 0 {
		return step{}
	}
	return step{
		OfItself, "its pods lose the scheduling gates " + strings.Join(slices.Sorted(maps.Keys(names)), ", "),
		[]change.Change{change.Pods{Which: w.pods(), Do: func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }}},
	}
}

// lacks are the pods that the job lacks for its minimum. They are taken to be like one that there is.
func (w *waiter) lacks() []scenario.Object {
	lacks := w.job.Min() - w.job.Counts.Total()
	if lacks <= 0 || len(w.job.Tasks) == 0 {
		return nil
	}
	like := w.job.Tasks[0].Pod
	var clones []scenario.Object
	for name := range w.free(like, lacks) {
		p := scenario.Again(like, metav1.NewTime(w.now))
		p.Name, p.Spec.SchedulingGates = name, nil
		clones = append(clones, p)
	}
	return clones
}

// completing adds the pods that the job lacks.
func (w *waiter) completing() step {
	lacks := w.lacks()
	if len(lacks) == 0 {
		return step{}
	}
	return step{OfItself, count(len(lacks), "more pod", "more pods") + " of it", []change.Change{change.Add{Objects: lacks}}}
}

// fewer looks for a smaller minimum.
func (s *search) fewer() error {
	if s.job.Group == nil || s.job.Min() < 2 || s.job.Whole() {
		return nil
	}
	_, err := s.try(measure{kind: OfItself, most: s.job.Min() - 1, of: func(size int) (string, []change.Change) {
		smaller := s.job.Min() - size
		return fmt.Sprintf("minMember %d instead of %d", smaller, s.job.Min()), []change.Change{change.Minimum{Of: s.job.Key, Min: int32(smaller)}}
	}})
	return err
}

// large is a resource of which a pod asks for more than any node has. Amounts are in units, of which a pod asks for so many.
type large struct {
	name        corev1.ResourceName
	unit, asked int64
	// over is how many units are too many.
	over int
}

// tooLarge are the resources of which a pod asks for more than any node has.
func (w *waiter) tooLarge() []large {
	most := map[corev1.ResourceName]int64{}
	for n := range nodesOf(w.objects) {
		for _, a := range resource.FromList(n.Status.Allocatable) {
			most[a.Name] = max(most[a.Name], a.Value)
		}
	}
	asked := map[corev1.ResourceName]int64{}
	for _, t := range w.pending() {
		for _, a := range t.Request {
			asked[a.Name] = max(asked[a.Name], a.Value)
		}
	}
	var list []large
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		l := large{name: name, unit: 1, asked: asked[name]}
		switch {
		case l.asked <= most[name]:
			continue
		case name == corev1.ResourceCPU:
			l.unit = 1000
		case !resource.IsExtended(name):
			continue
		}
		l.over = int((l.asked - most[name] + l.unit - 1) / l.unit)
		list = append(list, l)
	}
	return list
}

// smaller has the pods ask for so many units less of a resource.
func (w *waiter) smaller(l large, units int) (string, []change.Change) {
	less := resource.Amount{Name: l.name, Value: l.asked - int64(units)*l.unit}.Format()
	return fmt.Sprintf("%s %s a pod instead of %s, submitted again", less, l.name, resource.Amount{Name: l.name, Value: l.asked}.Format()),
		w.again(func(p *corev1.Pod) { limit(p, l.name, quantity.MustParse(less)) }, nil)
}

// reduced looks for how much of a resource a pod could ask for, if it asks for more than any node has.
func (s *search) reduced() error {
	for _, l := range s.tooLarge() {
		_, err := s.try(measure{kind: OfItself, most: max(1, int((l.asked-1)/l.unit)), guess: l.over, of: func(size int) (string, []change.Change) {
			return s.smaller(l, size)
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// fitting has the pods ask for what some node has.
func (w *waiter) fitting() step {
	fit := step{kind: OfItself}
	for _, l := range w.tooLarge() {
		fit = fit.then(w.smaller(l, l.over))
	}
	return fit
}

// limit has no container of a pod ask for more of a resource.
func limit(p *corev1.Pod, name corev1.ResourceName, most quantity.Quantity) {
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			for _, list := range []corev1.ResourceList{containers[i].Resources.Requests, containers[i].Resources.Limits} {
				if q, ok := list[name]; ok && q.Cmp(most) > 0 {
					list[name] = most
				}
			}
		}
	}
}

// elsewhere looks for a label of nodes that the pods could do without.
func (s *search) elsewhere() error {
	asked := map[string]string{}
	for _, t := range s.pending() {
		maps.Copy(asked, t.Pod.Spec.NodeSelector)
	}
	for _, key := range slices.Sorted(maps.Keys(asked)) {
		text := fmt.Sprintf("no node selector %s=%s, submitted again", key, asked[key])
		if _, err := s.try(once(step{OfItself, text, s.again(func(p *corev1.Pod) { delete(p.Spec.NodeSelector, key) }, nil)})); err != nil {
			return err
		}
	}
	return nil
}

// tolerating looks for a taint that the pods could tolerate.
func (s *search) tolerating() error {
	for _, t := range s.untolerated() {
		toleration := corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect}
		_, err := s.try(once(step{OfItself, "its pods tolerate the taint " + t.ToString(), []change.Change{change.Pods{Which: s.pods(), Do: func(p *corev1.Pod) {
			p.Spec.Tolerations = append(p.Spec.Tolerations, toleration)
		}}}}))
		if err != nil {
			return err
		}
	}
	return nil
}

// priority looks for a higher priority.
func (s *search) priority() error {
	steps := map[int32]bool{}
	for _, job := range s.all {
		if job.Key != s.job.Key && job.Priority >= s.job.Priority && job.Priority < highest {
			steps[job.Priority+1] = true
			if job.Priority > s.job.Priority {
				steps[job.Priority] = true
			}
		}
	}
	if len(steps) == 0 {
		return nil
	}
	values := slices.Sorted(maps.Keys(steps))
	_, err := s.try(measure{kind: OfItself, most: len(values), of: func(size int) (string, []change.Change) {
		value := values[size-1]
		class := change.PriorityClass(value)
		for name := range s.free(class, 1) {
			class.Name = name
		}
		return fmt.Sprintf("priority %d instead of %d, submitted again", value, s.job.Priority), s.again(func(p *corev1.Pod) {
			p.Spec.Priority, p.Spec.PriorityClassName = &value, class.Name
		}, class)
	}})
	return err
}

// again are the changes by which the job is submitted again, with other pods and, if there is one, by a new PriorityClass. It is the youngest then.
func (w *waiter) again(do func(*corev1.Pod), class *schedulingv1.PriorityClass) []change.Change {
	now := metav1.NewTime(w.now)
	changes := []change.Change{change.Pods{Which: w.pods(), Do: func(p *corev1.Pod) {
		p.CreationTimestamp = now
		do(p)
	}}}
	name := ""
	if class != nil {
		name = class.Name
		changes = append(changes, change.Add{Objects: []scenario.Object{class}})
	}
	if w.job.Group != nil {
		changes = append(changes, change.Resubmit{Of: w.job.Key, Now: now, PriorityClass: name})
	}
	return changes
}
