// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report writes the result of a simulation: as tables for people, as JSON for machines, and as the facts that
// are compared with what Volcano does.
package report

import (
	"slices"

	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/simulate"
)

// Conformance are the facts in which two schedulers can be compared. Jobs and pods are "namespace/name"; a job is a
// PodGroup.
type Conformance struct {
	Initial simulate.Figures `json:"initial"`
	Final   Facts            `json:"final"`
}

// Facts are the facts about the end of a simulation.
type Facts struct {
	// Started: at least one pod, and at least minMember pods, are on nodes.
	Started map[string]bool `json:"started"`
	// Bound and evicted pods are counted by name, evicted ones once each.
	BoundPerJob     map[string]int `json:"boundPerJob"`
	BoundPerQueue   map[string]int `json:"boundPerQueue"`
	BoundPerNode    map[string]int `json:"boundPerNode"`
	EvictedPerJob   map[string]int `json:"evictedPerJob"`
	EvictedPerQueue map[string]int `json:"evictedPerQueue"`
	// PodsPerNodeByJob is how many pods of a job share a node, most first.
	PodsPerNodeByJob map[string][]int                 `json:"podsPerNodeByJob"`
	NodeOf           map[string]string                `json:"nodeOf"`
	Phase            map[string]volcano.PodGroupPhase `json:"phase"`
}

// ConformanceOf draws the facts from a result.
func ConformanceOf(r *simulate.Result) Conformance {
	f := Facts{
		Started: map[string]bool{}, BoundPerJob: map[string]int{}, BoundPerQueue: map[string]int{}, BoundPerNode: map[string]int{},
		EvictedPerJob: map[string]int{}, EvictedPerQueue: map[string]int{}, PodsPerNodeByJob: map[string][]int{},
		NodeOf: map[string]string{}, Phase: map[string]volcano.PodGroupPhase{},
	}
	for _, node := range r.Nodes {
		f.BoundPerNode[node] = 0
	}
	for _, q := range r.Queues {
		f.BoundPerQueue[q.Name], f.EvictedPerQueue[q.Name] = 0, 0
	}
	for _, j := range r.Jobs {
		f.BoundPerQueue[j.Queue] += j.Placed
		f.EvictedPerQueue[j.Queue] += j.Evicted
		if !j.PodGroup {
			continue
		}
		f.Started[j.String()] = j.Started
		f.BoundPerJob[j.String()] = j.Placed
		f.EvictedPerJob[j.String()] = j.Evicted
		f.PodsPerNodeByJob[j.String()] = []int{}
		f.Phase[j.String()] = j.Phase
	}
	perNode := map[string]map[string]int{}
	for _, p := range r.Pods {
		if !p.Placed() {
			continue
		}
		f.BoundPerNode[p.Node]++
		f.NodeOf[p.Namespace+"/"+p.Name] = p.Node
		if p.Job != "" {
			job := p.Namespace + "/" + p.Job
			if perNode[job] == nil {
				perNode[job] = map[string]int{}
			}
			perNode[job][p.Node]++
		}
	}
	for job, nodes := range perNode {
		for _, n := range nodes {
			f.PodsPerNodeByJob[job] = append(f.PodsPerNodeByJob[job], n)
		}
		slices.SortFunc(f.PodsPerNodeByJob[job], func(a, b int) int { return b - a })
	}
	return Conformance{Initial: r.Initial, Final: f}
}
