// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package remedy

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

const (
	// mostNew is how many nodes are added at most.
	mostNew = 128
	// shapesTried is of how many shapes nodes are added, the most frequent first.
	shapesTried = 2
	// namesTold is how many names a remedy tells at most.
	namesTold = 4
)

// shape is nodes that are alike but for their names.
type shape struct {
	like  *corev1.Node
	count int
}

// own are the labels that tell nodes of one shape apart.
var own = []string{corev1.LabelHostname, "topology.kubernetes.io/rack", "node.kubernetes.io/instance-id"}

// shapes are those of the nodes, the most frequent first.
func (w *waiter) shapes() []shape {
	byKind := map[string]*shape{}
	for n := range nodesOf(w.objects) {
		key := shapeKey(n)
		if byKind[key] == nil {
			byKind[key] = &shape{like: n}
		}
		byKind[key].count++
	}
	list := make([]shape, 0, len(byKind))
	for _, key := range slices.Sorted(maps.Keys(byKind)) {
		list = append(list, *byKind[key])
	}
	slices.SortStableFunc(list, func(a, b shape) int { return cmp.Compare(b.count, a.count) })
	return list
}

// shapeKey is equal for nodes of one shape.
func shapeKey(n *corev1.Node) string {
	labels := maps.Clone(n.Labels)
	for key, value := range labels {
		// What has the node's own name in it tells it apart.
		if slices.Contains(own, key) || value == n.Name {
			delete(labels, key)
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(n.Status.Allocatable)) {
		q := n.Status.Allocatable[name]
		fmt.Fprintf(&b, "%s=%s ", name, q.String())
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&b, "%s:%s ", key, labels[key])
	}
	for _, t := range n.Spec.Taints {
		if t.Key != corev1.TaintNodeUnschedulable {
			fmt.Fprintf(&b, "%s ", t.ToString())
		}
	}
	return b.String()
}

// nodesOf yields the nodes among objects.
func nodesOf(objects []scenario.Object) func(yield func(*corev1.Node) bool) {
	return func(yield func(*corev1.Node) bool) {
		for _, o := range objects {
			if n, ok := o.(*corev1.Node); ok && !yield(n) {
				return
			}
		}
	}
}

// nodes looks for nodes that are closed and could be opened, and for nodes that could be added.
func (s *search) nodes() error {
	if err := s.cordoned(); err != nil {
		return err
	}
	if err := s.tainted(); err != nil {
		return err
	}
	shapes := s.shapes()
	s.result.Impossible = s.impossible(shapes)
	if s.result.Impossible != "" {
		return nil
	}
	tried := 0
	for _, shape := range shapes {
		if tried == shapesTried {
			break
		}
		if s.refusal(shape.like) != "" {
			continue
		}
		tried++
		if _, err := s.try(s.added(shape)); err != nil {
			return err
		}
	}
	return nil
}

// added is the measure to add nodes of a shape.
func (w *waiter) added(shape shape) measure {
	var list []scenario.Object
	for name := range w.free(shape.like, mostNew) {
		list = append(list, another(shape.like, name))
	}
	return measure{kind: OfNodes, most: mostNew, guess: w.filled(shape.like), of: func(size int) (string, []change.Change) {
		return fmt.Sprintf("%s like %s (%s)", count(size, "more node", "more nodes"), shape.like.Name, devices(shape.like)),
			[]change.Change{change.Join(list[:size])}
	}}
}

// filled is how many nodes are full of what the job asks for, and of all that was there before it and is no less important. It is where the search for
// a number of nodes begins.
func (w *waiter) filled(like *corev1.Node) int {
	var asked resource.Vector
	for _, job := range w.all {
		if job.Priority < w.job.Priority || cmp.Or(job.Created.Compare(w.job.Created), job.Key.Compare(w.job.Key)) > 0 {
			continue
		}
		for _, t := range job.Tasks {
			if t.Status == model.Pending {
				asked.Add(t.Charge)
			}
		}
	}
	return int(math.Ceil(min(mostNew, asked.Dominant(resource.PortionOf(like.Status.Allocatable)))))
}

// another is a new node like one that there is, empty and open.
func another(like *corev1.Node, name string) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(like.Labels), Annotations: maps.Clone(like.Annotations), CreationTimestamp: like.CreationTimestamp},
		Spec:       corev1.NodeSpec{Taints: slices.Clone(like.Spec.Taints)},
		Status:     *like.Status.DeepCopy(),
	}
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
	for key, value := range n.Labels {
		if key == corev1.LabelHostname || value == like.Name {
			n.Labels[key] = name
		}
	}
	return n
}

