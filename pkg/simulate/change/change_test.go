// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package change_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

var noon = time.Date(2026, time.August, 15, 12, 0, 0, 0, time.UTC)

const cluster = `
{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {zone: a}}, status: {allocatable: {cpu: '8', memory: 32Gi}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n1.example.com}, status: {allocatable: {cpu: '8', memory: 32Gi}}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: research}, spec: {weight: 2, capability: {cpu: '4'}}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: train, namespace: ml}, spec: {minMember: 2, queue: research}}
---
apiVersion: v1
kind: Pod
metadata: {name: owned, namespace: ml, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: j, uid: u, controller: true}]}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
status: {phase: Running}
---
apiVersion: v1
kind: Pod
metadata: {name: daemon, namespace: ml, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: u, controller: true}]}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
status: {phase: Running}
---
{apiVersion: v1, kind: Pod, metadata: {name: bare, namespace: ml}, spec: {nodeName: n1, containers: [{name: c, image: i}]}, status: {phase: Running}}
---
{apiVersion: v1, kind: Pod, metadata: {name: elsewhere, namespace: ml}, spec: {nodeName: n1.example.com, containers: [{name: c, image: i}]}, status: {phase: Running}}
`

func objects(t *testing.T) []scenario.Object {
	t.Helper()
	read, err := scenario.Read("cluster", []byte(cluster))
	if err != nil {
		t.Fatal(err)
	}
	complete, err := scenario.Complete(read, noon)
	if err != nil {
		t.Fatal(err)
	}
	return complete
}

// named is the object of a type and a name.
func named[T scenario.Object](t *testing.T, all []scenario.Object, name string) T {
	t.Helper()
	for _, o := range all {
		if object, ok := o.(T); ok && o.GetName() == name {
			return object
		}
	}
	t.Errorf("there is no %s", name)
	t.FailNow()
	return *new(T)
}

func TestFieldsAreSet(t *testing.T) {
	t.Parallel()
	for text, got := range map[string]func(all []scenario.Object) any{
		"queue.research.capability.cpu=9": func(all []scenario.Object) any {
			q := named[*volcano.Queue](t, all, "research").Spec.Capability[corev1.ResourceCPU]
			return q.String()
		},
		"queue.research.guarantee.nvidia.com/gpu=4": func(all []scenario.Object) any {
			q := named[*volcano.Queue](t, all, "research").Spec.Guarantee.Resource["nvidia.com/gpu"]
			return q.String()
		},
		"queue.research.capability.cpu=": func(all []scenario.Object) any {
			return len(named[*volcano.Queue](t, all, "research").Spec.Capability)
		},
		"queue.research.weight=7": func(all []scenario.Object) any { return named[*volcano.Queue](t, all, "research").Spec.Weight },
		"queue.research.reclaimable=false": func(all []scenario.Object) any {
			return *named[*volcano.Queue](t, all, "research").Spec.Reclaimable
		},
		"queue.research.state=Closed": func(all []scenario.Object) any { return named[*volcano.Queue](t, all, "research").Status.State },
		"podgroup.train.minMember=5":  func(all []scenario.Object) any { return named[*volcano.PodGroup](t, all, "train").Spec.MinMember },
		"podgroup.ml/train.queue=default": func(all []scenario.Object) any {
			return named[*volcano.PodGroup](t, all, "train").Spec.Queue
		},
		"node.n1.example.com.unschedulable=true": func(all []scenario.Object) any {
			return fmt.Sprint(named[*corev1.Node](t, all, "n1.example.com").Spec.Unschedulable, named[*corev1.Node](t, all, "n1").Spec.Unschedulable)
		},
		"node.n1.labels.zone=b": func(all []scenario.Object) any { return named[*corev1.Node](t, all, "n1").Labels["zone"] },
		"node.n1.allocatable.cpu=16": func(all []scenario.Object) any {
			q := named[*corev1.Node](t, all, "n1").Status.Allocatable[corev1.ResourceCPU]
			return q.String()
		},
	} {
		before := objects(t)
		copies := make([]scenario.Object, len(before))
		for i := range before {
			copies[i] = before[i].DeepCopyObject().(scenario.Object)
		}
		after, err := change.Apply(before, change.Set{Text: text, Namespace: "ml"})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want := map[string]string{
			"queue.research.capability.cpu=": "0", "queue.research.guarantee.nvidia.com/gpu=4": "4", "node.n1.example.com.unschedulable=true": "true false",
		}[text]
		if want == "" {
			_, want, _ = strings.Cut(text, "=")
		}
		if value := fmt.Sprint(got(after)); value != want {
			t.Errorf("%s: the field is %s, want %s", text, value, want)
		}
		for i := range before {
			if !equality.Semantic.DeepEqual(before[i], copies[i]) {
				t.Errorf("%s changed %s, which was given", text, before[i].GetName())
			}
		}
	}
}

