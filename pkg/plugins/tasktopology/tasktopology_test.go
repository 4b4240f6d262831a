// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package tasktopology_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/internal/testing/placing"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/tasktopology"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	topology "github.com/caldera-scheduler/caldera/pkg/topology/buckets"
)

func node(name, cpu string) *corev1.Node {
	has := corev1.ResourceList{"cpu": resource.MustParse(cpu), "pods": resource.MustParse("110")}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: has, Allocatable: has}}
}

// member is a pod of one core.
func member(job, role string, i int, on string) *corev1.Pod {
	name := fmt.Sprintf("%s-%s-%d", job, role, i)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), Annotations: map[string]string{
			model.GroupNameAnnotation: job, model.RoleKey: role,
		}},
		Spec: corev1.PodSpec{SchedulerName: "volcano", NodeName: on, Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
		}}},
	}
	if on != "" {
		p.Status.Phase = corev1.PodRunning
	}
	return p
}

// world is a cluster with one job.
type world struct {
	state      *model.State
	complaints []string
	job        *model.Job
	pods       []*corev1.Pod
}

func newWorld(annotations map[string]string, least int, pods ...*corev1.Pod) *world {
	w := &world{state: model.NewState(), pods: pods}
	w.state.AddScheduler("volcano")
	w.state.Observe(func(c model.Change) {
		for _, complaint := range c.Complaints {
			w.complaints = append(w.complaints, complaint.Problem)
		}
	})
	key := model.JobKey{Source: model.FromVolcano, Namespace: "team", Name: "t"}
	w.state.UpsertGroup(key, &model.Group{Queue: model.DefaultQueue, MinMember: least, Object: &volcano.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "t", Annotations: annotations},
	}})
	for _, p := range pods {
		w.state.UpsertPod(p)
	}
	w.job = w.state.Job(key)
	return w
}

// planner plans by the plugin and by what nodes have room for.
func (w *world) planner(t *testing.T, nodes ...*corev1.Node) *gang.Planner {
	t.Helper()
	arrange := func(job *model.Job) gang.Arrangement {
		buckets, err := topology.Of(job)
		if err != nil {
			return gang.Arrangement{Order: func(_, _ *model.Task) int { return 0 }, Part: func(*model.Task) int { return 0 }}
		}
		return gang.Arrangement{Order: buckets.Compare, Part: buckets.Part}
	}
	var running []*corev1.Pod
	for _, p := range w.pods {
		if p.Spec.NodeName != "" {
			running = append(running, p)
		}
	}
	return placing.Planner(t, nodes, running, arrange, tasktopology.Name, tasktopology.New(w.state))
}

// plan returns the members that are placed by node.
func (w *world) plan(t *testing.T, p *gang.Planner) map[string][]string {
	t.Helper()
	plan, err := p.Plan(t.Context(), gang.Request{Job: w.job, Budget: func() gang.Budget { return &policy.Budget{} }})
	if err != nil {
		t.Fatal(err)
	}
	on := map[string][]string{}
	for _, placed := range plan.Placements {
		on[placed.Node] = append(on[placed.Node], placed.Task.Pod.Name)
	}
	for _, names := range on {
		slices.Sort(names)
	}
	return on
}

const (
	near  = "volcano.sh/task-topology-affinity"
	apart = "volcano.sh/task-topology-anti-affinity"
	order = "volcano.sh/task-topology-task-order"
)

func TestMembersArePlacedByTheirRoles(t *testing.T) {
	servers := []*corev1.Pod{member("t", "ps", 0, ""), member("t", "ps", 1, "")}
	workers := []*corev1.Pod{member("t", "w", 0, ""), member("t", "w", 1, ""), member("t", "w", 2, ""), member("t", "w", 3, "")}
	all := append(slices.Clone(servers), workers...)
	for name, tc := range map[string]struct {
		annotations map[string]string
		pods        []*corev1.Pod
		nodes       []*corev1.Node
		want        [][]string
	}{
		"each server with its workers": {
			map[string]string{near: "ps,w", apart: "ps", order: "ps,w"},
			all,
			[]*corev1.Node{node("a", "8"), node("b", "8"), node("c", "8")},
			[][]string{{"t-ps-0", "t-w-0", "t-w-2"}, {"t-ps-1", "t-w-1", "t-w-3"}},
		},
		"on the node that takes the whole bucket": {
			map[string]string{near: "ps,w"},
			all,
			[]*corev1.Node{node("a", "4"), node("b", "6"), node("c", "5")},
			[][]string{{"t-ps-0", "t-ps-1", "t-w-0", "t-w-1", "t-w-2", "t-w-3"}},
		},
		"what is left goes where most of it fits": {
			map[string]string{near: "ps,w"},
			all,
			[]*corev1.Node{node("a", "1"), node("b", "2"), node("c", "4")},
			[][]string{{"t-ps-0", "t-ps-1", "t-w-0", "t-w-1"}, {"t-w-2", "t-w-3"}},
		},
		"one on each node": {
			map[string]string{apart: "w"},
			workers,
			[]*corev1.Node{node("a", "8"), node("b", "8"), node("c", "8"), node("d", "8")},
			[][]string{{"t-w-0"}, {"t-w-1"}, {"t-w-2"}, {"t-w-3"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(tc.annotations, len(tc.pods), tc.pods...)
			var got [][]string
			for _, names := range w.plan(t, w.planner(t, tc.nodes...)) {
				got = append(got, names)
			}
			slices.SortFunc(got, slices.Compare[[]string])
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("members that share a node (-want,+got)\n%s", diff)
			}
		})
	}
}

func TestAMemberThatIsCreatedAgainComesBackToTheOthers(t *testing.T) {
	w := newWorld(map[string]string{near: "w"}, 3, member("t", "w", 0, "b"), member("t", "w", 1, "b"), member("t", "w", 9, ""))
	got := w.plan(t, w.planner(t, node("a", "8"), node("b", "8"), node("c", "8")))
	if diff := cmp.Diff(map[string][]string{"b": {"t-w-9"}}, got); diff != "" {
		t.Errorf("members by node (-want,+got)\n%s", diff)
	}
}

func TestWrongAnnotationsAreToldOnce(t *testing.T) {
	w := newWorld(map[string]string{near: "ps,worker"}, 1, member("t", "ps", 0, ""))
	p := w.planner(t, node("a", "8"))
	for range 2 {
		if got := w.plan(t, p); len(got) != 1 {
			t.Errorf("placed %v, want the one member", got)
		}
	}
	want := []string{`annotation volcano.sh/task-topology-affinity names task "worker", which the job does not have: write one of ps; it has no effect until then`}
	if diff := cmp.Diff(want, w.complaints); diff != "" {
		t.Errorf("complaints (-want,+got)\n%s", diff)
	}
}
