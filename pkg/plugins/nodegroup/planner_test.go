// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package nodegroup_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/internal/testing/placing"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/nodegroup"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// TestEqualPodsOfDifferentQueuesKeepToTheGroupsOfTheirs: what one plan found out is used for the next one of pods that are alike,
// but not for those of a queue that says something else.
func TestEqualPodsOfDifferentQueuesKeepToTheGroupsOfTheirs(t *testing.T) {
	state := model.NewState()
	state.AddScheduler("volcano")
	var nodes []*corev1.Node
	for _, group := range []string{"a", "b"} {
		state.UpsertQueue(&model.Queue{Name: group, Weight: 1, NodeGroups: &model.NodeGroups{Required: []string{group}}})
		has := corev1.ResourceList{"cpu": resource.MustParse("16"), "pods": resource.MustParse("110")}
		nodes = append(nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "node-" + group, Labels: map[string]string{model.NodeGroupLabel: group}},
			Status:     corev1.NodeStatus{Capacity: has, Allocatable: has},
		})
	}
	state.UpsertQueue(&model.Queue{Name: "like-a", Weight: 1, NodeGroups: &model.NodeGroups{Required: []string{"a"}}})
	p := placing.Planner(t, nodes, nil, nil, nodegroup.Name, func(ctx context.Context, _ apiruntime.Object, h fwk.Handle) (fwk.Plugin, error) {
		return nodegroup.New(state)(ctx, &config.NodeGroupArgs{Strict: true}, h)
	})
	for i, step := range []struct{ queue, want string }{{"a", "node-a"}, {"like-a", "node-a"}, {"b", "node-b"}, {"a", "node-a"}, {"b", "node-b"}} {
		name := fmt.Sprintf("g%d", i)
		key := model.JobKey{Source: model.FromVolcano, Namespace: "team", Name: name}
		state.UpsertGroup(key, &model.Group{Queue: step.queue, MinMember: 1})
		state.UpsertPod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name), Annotations: map[string]string{model.GroupNameAnnotation: name}},
			Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{
				Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}},
			}}},
		})
		plan, err := p.Plan(t.Context(), gang.Request{Job: state.Job(key), Budget: func() gang.Budget { return &policy.Budget{} }})
		if err != nil {
			t.Fatal(err)
		}
		if len(plan.Placements) != 1 || plan.Placements[0].Node != step.want {
			t.Errorf("job %d of queue %s: placements %v, want one on %s: %s", i, step.queue, plan.Placements, step.want, plan.Reason.Message)
		}
	}
}
