// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// noon is when simulations begin in these tests.
var noon = time.Date(2026, time.August, 15, 12, 0, 0, 0, time.UTC)

// complete reads and completes a file.
func complete(t *testing.T, file string) (map[string]scenario.Object, error) {
	t.Helper()
	read, err := scenario.Read("f", []byte(file))
	check(t, err)
	objects, err := scenario.Complete(read, noon)
	byName := map[string]scenario.Object{}
	for _, o := range objects {
		kind := fmt.Sprintf("%T", o)
		byName[strings.ToLower(kind[strings.LastIndex(kind, ".")+1:])+"/"+o.GetName()] = o
	}
	return byName, err
}

// get returns a completed object of a kind and name, like "pod/p".
func get[T scenario.Object](t *testing.T, file, name string) T {
	t.Helper()
	objects, err := complete(t, file)
	check(t, err)
	o, ok := objects[name].(T)
	if !ok {
		t.Fatalf("%s is a %T", name, objects[name])
	}
	return o
}

const classes = `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
preemptionPolicy: Never
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: usual}
value: 7
globalDefault: true
---
`

const modest = `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: modest}
value: 5
globalDefault: true
---
`

func TestPrioritiesFollowFromTheClasses(t *testing.T) {
	for name, tc := range map[string]struct {
		file, spec string
		priority   int32
		class      string
		never      bool
	}{
		"without classes it is 0":                     {"", "", 0, "", false},
		"the class that is named":                     {classes, "priorityClassName: high", 1000, "high", true},
		"the global default":                          {classes, "", 7, "usual", false},
		"a class that every cluster has":              {"", "priorityClassName: system-node-critical", 2000001000, "system-node-critical", false},
		"a number that is written down stays":         {classes, "priority: 3", 3, "", false},
		"with its class, too":                         {classes, "priority: 3, priorityClassName: high", 3, "high", true},
		"and even if the class is not there any more": {"", "priority: 3, priorityClassName: gone", 3, "gone", false},
		"of two global defaults it is the lower one":  {classes + modest, "", 5, "modest", false},
	} {
		t.Run(name, func(t *testing.T) {
			spec := "containers: [{name: c, image: i}]"
			if tc.spec != "" {
				spec += ", " + tc.spec
			}
			p := get[*corev1.Pod](t, tc.file+"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {"+spec+"}\n", "pod/p")
			if *p.Spec.Priority != tc.priority || p.Spec.PriorityClassName != tc.class {
				t.Errorf("priority is %d of class %q, want %d of %q", *p.Spec.Priority, p.Spec.PriorityClassName, tc.priority, tc.class)
			}
			never := p.Spec.PreemptionPolicy != nil && *p.Spec.PreemptionPolicy == corev1.PreemptNever
			if never != tc.never {
				t.Errorf("the pod never preempts: %t, want %t", never, tc.never)
			}
		})
	}
}

func TestPodsAreFilledIn(t *testing.T) {
	p := get[*corev1.Pod](t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i, resources: {limits: {cpu: '2'}}}]}\n", "pod/p")
	if p.Namespace != "default" || p.Status.Phase != corev1.PodPending || p.Spec.SchedulerName != "default-scheduler" || len(p.Status.Conditions) > 0 {
		t.Errorf("namespace %q, phase %q, scheduler %q, conditions %v", p.Namespace, p.Status.Phase, p.Spec.SchedulerName, p.Status.Conditions)
	}
	if got := p.Spec.Containers[0].Resources.Requests.Cpu().String(); got != "2" {
		t.Errorf("the request is %s, want that of the limit, 2", got)
	}
}

func TestARunningPodRunsSinceItWasCreated(t *testing.T) {
	const file = `
apiVersion: v1
kind: Pod
metadata: {name: p, creationTimestamp: '2026-01-01T00:00:10Z'}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
status: {phase: Running, conditions: [{type: PodScheduled, status: "True", lastTransitionTime: '2026-01-01T00:00:30Z'}]}
`
	p := get[*corev1.Pod](t, file, "pod/p")
	created := metav1.Date(2026, time.January, 1, 0, 0, 10, 0, time.UTC)
	got := map[corev1.PodConditionType]bool{}
	for _, c := range p.Status.Conditions {
		got[c.Type] = c.Status == corev1.ConditionTrue && c.LastTransitionTime.Time.Equal(created.Time)
	}
	// The condition that is there stays, with its own time.
	want := map[corev1.PodConditionType]bool{corev1.PodScheduled: false, corev1.PodInitialized: true, corev1.ContainersReady: true, corev1.PodReady: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions that are true since the creation (-want,+got)\n%s", diff)
	}
	if !p.Status.StartTime.Time.Equal(created.Time) {
		t.Errorf("it started at %s, want %s", p.Status.StartTime, created)
	}
}

