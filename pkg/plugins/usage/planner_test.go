// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package usage_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/internal/testing/placing"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node/load"
	"github.com/caldera-scheduler/caldera/pkg/plugins/usage"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// planner plans on nodes of 8 cores and 16 Gi, by their loads alone.
func planner(t *testing.T, pl *usage.Usage, names ...string) *gang.Planner {
	t.Helper()
	has := corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("110")}
	var nodes []*corev1.Node
	for _, name := range names {
		nodes = append(nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Capacity: has, Allocatable: has}})
	}
	built := func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return pl, nil }
	return placing.Planner(t, nodes, nil, nil, usage.Name, built)
}

// gangOf is a job of pods of 2 cores and 4 Gi.
func gangOf(name string, size int) *model.Job {
	state := model.NewState()
	state.AddScheduler("volcano")
	key := model.JobKey{Source: model.FromVolcano, Namespace: "default", Name: name}
	state.UpsertGroup(key, &model.Group{Queue: model.DefaultQueue, MinMember: size, Created: now})
	requests := corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("4Gi")}
	for i := range size {
		member := fmt.Sprintf("%s-%d", name, i)
		state.UpsertPod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: member, UID: types.UID(member), Annotations: map[string]string{model.GroupNameAnnotation: name},
			},
			Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{
				Name: "c", Resources: corev1.ResourceRequirements{Requests: requests, Limits: requests},
			}}},
		})
	}
	return state.Job(key)
}

func TestMembersOfAGangThatArePlannedCountAsLoad(t *testing.T) {
	s := &changing{}
	tell := func(loads map[string]float64) {
		s.loads = map[string]load.Load{}
		for name, percent := range loads {
			sample := load.Sample{Percent: percent, Time: clock.RealClock{}.Now()}
			s.loads[name] = load.Load{CPU: sample, Memory: sample}
		}
	}
	pl := usage.Build(argsWith(nil), s, clock.RealClock{})
	p := planner(t, pl, "a", "b", "c")
	for i, step := range []struct {
		name  string
		loads map[string]float64
		want  map[string]int
	}{
		// A member is taken to use 17.5 %, so that the second finds 57.5 % on a, the third 61 % on b and the fourth 75 % on a.
		{"the members spread over the idle nodes", map[string]float64{"a": 40, "b": 43.5, "c": 90}, map[string]int{"a": 2, "b": 2}},
		{"the next gang goes by the loads of the next round", map[string]float64{"a": 90, "b": 90, "c": 10}, map[string]int{"c": 4}},
	} {
		tell(step.loads)
		if err := pl.Ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		plan, err := p.Plan(t.Context(), gang.Request{Job: gangOf(fmt.Sprintf("g%d", i), 4), Budget: func() gang.Budget { return &policy.Budget{} }})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, placed := range plan.Placements {
			got[placed.Node]++
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: members by node (-want,+got)\n%s%s", step.name, diff, plan.Reason.Message)
		}
	}
}
