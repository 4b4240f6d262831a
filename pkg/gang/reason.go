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

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// insufficientPrefix begins the reason that upstream's NodeResourcesFit gives for each resource that is short.
const insufficientPrefix = "Insufficient "

// refusals remembers why nodes refused a class: the last reasons of each node, and reasons that hold for all. Full are those of nodes that are only
// counted.
type refusals struct {
	byNode  [][]string
	general []string
	full    []counted
}

// counted is the reasons of so many nodes.
type counted struct {
	reasons []string
	nodes   int
}

// node records why a node of the overlay refused; nil when it no longer does.
func (r *refusals) node(overlay *overlay, node int, reasons []string) {
	if r.byNode == nil {
		if reasons == nil {
			return
		}
		r.byNode = make([][]string, len(overlay.nodes))
	}
	r.byNode[node] = reasons
}

// counts returns on how many nodes each reason was given.
func (r *refusals) counts() map[string]int {
	counts := map[string]int{}
	for _, reasons := range r.byNode {
		for _, reason := range reasons {
			counts[reason]++
		}
	}
	for _, f := range r.full {
		for _, reason := range f.reasons {
			counts[reason] += f.nodes
		}
	}
	return counts
}

// summary returns the reason most nodes gave, and all reasons in upstream's form: "2 Insufficient cpu, 3 node(s) had
// untolerated taint(s)". Of equal counts, devices come before the resources every pod asks for, then names decide.
func (r *refusals) summary() (main, all string) {
	if len(r.general) > 0 {
		return r.general[0], ""
	}
	counts := r.counts()
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(-cmp.Compare(counts[a], counts[b]), cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	if len(reasons) == 0 {
		return "no node fits", ""
	}
	parts := make([]string, len(reasons))
	for i, reason := range reasons {
		parts[i] = fmt.Sprintf("%d %s", counts[reason], reason)
	}
	slices.Sort(parts)
	return reasons[0], strings.Join(parts, ", ")
}

// rank is 0 for a device that is short, 1 for anything else.
func rank(reason string) int {
	if name, ok := strings.CutPrefix(reason, insufficientPrefix); ok && strings.Contains(name, "/") {
		return 0
	}
	return 1
}

// reason explains why the requirement of the turn cannot be met: how far the plan got, what is short, by how much.
func (a *attempt) reason() model.Reason {
	if a.short == nil && a.refused != (model.Reason{}) {
		return a.refused
	}
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
	main, detail := c.refusals.summary()
	r.Subject = main
	if name, ok := strings.CutPrefix(main, insufficientPrefix); ok {
		r.Subject = name
		missing := resource.Amount{
			Name:  corev1.ResourceName(name),
			Value: c.task.Request.Get(corev1.ResourceName(name)) * int64(max(1, a.quota.open-max(0, fit-len(a.placed)))),
		}
		main = fmt.Sprintf("insufficient %s, short by %s", name, missing.Format())
	}
	if detail != "" {
		r.Detail = fmt.Sprintf("0/%d nodes are available for the next one: %s", len(a.overlay.nodes), detail)
	}
	r.Message = prefix + main
	return r
}

func noNodes(job *model.Job) model.Reason {
	return model.Reason{Kind: model.NotEnoughResources, Subject: "nodes", FromNodes: true, Message: fmt.Sprintf(
		"0/%d tasks in gang schedulable: the cluster has no nodes", max(1, job.Min()))}
}