func TestMistakesOfSetAreTold(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"queue.research":                            "write KIND.NAME.FIELD=VALUE",
		"queue=1":                                   "write KIND.NAME.FIELD=VALUE",
		"pod.x.priority=1":                          "pod cannot be set: use one of node, podgroup, queue",
		"queue.reserach.weight=1":                   "there is no queue reserach: did you mean research?",
		"queue.research.wieght=1":                   "field wieght of a queue cannot be set: use one of capability.KEY, deserved.KEY, guarantee.KEY, parent",
		"queue.research.capability=1":               "name what of capability is set",
		"queue.research.capability.cpu=many":        `the value is "many": write a quantity of cpu that is not negative`,
		"queue.research.capability.cpu=-1":          `the value is "-1": write a quantity of cpu that is not negative`,
		"queue.research.weight=1.5":                 `the value is "1.5": write a whole number`,
		"queue.research.state=Shut":                 `the value is "Shut": write Open or Closed`,
		"podgroup.other/train.minMember=1":          "there is no podgroup other/train: did you mean ml/train?",
		"node.n1.unschedulable=perhaps":             `write "true" or "false"`,
		"queue.research.reclaimable=perhaps":        `write "true" or "false", or nothing`,
		"podgroup.train.minMember=99999999999999":   "write a whole number",
		"queue.research.guarantee.nvidia.com/gpu=x": "write a quantity of nvidia.com/gpu",
	} {
		_, err := change.Apply(objects(t), change.Set{Text: text, Namespace: "ml"})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: the error is %v, want %q", text, err, want)
		}
	}
}

// podsOf are the names of pods with their nodes.
func podsOf(all []scenario.Object) []string {
	var names []string
	for _, o := range all {
		if p, ok := o.(*corev1.Pod); ok {
			names = append(names, p.Name+" "+p.Spec.NodeName)
		}
	}
	slices.Sort(names)
	return names
}

func TestADrainedNodeKeepsWhatBelongsToIt(t *testing.T) {
	t.Parallel()
	drain := change.Drain{Node: "n1", Now: metav1.NewTime(noon)}
	after, err := change.Apply(objects(t), drain)
	if err != nil {
		t.Fatal(err)
	}
	if want, got := []string{"daemon n1", "elsewhere n1.example.com", "owned-again "}, podsOf(after); !slices.Equal(want, got) {
		t.Errorf("the pods are %q, want %q", got, want)
	}
	if !named[*corev1.Node](t, after, "n1").Spec.Unschedulable {
		t.Error("the node takes new pods")
	}
	// First all are created again, then those that there were leave one by one.
	steps := change.Steps(objects(t), drain)
	first, err := change.Apply(objects(t), steps[0])
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"bare n1", "daemon n1", "elsewhere n1.example.com", "owned n1", "owned-again "}
	if got := podsOf(first); !slices.Equal(want, got) || len(steps) != 3 {
		t.Errorf("in the first of %d steps the pods are %q, want %q in the first of 3", len(steps), got, want)
	}
	if _, err := change.Apply(objects(t), change.Drain{Node: "n11"}); err == nil || !strings.Contains(err.Error(), "there is no node n11: did you mean n1?") {
		t.Errorf("a node that is not there is answered by %v", err)
	}
}

// TestWhatIsThereIsNotAdded: it is told by kind and name, of what was there before and of what is added before it. Others may have the name.
func TestWhatIsThereIsNotAdded(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	pod := func(namespace, name string) scenario.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	there := []scenario.Object{node, pod("ml", "a"), pod("ml", "b")}
	for name, tc := range map[string]struct {
		add  []scenario.Object
		want string
	}{
		"it is there":                 {[]scenario.Object{pod("ml", "c"), pod("ml", "b")}, "Pod ml/b is there already: rename it"},
		"it is added twice":           {[]scenario.Object{pod("ml", "c"), pod("ml", "c")}, "Pod ml/c is there already: rename it"},
		"another kind has the name":   {[]scenario.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}}}, ""},
		"another namespace has it":    {[]scenario.Object{pod("web", "a")}, ""},
		"nothing is there like it":    {[]scenario.Object{pod("ml", "c"), pod("ml", "d")}, ""},
		"a node of the name is there": {[]scenario.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, "Node a is there already: rename it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after, err := change.Apply(there, change.Add{Objects: tc.add})
			said := ""
			if err != nil {
				said = err.Error()
			}
			if said != tc.want || err == nil && len(after) != len(there)+len(tc.add) {
				t.Errorf("of %d objects there are %d then, and is said %q, want %q", len(there), len(after), said, tc.want)
			}
		})
	}
}
