// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package buckets

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Progress is how far a plan has come with a job, as the tasks of one role in one bucket see it. Reading it is safe for
// concurrent use, changing it is not.
type Progress struct {
	of     *Buckets
	bucket *bucket
	role   string
	// placed maps tasks that waited to the nodes they were planned on.
	placed map[types.UID]string
	// on counts the roles of the job's tasks on each node, bound the tasks of the bucket.
	on    map[string]map[string]int
	bound map[string]int
	// asks are what the tasks of the bucket that are left ask for: the first, the first two, and so on.
	asks []resource.Vector
}

// Begin returns the progress of a plan that has placed nothing yet, as seen by tasks like t; nil when t is in no bucket.
func (b *Buckets) Begin(job *model.Job, t types.UID) *Progress {
	own, in := b.places[t]
	if !in {
		return nil
	}
	p := &Progress{of: b, bucket: own.bucket, placed: map[types.UID]string{}, on: map[string]map[string]int{}, bound: maps.Clone(own.bucket.bound)}
	for _, o := range job.Tasks {
		if o.UID == t {
			p.role = o.Role
		}
		if _, in := b.places[o.UID]; in && o.Node != "" {
			p.count(o.Role, o.Node, 1)
		}
	}
	p.sum()
	return p
}

func (p *Progress) count(role, node string, n int) {
	if p.on[node] == nil {
		p.on[node] = map[string]int{}
	}
	p.on[node][role] += n
}

// sum adds up what the tasks that are left ask for.
func (p *Progress) sum() {
	var left []*model.Task
	for _, t := range p.bucket.open {
		if p.placed[t.UID] == "" {
			left = append(left, t)
		}
	}
	slices.SortFunc(left, p.of.Compare)
	p.asks = make([]resource.Vector, len(left))
	var sum resource.Vector
	for i, t := range left {
		sum.Add(t.Request)
		p.asks[i] = sum.Clone()
	}
}

// Clone returns a copy that goes on by itself.
func (p *Progress) Clone() *Progress {
	c := *p
	c.placed, c.bound = maps.Clone(p.placed), maps.Clone(p.bound)
	c.on = make(map[string]map[string]int, len(p.on))
	for node, roles := range p.on {
		c.on[node] = maps.Clone(roles)
	}
	return &c
}

// Place records that a pod was planned on a node. Pods that are in no bucket do not matter.
func (p *Progress) Place(uid types.UID, role, node string) {
	if at, in := p.of.places[uid]; in && p.placed[uid] == "" {
		p.placed[uid] = node
		p.count(role, node, 1)
		p.recount(at.bucket, node, 1)
	}
}

// Remove takes back that a pod was planned.
func (p *Progress) Remove(uid types.UID, role string) {
	if node := p.placed[uid]; node != "" {
		delete(p.placed, uid)
		p.count(role, node, -1)
		p.recount(p.of.places[uid].bucket, node, -1)
	}
}

func (p *Progress) recount(b *bucket, node string, n int) {
	if b == p.bucket {
		p.bound[node] += n
		p.sum()
	}
}

// Asks is what all tasks of the bucket that are left ask for.
func (p *Progress) Asks() resource.Vector {
	if len(p.asks) == 0 {
		return nil
	}
	return p.asks[len(p.asks)-1]
}

// Score is how well a node suits the next task, as a part of the largest bucket: the tasks of its bucket that the node has
// already, and those that are left and that fit there together, less the tasks there that it is to be apart from. 1 is a node
// for the whole of the largest bucket; many tasks to be apart from make it negative. Free is what the node has idle, with what
// pods that leave it hold; the next task fits. Source: calcBucketScore (Volcano pkg/scheduler/plugins/task-topology/topology.go).
// Tasks that do not fit besides are left out from the end of their order; there any are.
func (p *Progress) Score(node string, free resource.Vector) float64 {
	fitting, _ := slices.BinarySearchFunc(p.asks, free, func(ask, free resource.Vector) int {
		if ask.Exceeding(free) == nil {
			return -1
		}
		return 1
	})
	score := p.bound[node] + max(1, fitting) - p.of.topology.repulsion(p.role, p.on[node])
	return float64(score) / float64(p.of.largest)
}
