// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strconv"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/queue/hdrf"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// hierarchical is drf with enableHierarchy: jobs by their own share, queues by those of their branches.
type hierarchical struct {
	drf
	tree *hdrf.Tree
}

func newHierarchical() *hierarchical { return &hierarchical{tree: hdrf.New()} }

// CompareQueues puts the queue on the branch that is furthest behind first.
func (p *hierarchical) CompareQueues(a, b *account.Queue) int { return p.tree.Compare(a.Name, b.Name) }

// FollowJob implements Follower.
func (p *hierarchical) FollowJob(key model.JobKey, job *model.Job) {
	if job == nil {
		p.tree.RemoveJob(leafOf(key))
		return
	}
	p.tree.SetJob(leafOf(key), job.Queue, job.Usage.Allocated, job.Usage.Requested)
}

// leafOf names a job in the tree. A pod may have the name of a PodGroup.
func leafOf(key model.JobKey) string {
	return strconv.Itoa(int(key.Source)) + "/" + key.Namespace + "/" + key.Name
}

// FollowCluster implements Follower.
func (p *hierarchical) FollowCluster(total resource.Vector) { p.tree.SetTotal(total) }

// FollowQueues implements Follower.
func (p *hierarchical) FollowQueues(queues []*account.Queue) {
	paths := make(map[string]hdrf.Path, len(queues))
	for _, q := range queues {
		if q.Spec != nil && q.Spec.Hierarchy != nil {
			paths[q.Name] = hdrf.Path{Names: q.Spec.Hierarchy, Weights: q.Spec.HierarchyWeights}
		}
	}
	p.tree.SetPaths(paths)
}
