// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package buckets_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/topology/buckets"
)

// TestTaskTopology runs testdata/tasktopology.txt. Its lines:
//
//	annotations [affinity=ps,worker;ps,chief] [anti-affinity=ps] [task-order=ps,worker]
//	task NAME role=ROLE has=cpu=1 [on=NODE] [phase=Succeeded]
//	missing ROLE                  a role that only minTaskMember knows
//	node NAME free=cpu=4          what it has idle
//	planned NAME on=NODE          a task that the plan has placed
//	removed NAME                  one that it took off again
//	next NAME                     the task whose scores are asked for, in Volcano's points for weight 10
func TestTaskTopology(t *testing.T) {
	golden.Walk(t, "tasktopology", map[string]func(*golden.Case) string{"buckets": bucketsIn, "score": score})
}

type world struct {
	job   *model.Job
	tasks map[string]*model.Task
}

func read(c *golden.Case) world {
	group := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "train", Annotations: map[string]string{}}}
	w := world{tasks: map[string]*model.Task{}}
	state := model.NewState()
	state.AddScheduler("volcano")
	key := model.JobKey{Source: model.FromVolcano, Namespace: "team", Name: "train"}
	g := &model.Group{Queue: model.DefaultQueue, MinTaskMember: map[string]int{}, Object: group}
	for _, l := range c.Lines {
		switch l.Word(0) {
		case "annotations":
			for _, kind := range []string{"affinity", "anti-affinity", "task-order"} {
				if text := l.Text(kind, ""); text != "" {
					group.Annotations["volcano.sh/task-topology-"+kind] = text
				}
			}
		case "missing":
			g.MinTaskMember[l.Word(1)] = 0
		case "task":
			name := l.Word(1)
			state.UpsertPod(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), Annotations: map[string]string{
					model.GroupNameAnnotation: "train", model.RoleKey: l.Text("role", ""),
				}},
				Spec: corev1.PodSpec{NodeName: l.Text("on", ""), SchedulerName: "volcano", Containers: []corev1.Container{{
					Resources: corev1.ResourceRequirements{Requests: l.List("has")},
				}}},
				Status: corev1.PodStatus{Phase: corev1.PodPhase(l.Text("phase", "Pending"))},
			})
		}
	}
	state.UpsertGroup(key, g)
	w.job = state.Job(key)
	slices.SortFunc(w.job.Tasks, func(a, b *model.Task) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
	for _, t := range w.job.Tasks {
		w.tasks[t.Pod.Name] = t
	}
	return w
}

func bucketsIn(c *golden.Case) string {
	w := read(c)
	b, err := buckets.Of(w.job)
	switch {
	case err != nil:
		return err.Error() + "\n"
	case b == nil:
		return "no topology\n"
	}
	var out strings.Builder
	for i, members := range b.Members(w.job) {
		fmt.Fprintf(&out, "bucket %d: %s\n", i, names(members))
	}
	var waiting []*model.Task
	for _, t := range w.job.Tasks {
		if t.Placeable() {
			waiting = append(waiting, t)
		}
	}
	slices.SortStableFunc(waiting, b.Compare)
	fmt.Fprintf(&out, "order: %s\n", names(waiting))
	return out.String()
}

func names(tasks []*model.Task) string {
	list := make([]string, len(tasks))
	for i, t := range tasks {
		list[i] = t.Pod.Name
	}
	return strings.Join(list, " ")
}

func score(c *golden.Case) string {
	const points = 1000
	w := read(c)
	b, err := buckets.Of(w.job)
	if err != nil {
		return err.Error() + "\n"
	}
	free := map[string]resource.Vector{}
	var order []string
	var out strings.Builder
	for _, next := range c.Lines {
		if next.Word(0) == "node" {
			order = append(order, next.Word(1))
			free[next.Word(1)] = next.Amounts("free")
		}
		if next.Word(0) != "next" {
			continue
		}
		p := b.Begin(w.job, types.UID(next.Word(1)))
		for _, l := range c.Lines {
			switch task := w.tasks[l.Word(1)]; l.Word(0) {
			case "planned":
				p.Place(task.UID, task.Role, l.Text("on", ""))
			case "removed":
				p = p.Clone()
				p.Remove(task.UID, task.Role)
			}
		}
		for _, node := range order {
			fmt.Fprintf(&out, "%s on %s: %.1f\n", next.Word(1), node, points*p.Score(node, free[node]))
		}
	}
	return out.String()
}
