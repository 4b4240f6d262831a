// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package buckets

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Buckets are the tasks of a job in groups, each of which is best placed on one node. They are made anew of what the job is
// like now, and do not change. Nil buckets are those of a job without a topology.
type Buckets struct {
	topology *topology
	buckets  []*bucket
	places   map[types.UID]place
	// parts numbers the pairs of a bucket and a role.
	parts map[part]int
	// largest is the number of tasks of the largest bucket.
	largest int
}

// bucket is a group of tasks.
type bucket struct {
	index int
	// roles counts all tasks, on nodes or not.
	roles map[string]int
	// open are the tasks without a node, in the order in which they joined.
	open []*model.Task
	// bound counts the tasks on each node.
	bound map[string]int
	// size adds up what the open tasks ask for, in millicores, mebibytes and thousandths of everything else.
	size float64
}

// place is where a task is in the order of its job, and in which bucket.
type place struct {
	bucket *bucket
	rank   int
}

type part struct {
	bucket int
	role   string
}

// Of returns the buckets of a job, nil when its PodGroup asks for no topology. An error says what is wrong with the
// annotations; then there are none either.
func Of(job *model.Job) (*Buckets, error) {
	if job.Group == nil || job.Group.Object == nil {
		return nil, nil
	}
	object, err := meta.Accessor(job.Group.Object)
	if err != nil {
		return nil, err
	}
	t, err := parse(object.GetAnnotations(), rolesOf(job))
	if t == nil || err != nil {
		return nil, err
	}
	b := &Buckets{topology: t, places: map[types.UID]place{}, parts: map[part]int{}}
	b.fill(job)
	b.rank()
	return b, nil
}

// fill puts tasks into buckets: those on nodes into the bucket of their node, the others into the one that attracts them
// most, or a new one if all repel them.
func (b *Buckets) fill(job *model.Job) {
	var tasks []*model.Task
	for _, t := range job.Tasks {
		if b.topology.rank[t.Role] > 0 && (t.Status == model.Pending || t.Status.HoldsNode() && t.Status != model.Releasing) {
			tasks = append(tasks, t)
		}
	}
	slices.SortFunc(tasks, b.compareToJoin)
	ofNode := map[string]*bucket{}
	for _, t := range tasks {
		into := ofNode[t.Node]
		if t.Node == "" {
			into = b.mostAttractive(t.Role)
		}
		if into == nil {
			into = &bucket{index: len(b.buckets), roles: map[string]int{}, bound: map[string]int{}}
			b.buckets = append(b.buckets, into)
		}
		into.roles[t.Role]++
		if t.Node != "" {
			ofNode[t.Node] = into
			into.bound[t.Node]++
		} else {
			into.open = append(into.open, t)
			into.size += sizeOf(t)
		}
		b.places[t.UID] = place{bucket: into}
		key := part{into.index, t.Role}
		if _, known := b.parts[key]; !known {
			b.parts[key] = len(b.parts) + 1
		}
	}
	for _, c := range b.buckets {
		n := len(c.open)
		for _, bound := range c.bound {
			n += bound
		}
		b.largest = max(b.largest, n)
	}
}

// compareToJoin is the order in which tasks choose their buckets: those on nodes first, by node; then by role and name.
func (b *Buckets) compareToJoin(x, y *model.Task) int {
	if waits := x.Node == ""; waits != (y.Node == "") {
		if waits {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(x.Node, y.Node), b.topology.compareRoles(x.Role, y.Role), cmp.Compare(x.Pod.Name, y.Pod.Name))
}

// mostAttractive is the bucket with the most tasks that a role has affinity to, less those it is to be apart from; of equal
// ones that which asks for less. It is nil when every bucket has more to be apart from.
func (b *Buckets) mostAttractive(role string) *bucket {
	var best *bucket
	most := 0
	for _, c := range b.buckets {
		n := b.topology.attraction(role, c.roles)
		if n > most || n == most && (best == nil || c.size < best.size) {
			best, most = c, n
		}
	}
	return best
}

// sizeOf adds up what a task asks for.
func sizeOf(t *model.Task) float64 {
	const mebi, milli = 1 << 20, 1000
	sum := 0.0
	for _, a := range t.Request {
		switch a.Name {
		case corev1.ResourceCPU:
			sum += float64(a.Value)
		case corev1.ResourceMemory:
			sum += float64(a.Value) / mebi
		default:
			sum += float64(a.Value) * milli
		}
	}
	return sum
}

// rank gives the waiting tasks their order: of the bucket with the most of them left the first by role, again and again.
// Source: Volcano compares buckets by what is left of them while tasks are placed; this is the order that comes of it when
// all of them find a node.
func (b *Buckets) rank() {
	queues := make([][]*model.Task, len(b.buckets))
	total := 0
	for i, c := range b.buckets {
		queues[i] = slices.Clone(c.open)
		slices.SortStableFunc(queues[i], func(x, y *model.Task) int { return b.topology.compareRoles(x.Role, y.Role) })
		total += len(c.open)
	}
	for rank := range total {
		fullest := 0
		for i := range queues {
			if len(queues[i]) > len(queues[fullest]) {
				fullest = i
			}
		}
		next := queues[fullest][0]
		queues[fullest] = queues[fullest][1:]
		b.places[next.UID] = place{bucket: b.buckets[fullest], rank: rank}
	}
}

// Compare orders the waiting tasks of the job, negative when x goes first: those in buckets before the others.
func (b *Buckets) Compare(x, y *model.Task) int {
	p, q := b.places[x.UID], b.places[y.UID]
	switch {
	case p.bucket == nil && q.bucket == nil:
		return 0
	case p.bucket == nil:
		return 1
	case q.bucket == nil:
		return -1
	}
	return cmp.Compare(p.rank, q.rank)
}

// Part numbers the tasks of a role in a bucket, which nodes score alike: 0 for all that are in none.
func (b *Buckets) Part(t *model.Task) int {
	p, in := b.places[t.UID]
	if !in {
		return 0
	}
	return b.parts[part{p.bucket.index, t.Role}]
}
