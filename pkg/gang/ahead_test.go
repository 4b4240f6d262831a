// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// outlook goes by what pods enforce, in the model.
func (w *fixture) outlook() gang.Outlook {
	snapshot := w.state.Snapshot()
	return func(p *corev1.Pod) gang.Leaver {
		t := w.state.Task(p.UID)
		return gang.Leaver{Ending: model.EndingOf(p, nil, true, now), Request: t.Request, Queue: snapshot.Job(t.Job).Queue, Charge: t.Charge}
	}
}

// capped is a queue that may hold so many cores.
func capped(name string, cores int64) *model.Queue {
	q := queue(name, 1)
	q.Capability = resource.Vector{{Name: corev1.ResourceCPU, Value: cores * 1000}}
	return q
}

// ends are pods of one core, or more, on a node, which have run for 60 minutes, and in how many minutes they end; 0: nobody knows, service: never.
func ends(name, node, cores string, minutes ...int) gangSpec {
	g := gangOf(name, 1, len(minutes), cores, func(i int, p *corev1.Pod) {
		p.Spec.RestartPolicy, p.Spec.TerminationGracePeriodSeconds = corev1.RestartPolicyNever, new(int64(0))
		switch m := minutes[i]; {
		case m == service:
			p.Spec.RestartPolicy = corev1.RestartPolicyAlways
		case m > 0:
			p.Spec.ActiveDeadlineSeconds = new(int64(60+m) * 60)
		}
	})
	return in("a", "", run(g, node))
}

const service = -1

// awaited are the names of the pods in the way of a plan.
func (w *fixture) awaited(a gang.Ahead) (names []string) {
	for uid := range maps.Keys(a.Leavers) {
		names = append(names, w.state.Task(uid).Pod.Name)
	}
	slices.Sort(names)
	return names
}

// ahead asks for a job of queue a, which may be one of some queues.
func (w *fixture) ahead(t *testing.T, g gangSpec, queues ...*model.Queue) gang.Request {
	t.Helper()
	job := w.job(in("a", "", g))
	if queues == nil {
		queues = []*model.Queue{queue("a", 1)}
	}
	set := w.policies(t, tiers("backfill", "priority gang capacity"), queues...)
	return gang.Request{
		Job: job, Budget: func() gang.Budget { return set.Budget(set.Book().Queue("a"), nil, false) }, Nominated: w.state.Nominated(),
	}
}

// avoidsZ has a pod stay off nodes with pods of the gang z.
func avoidsZ(_ int, p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"gang": "z"}},
		}},
	}}
}

