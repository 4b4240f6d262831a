// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rebalance decides whom Volcano's action shuffle evicts: pods of nodes that are used too much, by the plugin
// rescheduling, and pods of nodes that their owners want back, by the plugin tdm. It decides on values and asks nobody.
package rebalance

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// Node is a node with what the action looks at.
type Node struct {
	model.NodeUse
	// Load is how much of its capacity is really in use; nil when that is not known, or was measured too long ago.
	Load *arguments.Utilization
	// Running are the tasks of jobs that run on it.
	Running []model.Victim
}

// Choice is a pod that is to be evicted.
type Choice struct {
	model.Victim
	// Why says why, in words: the plugin, and what is the matter with the node.
	Why string
	// To is the node by whose room the pod was chosen; empty if nobody asked for one. Where the pod that is created instead goes
	// is decided when it is there.
	To string
}

// Survey puts together what the action looks at. The function tells the load of a node, nil if it is not known.
func Survey(nodes []model.NodeUse, jobs *model.Snapshot, load func(*corev1.Node) *arguments.Utilization) []Node {
	surveyed := make([]Node, len(nodes))
	byName := make(map[string]*Node, len(nodes))
	for i, n := range nodes {
		surveyed[i] = Node{NodeUse: n, Load: load(n.Node)}
		byName[n.Name] = &surveyed[i]
	}
	for job := range jobs.Jobs {
		for _, t := range job.Tasks {
			if n := byName[t.Node]; n != nil && t.Status == model.Running {
				n.Running = append(n.Running, model.Victim{Task: t, Job: job, Node: n.NodeUse.Node})
			}
		}
	}
	return surveyed
}