// devices are what a node has of devices; without any, its cores.
func devices(n *corev1.Node) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(n.Status.Allocatable)) {
		if q := n.Status.Allocatable[name]; strings.Contains(string(name), "/") && !q.IsZero() {
			parts = append(parts, fmt.Sprintf("%s %s", q.String(), name))
		}
	}
	if len(parts) == 0 {
		q := n.Status.Allocatable[corev1.ResourceCPU]
		parts = append(parts, q.String()+" cpu")
	}
	return strings.Join(parts, ", ")
}

// cordoned looks for nodes to be uncordoned.
func (s *search) cordoned() error {
	var closed []string
	for n := range nodesOf(s.objects) {
		if n.Spec.Unschedulable && s.refusal(n) == "" {
			closed = append(closed, n.Name)
		}
	}
	if len(closed) == 0 {
		return nil
	}
	_, err := s.try(measure{kind: OfNodes, most: len(closed), of: func(size int) (string, []change.Change) {
		var changes []change.Change
		for _, name := range closed[:size] {
			changes = append(changes, change.Uncordon{Node: name})
		}
		return "uncordon " + several(closed[:size], "nodes"), changes
	}})
	return err
}

// tainted looks for taints that could be taken off nodes.
func (s *search) tainted() error {
	for _, taint := range s.untolerated() {
		var names []string
		for n := range nodesOf(s.objects) {
			if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return keyOf(t) == taint }) {
				names = append(names, n.Name)
			}
		}
		_, err := s.try(measure{kind: OfNodes, most: len(names), of: func(size int) (string, []change.Change) {
			var changes []change.Change
			for _, name := range names[:size] {
				changes = append(changes, change.Untaint{Node: name, Taint: taint})
			}
			return fmt.Sprintf("take taint %s off %s", taint.ToString(), several(names[:size], "nodes")), changes
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// keyOf is a taint without its time.
func keyOf(t corev1.Taint) corev1.Taint {
	return corev1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect}
}

// untolerated are the taints of nodes that keep some pod of the job away, in the order of their texts. That of a cordon is not one of them.
func (w *waiter) untolerated() []corev1.Taint {
	taints := map[corev1.Taint]bool{}
	for n := range nodesOf(w.objects) {
		for i := range n.Spec.Taints {
			if w.keptAway(&n.Spec.Taints[i]) {
				taints[keyOf(n.Spec.Taints[i])] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(taints), func(a, b corev1.Taint) int { return cmp.Compare(a.ToString(), b.ToString()) })
}

// keptAway reports whether a taint, which is not that of a cordon, keeps some pod of the job away.
func (w *waiter) keptAway(taint *corev1.Taint) bool {
	if taint.Effect == corev1.TaintEffectPreferNoSchedule || taint.Key == corev1.TaintNodeUnschedulable {
		return false
	}
	return slices.ContainsFunc(w.pending(), func(t *model.Task) bool {
		return !slices.ContainsFunc(t.Pod.Spec.Tolerations, func(tol corev1.Toleration) bool { return tol.ToleratesTaint(logr.Discard(), taint, true) })
	})
}

// impossible says why no pod of the job could be on any node of these shapes, were it empty; empty if some could.
func (w *waiter) impossible(shapes []shape) string {
	refusals := map[string]int{}
	for _, shape := range shapes {
		refusal := w.refusal(shape.like)
		if refusal == "" {
			return ""
		}
		refusals[refusal] += shape.count
	}
	parts := make([]string, 0, len(refusals))
	for _, refusal := range slices.SortedFunc(maps.Keys(refusals), func(a, b string) int {
		return cmp.Or(cmp.Compare(refusals[b], refusals[a]), cmp.Compare(a, b))
	}) {
		parts = append(parts, fmt.Sprintf("%s: %s", count(refusals[refusal], "node", "nodes"), refusal))
	}
	return strings.Join(parts, "; ")
}

// refusal says why a node could not take some pod of the job, were it empty and open; empty if it could take each of them. Only what a node is for good
// counts: what it has in all, its labels, its taints.
func (w *waiter) refusal(n *corev1.Node) string {
	has := resource.FromList(n.Status.Allocatable)
	for _, t := range w.pending() {
		for _, a := range t.Request {
			if have := has.Get(a.Name); have < a.Value {
				return fmt.Sprintf("a pod asks for %s %s, the node has %s", a.Format(), a.Name, resource.Amount{Name: a.Name, Value: have}.Format())
			}
		}
		if ok, err := nodeaffinity.GetRequiredNodeAffinity(t.Pod).Match(n); err != nil || !ok {
			return "its labels are not those that a pod asks for"
		}
	}
	for i := range n.Spec.Taints {
		if w.keptAway(&n.Spec.Taints[i]) {
			return "a pod does not tolerate its taint " + n.Spec.Taints[i].ToString()
		}
	}
	return ""
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// several names things, a few of them if they are many.
func several(names []string, many string) string {
	if len(names) <= namesTold {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%d %s: %s and %d more", len(names), many, strings.Join(names[:namesTold], ", "), len(names)-namesTold)
}