// TestAhead: a pod runs for 60 minutes when the job is planned. Each ends, with its grace period, so many minutes later.
func TestAhead(t *testing.T) {
	t.Parallel()
	said := func(g gangSpec, minutes string) gangSpec {
		g.pods[0].Spec.ActiveDeadlineSeconds = nil
		g.pods[0].Annotations[model.ExpectedRuntimeAnnotation] = minutes
		return g
	}
	one := nodeShapes{{count: 1, cpu: "4", memory: "64Gi"}}
	two := nodeShapes{{count: 2, cpu: "4", memory: "64Gi"}}
	for name, c := range map[string]struct {
		shapes  nodeShapes
		running []gangSpec
		gang    gangSpec
		queues  []*model.Queue
		// in: in so many minutes it starts, and leavers are the pods in its way. sure and guessed are as in the plan. 0: it does not.
		in            int
		leavers       []string
		sure, guessed bool
	}{
		"the node that is free first": {
			shapes: two, running: []gangSpec{ends("x", "node-0", "4", 40), ends("y", "node-1", "4", 20)},
			gang: gangOf("new", 1, 1, "4"), in: 20, leavers: []string{"y-0"}, sure: true,
		},
		"all of them": {
			shapes: two, running: []gangSpec{ends("x", "node-0", "4", 40), ends("y", "node-1", "4", 20)},
			gang: gangOf("new", 2, 2, "4"), in: 40, leavers: []string{"x-0", "y-0"}, sure: true,
		},
		"on a node the first that end, until there is room": {
			shapes: two, running: []gangSpec{ends("x", "node-0", "1", 10, 20, 30, 40), ends("y", "node-1", "4", 50)},
			gang: gangOf("new", 1, 1, "2"), in: 20, leavers: []string{"x-0", "x-1"}, sure: true,
		},
		"what is idle counts": {
			shapes: two, running: []gangSpec{ends("x", "node-0", "1", 30, 40), ends("y", "node-1", "4", 50)},
			gang: gangOf("new", 1, 1, "3"), in: 30, leavers: []string{"x-0"}, sure: true,
		},
		"scattered room does not": {
			shapes: two, running: []gangSpec{ends("x", "node-0", "1", 10, 50), ends("y", "node-1", "1", 10, 60)},
			gang: gangOf("new", 1, 1, "4"), in: 50, leavers: []string{"x-0", "x-1"}, sure: true,
		},
		"somebody has said so": {
			shapes: two, running: []gangSpec{said(ends("x", "node-0", "4", 1), "90m"), ends("y", "node-1", "4", 20)},
			gang: gangOf("new", 2, 2, "4"), in: 30, leavers: []string{"x-0", "y-0"},
		},
		"nobody knows: as long again as it has run": {
			shapes: two, running: []gangSpec{ends("x", "node-0", "4", 0), ends("y", "node-1", "4", 20)},
			gang: gangOf("new", 2, 2, "4"), in: 60, leavers: []string{"x-0", "y-0"}, guessed: true,
		},
		"a service never ends": {
			shapes: two, running: []gangSpec{ends("x", "node-0", "1", service), ends("y", "node-1", "4", 20)},
			gang: gangOf("new", 2, 2, "4"),
		},
		"a node that takes no such pods does not count": {
			shapes: nodeShapes{{count: 1, cpu: "4", memory: "64Gi"}, {
				count: 1, cpu: "4", memory: "64Gi", prefix: "shut", taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}},
			}},
			running: []gangSpec{ends("x", "node-0", "4", 40), ends("y", "shut-0", "4", 20)},
			gang:    gangOf("new", 1, 1, "4"), in: 40, leavers: []string{"x-0"}, sure: true,
		},
		"a filter says no, and there is more later": {
			shapes: two, running: []gangSpec{ends("x", "node-0", "4", 40), ends("y", "node-1", "2", 20), ends("z", "node-1", "1", 100)},
			gang: gangOf("new", 1, 1, "2", avoidsZ),
			in:   40, leavers: []string{"x-0"}, sure: true,
		},
		"a pod that only a filter minds is in the way, too": {
			shapes: one, running: []gangSpec{ends("x", "node-0", "3", 20), ends("z", "node-0", "1", 40)},
			gang: gangOf("new", 1, 1, "3", avoidsZ), in: 40, leavers: []string{"x-0", "z-0"}, sure: true,
		},
		"nothing else is in the way": {
			shapes: one, running: []gangSpec{ends("z", "node-0", "1", 40)},
			gang: gangOf("new", 1, 1, "3", avoidsZ), in: 40, leavers: []string{"z-0"}, sure: true,
		},
		"the queue has no room before": {
			shapes: nodeShapes{{count: 3, cpu: "4", memory: "64Gi"}}, running: []gangSpec{ends("x", "node-0", "4", 40), ends("y", "node-1", "2", 50), ends("z", "node-2", "4", 30)},
			gang: gangOf("new", 1, 1, "3"), queues: []*model.Queue{capped("a", 8)}, in: 40, leavers: []string{"x-0", "z-0"}, sure: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newBusy(t, c.shapes, c.running...)
			r := w.ahead(t, c.gang, c.queues...)
			got, err := w.planner.Ahead(t.Context(), r, w.outlook(), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if c.in == 0 {
				if got.Placements != nil {
					t.Fatalf("it starts %s on %v", got.Start, got.Placements)
				}
				return
			}
			leavers := w.awaited(got)
			if want := now.Add(time.Duration(c.in) * time.Minute); !got.Start.Equal(want) || !slices.Equal(leavers, c.leavers) || got.Sure != c.sure || got.Guessed != c.guessed {
				t.Errorf("it starts %s when %v have ended, sure %t, guessed %t, want %s, %v, %t, %t", got.Start, leavers, got.Sure, got.Guessed, want, c.leavers, c.sure, c.guessed)
			}
			if len(got.Placements) != r.Job.Min() {
				t.Errorf("%d of %d tasks are placed", len(got.Placements), r.Job.Min())
			}
		})
	}
}
