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

// FollowQueues implements Follower. A queue without a path is a branch of its own directly below the root, of weight 1:
// in Volcano, where only its jobs are part of the tree, it is equal to every other queue whatever it holds, so that by
// its age it goes before or after all of them, and not in turn.
func (p *hierarchical) FollowQueues(queues []*account.Queue) {
	paths := make(map[string]hdrf.Path, len(queues))
	for _, q := range queues {
		if q.Spec != nil && len(q.Spec.Hierarchy) > 1 {
			paths[q.Name] = hdrf.Path{Names: q.Spec.Hierarchy, Weights: q.Spec.HierarchyWeights}
		} else {
			// No annotation gives a branch a name with a slash.
			paths[q.Name] = hdrf.Path{Names: []string{model.RootQueue, "/" + q.Name}, Weights: []float64{1, 1}}
		}
	}
	p.tree.SetPaths(paths)
}
