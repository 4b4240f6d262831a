// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package placing

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// plan plans the pods as a gang, and tells how many go to each node.
func (w *world) plan(c *golden.Case, f framework.Framework) string {
	planner := planning(f, nil)
	planner.ReservationCanFail = w.core.Rules.ReservationCanFail
	plan, err := planner.Plan(context.Background(), gang.Request{Job: w.job(), Budget: func() gang.Budget { return &policy.Budget{} }})
	if err != nil {
		c.Fatalf("%v", err)
	}
	if len(plan.Placements) == 0 {
		return plan.Reason.Message + "\n"
	}
	count := map[string]int{}
	for _, p := range plan.Placements {
		count[p.Node]++
	}
	var out strings.Builder
	for _, n := range w.nodes {
		fmt.Fprintf(&out, "%s: %d\n", n.Name, count[n.Name])
	}
	return out.String()
}

// job is a gang of pods like the one that was read.
func (w *world) job() *model.Job {
	state := w.core.State
	key := model.JobKey{Source: model.FromVolcano, Namespace: w.pod.Namespace, Name: "gang"}
	state.UpsertGroup(key, &model.Group{Queue: model.DefaultQueue, MinMember: w.count})
	for i := range w.count {
		member := w.pod.DeepCopy()
		member.Name = fmt.Sprintf("pod-%d", i)
		member.UID = types.UID(member.Name)
		member.Annotations[model.GroupNameAnnotation] = key.Name
		state.UpsertPod(member)
	}
	return state.Job(key)
}
