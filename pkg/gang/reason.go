// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// insufficientPrefix begins the reason that upstream's NodeResourcesFit gives for each resource that is short.
const insufficientPrefix = "Insufficient "

// refusals counts the nodes that refused a class, by reason.
type refusals map[string]int

func (r refusals) add(reason string) { r[reason]++ }

func (r refusals) status(status *fwk.Status) {
	for _, reason := range status.Reasons() {
		r[reason]++
	}
}

// all records a verdict that holds for every node.
func (r refusals) all(status *fwk.Status) { r[status.Message()] = 0 }

// main is the reason most nodes gave; equal counts are decided by name.
func (r refusals) main() string {
	reasons := slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		return cmp.Or(-cmp.Compare(r[a], r[b]), cmp.Compare(a, b))
	})
	if len(reasons) == 0 {
		return ""
	}
	return reasons[0]
}

// String lists the reasons in upstream's form: "2 Insufficient cpu, 3 node(s) had untolerated taint(s)".
func (r refusals) String() string {
	parts := make([]string, 0, len(r))
	for reason, n := range r {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, reason))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// reason explains why the requirement of the turn cannot be met: how far the plan got, what is short, by how much.
func (a *attempt) reason() model.Reason {
	total := a.job.Min()
	if !a.quota.gang {
		total = a.job.Counts.Ready() + 1
	}
	fit := max(len(a.placed), a.bound)
	ready := min(a.job.Counts.Ready()+a.job.Counts.PendingBestEffort+fit, total-1)
	r := model.Reason{Kind: model.NotEnoughResources, FromNodes: true}
	prefix := fmt.Sprintf("%d/%d tasks in gang schedulable: ", max(0, ready), max(1, total))
	if a.job.Key.Source == model.FromPod {
		prefix = ""
	}
	c := a.short
	if c == nil {
		r.Message = prefix + "no node fits"
		return r
	}
	main := c.refusals.main()
	r.Subject = main
	if name, ok := strings.CutPrefix(main, insufficientPrefix); ok {
		r.Subject = name
		missing := resource.Amount{
			Name:  corev1.ResourceName(name),
			Value: c.task.Request.Get(corev1.ResourceName(name)) * int64(max(1, a.quota.open-max(0, fit-len(a.placed)))),
		}
		main = fmt.Sprintf("insufficient %s, short by %s", name, missing.Format())
	}
	if detail := c.refusals.String(); detail != "" {
		main = fmt.Sprintf("%s; 0/%d nodes are available for the next one: %s", main, len(a.overlay.nodes), detail)
	}
	r.Message = prefix + main
	return r
}

func noNodes(job *model.Job) model.Reason {
	return model.Reason{Kind: model.NotEnoughResources, Subject: "nodes", FromNodes: true, Message: fmt.Sprintf(
		"0/%d tasks in gang schedulable: the cluster has no nodes", max(1, job.Min()))}
}
