// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/internal/demo/history"
	"github.com/caldera-scheduler/caldera/internal/testing/builders"
)

const limit = 2 * time.Second

var begun = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// at is a moment of a test.
func at(ms int) time.Time { return begun.Add(time.Duration(ms) * time.Millisecond) }

func objects(t *testing.T, documents ...string) []*unstructured.Unstructured {
	t.Helper()
	var list []*unstructured.Unstructured
	for _, document := range documents {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		list = append(list, object)
	}
	return list
}

const (
	groupYAML = `{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: train}, spec: {minMember: 2}}`
	trainYAML = `{apiVersion: batch/v1, kind: Job, metadata: {name: train}, spec: {completions: 3,
		template: {metadata: {annotations: {scheduling.k8s.io/group-name: train}}}}}`
	renderYAML = `{apiVersion: batch/v1, kind: Job, metadata: {name: render}, spec: {completions: 2,
		template: {metadata: {annotations: {scheduling.volcano.sh/queue-name: q}}}}}`
	webYAML = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2,
		selector: {matchLabels: {app: web}}}}`
)

// train is a gang of three pods of which two start together.
func train(t *testing.T, impossible bool) *history.History {
	t.Helper()
	workloads, err := history.Read(objects(t, trainYAML, groupYAML), impossible)
	if err != nil {
		t.Fatal(err)
	}
	return history.New(workloads, begun, limit)
}

func pod(name, node string, phase corev1.PodPhase) *corev1.Pod {
	return builders.Member("", "train", name, "").Node(node).Phase(phase).Obj()
}

func waits(p *corev1.Pod, message string) *corev1.Pod {
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: message}}
	return p
}

func group(phase volcano.PodGroupPhase, unschedulable string) *volcano.PodGroup {
	g := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "train"}, Status: volcano.PodGroupStatus{Phase: phase}}
	if unschedulable != "" {
		g.Status.Conditions = []volcano.PodGroupCondition{
			{Type: volcano.PodGroupUnschedulableType, Status: corev1.ConditionTrue, Message: unschedulable},
		}
	}
	return g
}

func TestReadFindsGangsJobsAndServices(t *testing.T) {
	t.Parallel()
	got, err := history.Read(objects(t, trainYAML, groupYAML, renderYAML, webYAML), true)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, w := range got {
		lines = append(lines, fmt.Sprintf("%s queue=%q pods=%d gang=%t min=%d lasts=%t impossible=%t",
			w.Name, w.Queue, w.Pods, w.Gang, w.Min, w.Lasts, w.Impossible))
	}
	want := []string{
		`train queue="default" pods=3 gang=true min=2 lasts=false impossible=true`,
		`render queue="q" pods=2 gang=false min=0 lasts=false impossible=true`,
		`web queue="" pods=2 gang=false min=0 lasts=true impossible=true`,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("workloads are\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestVerdictOnAGang(t *testing.T) {
	t.Parallel()
	running := func(h *history.History, name string, ms int) { h.Pod(pod(name, "n", corev1.PodRunning), at(ms)) }
	done := func(h *history.History, name string, ms int) { h.Pod(pod(name, "n", corev1.PodSucceeded), at(ms)) }
	for name, tc := range map[string]struct {
		impossible bool
		happens    func(*history.History)
		missing    string
		broken     string
	}{
		"nothing happened": {
			happens: func(*history.History) {},
			missing: "train: 0 of 3 pods have run",
		},
		"the minimum runs": {
			happens: func(h *history.History) { running(h, "a", 0); running(h, "b", 1999); running(h, "c", 9000) },
			missing: "train: 0 of 3 pods have run",
		},
		"all have run and the PodGroup does not say so": {
			happens: func(h *history.History) {
				done(h, "a", 0)
				done(h, "b", 0)
				done(h, "c", 0)
				h.Group(group(volcano.PodGroupRunning, ""))
			},
			missing: `train: all pods have run and the phase of its PodGroup is "Running"`,
		},
		"all have run": {
			happens: func(h *history.History) {
				done(h, "a", 0)
				done(h, "b", 0)
				done(h, "c", 0)
				h.Group(group(volcano.PodGroupCompleted, ""))
			},
		},
		"the second pod of the minimum comes too late": {
			happens: func(h *history.History) { running(h, "a", 0); running(h, "b", 2500) },
			missing: "train: 0 of 3 pods have run",
			broken:  "train: it held nodes for fewer than its minimum of 2 pods for 2.5 s",
		},
		"the second pod of the minimum never comes": {
			happens: func(h *history.History) { running(h, "a", 0) },
			missing: "train: 0 of 3 pods have run",
			broken:  "train: it held nodes for fewer than its minimum of 2 pods for 10.0 s",
		},
		"a lone pod is deleted in time": {
			happens: func(h *history.History) {
				running(h, "a", 0)
				h.PodGone(pod("a", "n", corev1.PodRunning), at(1000))
			},
			missing: "train: 0 of 3 pods have run",
		},
		"a pod that succeeded counts toward the minimum": {
			happens: func(h *history.History) { running(h, "a", 0); running(h, "b", 0); done(h, "a", 10) },
			missing: "train: 1 of 3 pods have run",
		},
		"a pod failed": {
			happens: func(h *history.History) { h.Pod(pod("a", "n", corev1.PodFailed), at(0)) },
			missing: "train: 0 of 3 pods have run",
			broken:  "train: 1 pods failed",
		},
		"impossible and silent": {
			impossible: true,
			happens:    func(h *history.History) { h.Pod(pod("a", "", corev1.PodPending), at(0)) },
			missing:    "train: it has not said why it cannot start",
		},
		"impossible and says why": {
			impossible: true,
			happens:    func(h *history.History) { h.Group(group(volcano.PodGroupInqueue, "no room")) },
		},
		"impossible and bound": {
			impossible: true,
			happens: func(h *history.History) {
				h.Group(group(volcano.PodGroupInqueue, "no room"))
				h.Pod(pod("a", "n", corev1.PodPending), at(0))
				h.PodGone(pod("a", "n", corev1.PodPending), at(1))
			},
			broken: "train: 1 pods of it were bound, of which none fits a node",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := train(t, tc.impossible)
			tc.happens(h)
			v := h.Verdict(at(10_000))
			if got := strings.Join(v.Missing, "\n"); got != tc.missing {
				t.Errorf("missing is %q, want %q", got, tc.missing)
			}
			if got := strings.Join(v.Broken, "\n"); got != tc.broken {
				t.Errorf("broken is %q, want %q", got, tc.broken)
			}
		})
	}
}

func TestAServiceIsThereWhenItsPodsRun(t *testing.T) {
	t.Parallel()
	workloads, err := history.Read(objects(t, webYAML), false)
	if err != nil {
		t.Fatal(err)
	}
	h := history.New(workloads, begun, limit)
	for i, want := range []string{"web: 0 of 2 pods are running", "web: 1 of 2 pods are running", ""} {
		if got := strings.Join(h.Verdict(begun).Missing, ""); got != want {
			t.Errorf("with %d pods missing is %q, want %q", i, got, want)
		}
		p := pod(fmt.Sprint(i), "n", corev1.PodRunning)
		p.Annotations, p.Labels = nil, map[string]string{"app": "web"}
		h.Pod(p, begun)
	}
}

func TestRowsCountPodsAndGiveTheReason(t *testing.T) {
	t.Parallel()
	h := train(t, false)
	if rows := h.Rows(); len(rows) != 0 {
		t.Errorf("rows of a workload nobody has seen: %v", rows)
	}
	h.Pod(waits(pod("a", "", corev1.PodPending), "pods wait"), at(0))
	h.Pod(pod("b", "n1", corev1.PodPending), at(0))
	h.Pod(pod("c", "n2", corev1.PodRunning), at(0))
	want := history.Row{Name: "train", Queue: "default", Pending: 1, Bound: 1, Running: 1, Min: 2, Reason: "pods wait"}
	if got := h.Rows(); len(got) != 1 || got[0] != want {
		t.Errorf("rows are %+v, want %+v", got, want)
	}
	h.Group(group(volcano.PodGroupInqueue, "the group waits"))
	want.Phase, want.Reason = "Inqueue", "the group waits"
	if got := h.Rows(); got[0] != want {
		t.Errorf("row is %+v, want the PodGroup's reason: %+v", got[0], want)
	}
	h.Pod(pod("a", "n3", corev1.PodSucceeded), at(0))
	want.Pending, want.Done, want.Reason = 0, 1, ""
	if got := h.Rows(); got[0] != want {
		t.Errorf("row is %+v, want no reason when no pod waits: %+v", got[0], want)
	}
}

func TestInUseCountsPodsOnNodes(t *testing.T) {
	t.Parallel()
	h := train(t, false)
	for name, phase := range map[string]corev1.PodPhase{"a": corev1.PodPending, "b": corev1.PodRunning, "c": corev1.PodSucceeded} {
		p := pod(name, "n", phase)
		p.Spec.Containers = []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"gpu": resource.MustParse("4")}}},
		}
		h.Pod(p, at(0))
	}
	if got := h.InUse("gpu"); got != 8 {
		t.Errorf("%d are in use, want 8", got)
	}
}

func TestStartsMeasureTheMinimum(t *testing.T) {
	t.Parallel()
	h := train(t, false)
	h.Pod(pod("a", "node-0003", corev1.PodPending), at(1000))
	if s := h.Starts()[0]; s.Started {
		t.Errorf("with one bind: %+v, want not started", s)
	}
	h.Pod(pod("a", "node-0003", corev1.PodRunning), at(1010))
	h.Pod(pod("b", "node-0002", corev1.PodPending), at(1040))
	h.Pod(pod("c", "node-0011", corev1.PodPending), at(5000))
	want := history.Start{
		Name: "train", Gang: true, Pods: 2, Started: true, At: 1040 * time.Millisecond, Spread: 40 * time.Millisecond,
		Nodes: "node-00[02-03,11]",
	}
	if got := h.Starts()[0]; got != want {
		t.Errorf("start is %+v, want %+v", got, want)
	}
}

func TestNodesAreWrittenShort(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{
		"":                     nil,
		"node-0003":            {"node-0003", "node-0003"},
		"node-000[0-1]":        {"node-0000", "node-0001"},
		"a-00[1,3] b-2 master": {"master", "b-2", "a-003", "a-001"},
		"n[8-10]":              {"n8", "n9", "n10"},
	} {
		h := train(t, false)
		for i, name := range names {
			h.Pod(pod(fmt.Sprint(i), name, corev1.PodRunning), at(i))
		}
		if got := h.Starts()[0].Nodes; got != want {
			t.Errorf("%v is written %q, want %q", names, got, want)
		}
	}
}

func TestARecordHasTheLifeOfEveryPod(t *testing.T) {
	t.Parallel()
	h := train(t, false)
	gone := pod("c", "", corev1.PodPending)
	h.Pod(pod("b", "", corev1.PodPending), at(20))
	h.Pod(pod("a", "", corev1.PodPending), at(10))
	h.Pod(gone, at(30))
	h.Pod(pod("a", "n", corev1.PodPending), at(40))
	h.Pod(pod("a", "n", corev1.PodRunning), at(50))
	h.PodGone(gone, at(60))
	h.Pod(pod("a", "n", corev1.PodSucceeded), at(70))
	h.PodGone(pod("a", "n", corev1.PodSucceeded), at(80))
	want := history.Record{Until: 100, Workloads: []history.Lives{{Name: "train", Min: 2, Pods: []history.Life{
		{Created: 10, Bound: 40, Ended: 70}, {Created: 20}, {Created: 30, Ended: 60},
	}}}}
	if diff := cmp.Diff(want, h.Record(at(100))); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}