func TestQueuesAndPodGroupsAreFilledIn(t *testing.T) {
	file := aQueue + "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: 2}\n"
	if q := get[*volcano.Queue](t, file, "queue/q"); q.Spec.Weight != 1 || q.Status.State != volcano.QueueStateOpen {
		t.Errorf("the queue has weight %d and state %q", q.Spec.Weight, q.Status.State)
	}
	if g := get[*volcano.PodGroup](t, file, "podgroup/g"); g.Namespace != "default" || g.Spec.Queue != "default" || g.Status.Phase != volcano.PodGroupPending {
		t.Errorf("the PodGroup is in namespace %q and queue %q, and %q", g.Namespace, g.Spec.Queue, g.Status.Phase)
	}
	said := "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\nspec: {weight: 3}\nstatus: {state: Closed}\n"
	if q := get[*volcano.Queue](t, said, "queue/q"); q.Spec.Weight != 3 || q.Status.State != volcano.QueueStateClosed {
		t.Errorf("what is written was replaced: weight %d and state %q", q.Spec.Weight, q.Status.State)
	}
}

func TestEveryClusterHasTwoQueues(t *testing.T) {
	root, standard := get[*volcano.Queue](t, "", "queue/root"), get[*volcano.Queue](t, "", "queue/default")
	if root.Spec.Weight != 1 || *root.Spec.Reclaimable || standard.Spec.Weight != 1 || !*standard.Spec.Reclaimable {
		t.Errorf("root is %+v, default is %+v", root.Spec, standard.Spec)
	}
	own := get[*volcano.Queue](t, "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: default}\nspec: {weight: 5}\n", "queue/default")
	if own.Spec.Weight != 5 {
		t.Errorf("a queue default that is written down has weight %d, want 5", own.Spec.Weight)
	}
}

func TestNodesAreFilledIn(t *testing.T) {
	n := get[*corev1.Node](t, aNode+"status: {capacity: {cpu: '4'}}\n", "node/n1")
	if got := n.Status.Allocatable.Cpu().String(); got != "4" || n.Status.Allocatable.Pods().String() != "110" || n.Labels[corev1.LabelHostname] != "n1" {
		t.Errorf("allocatable is %v, labels are %v", n.Status.Allocatable, n.Labels)
	}
	n = get[*corev1.Node](t, aNode+"status: {allocatable: {cpu: '4', pods: '3'}}\n", "node/n1")
	if got := n.Status.Allocatable.Pods().String(); got != "3" {
		t.Errorf("allocatable pods are %s, want the 3 that are written down", got)
	}
}

func TestObjectsWithoutATimeAreCreatedInOrder(t *testing.T) {
	objects, err := complete(t, aNode+"---\n"+aQueue+"---\n"+strings.Replace(aPod, "name: p", "name: p, creationTimestamp: '2026-01-01T00:00:10Z'", 1))
	check(t, err)
	node, queue, pod := objects["node/n1"].GetCreationTimestamp(), objects["queue/q"].GetCreationTimestamp(), objects["pod/p"].GetCreationTimestamp()
	if !node.Before(&queue) || !queue.Time.Before(noon) || queue.Sub(node.Time) != time.Second {
		t.Errorf("the node is of %s, the queue of %s, want a second later and before noon", node, queue)
	}
	if pod.UTC().Format(time.RFC3339) != "2026-01-01T00:00:10Z" {
		t.Errorf("a time that is written down became %s", pod)
	}
}

func TestObjectsThatCannotBeAreReported(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"an object without a name": {
			"apiVersion: v1\nkind: Node\nmetadata: {}\n", "f, document 1 (line 1): metadata.name of the Node is empty: name it",
		},
		"two objects of one name": {
			aPod + "---\n" + strings.Replace(aPod, "name: p", "name: p, namespace: default", 1),
			"f, document 2 (line 5): Pod default/p is there already, from f, document 1 (line 1)",
		},
		"a pod that runs nowhere": {
			aPod + "status: {phase: Running}\n", "status.phase of Pod default/p is Running but spec.nodeName is empty",
		},
		"a pod of no containers": {
			"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "spec.containers of Pod default/p is empty",
		},
		"a pod whose priority class is not there": {
			strings.Replace(aPod, "{containers", "{priorityClassName: urgent, containers", 1), `spec.priorityClassName of Pod default/p is "urgent"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := complete(t, tc.file); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
	other := aPod + "---\n" + strings.Replace(aPod, "name: p", "name: p, namespace: other", 1)
	if _, err := complete(t, other); err != nil {
		t.Errorf("two pods of one name in two namespaces: %v", err)
	}
}
