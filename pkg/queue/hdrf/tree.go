// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hdrf is hierarchical dominant resource fairness: queues are leaves of a tree by weight, and the branch that is
// furthest behind goes first. Source: Volcano pkg/scheduler/plugins/drf (reference section 4.5); A. Bhattacharya et al.,
// "Hierarchical Scheduling for Diverse Datacenter Workloads", SoCC 2013.
package hdrf

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Path is where a queue is in the tree.
type Path struct {
	// Names are the branches from the root, which comes first and counts for nothing.
	Names []string
	// Weights are those of the branches: as many as names, at least 1 each.
	Weights []float64
}

// Tree knows the shares of all branches. A change of a job marks its branch; the shares along it are found anew, from
// the jobs that hold something, when queues are next compared. It is not safe for concurrent use.
type Tree struct {
	root  *node
	total resource.Portion
	paths map[string]Path
	// at is the node of each queue that has a path.
	at map[string]*node
	// flat: no path has more than one branch.
	flat bool
	jobs map[string]*job
	// held is what all jobs hold; left tells of each resource of the total whether the cluster has some left.
	held resource.Vector
	left []bool
}

// node is a branch.
type node struct {
	name     string
	weight   float64
	parent   *node
	children []*node // by name
	// running are the jobs on this branch that hold something, by key; idle counts the others.
	running []*job
	idle    int

	// stale: something on the branch changed; spoiled: the shares of all its jobs did.
	stale, spoiled bool

	allocated resource.Portion
	share     float64
	saturated bool
}

// job is a leaf.
type job struct {
	key, queue         string
	allocated, request resource.Vector
	at                 *node

	// judged: share and saturated are found.
	judged    bool
	share     float64
	saturated bool
}

// New returns an empty tree.
func New() *Tree {
	return &Tree{root: &node{weight: 1, stale: true}, at: map[string]*node{}, jobs: map[string]*job{}}
}

// SetTotal records what the cluster has.
func (t *Tree) SetTotal(total resource.Vector) {
	t.total, t.left = total.Portion(), make([]bool, len(total))
	t.root.spoil()
}

// SetPaths records where queues are. A queue without a path has its jobs directly below the root. Where two paths give
// one branch different weights, that of the first queue by name counts.
func (t *Tree) SetPaths(paths map[string]Path) {
	if maps.EqualFunc(t.paths, paths, func(a, b Path) bool {
		return slices.Equal(a.Names, b.Names) && slices.Equal(a.Weights, b.Weights)
	}) {
		return
	}
	t.paths = paths
	t.root = &node{weight: 1, stale: true}
	clear(t.at)
	t.flat = true
	for _, queue := range slices.Sorted(maps.Keys(paths)) {
		path := paths[queue]
		n := t.root
		for i := 1; i < len(path.Names); i++ {
			n = n.branch(path.Names[i], path.Weights[i])
		}
		t.at[queue] = n
		t.flat = t.flat && len(path.Names) <= 2
	}
	for _, key := range slices.Sorted(maps.Keys(t.jobs)) {
		j := t.jobs[key]
		j.at = t.nodeOf(j.queue)
		j.at.attach(j)
	}
	t.root.spoil()
}

func (t *Tree) nodeOf(queue string) *node {
	if n := t.at[queue]; n != nil {
		return n
	}
	return t.root
}

func (n *node) branch(name string, weight float64) *node {
	i, ok := slices.BinarySearchFunc(n.children, name, func(c *node, name string) int { return cmp.Compare(c.name, name) })
	if !ok {
		n.children = slices.Insert(n.children, i, &node{name: name, weight: weight, parent: n, stale: true})
	}
	return n.children[i]
}

// SetJob records what a job of a queue holds and asks for, what it holds included. Devices of claims, of which nodes do not say how many
// there are, do not count.
func (t *Tree) SetJob(key, queue string, allocated, request resource.Vector) {
	allocated, request = allocated.WithoutDevices(), request.WithoutDevices()
	t.detach(key)
	j := &job{key: key, queue: queue, allocated: allocated, request: request, at: t.nodeOf(queue)}
	t.jobs[key] = j
	j.at.attach(j)
	t.hold(allocated, 1)
}

// RemoveJob forgets a job.
func (t *Tree) RemoveJob(key string) {
	t.detach(key)
	delete(t.jobs, key)
}

func (t *Tree) detach(key string) {
	j := t.jobs[key]
	if j == nil {
		return
	}
	if i, ok := slices.BinarySearchFunc(j.at.running, key, byKey); ok {
		j.at.running = slices.Delete(j.at.running, i, i+1)
	} else {
		j.at.idle--
	}
	j.at.mark()
	t.hold(j.allocated, -1)
}

func byKey(j *job, key string) int { return cmp.Compare(j.key, key) }

func (n *node) attach(j *job) {
	if j.allocated.IsZero() {
		n.idle++
	} else {
		i, _ := slices.BinarySearchFunc(n.running, j.key, byKey)
		n.running = slices.Insert(n.running, i, j)
	}
	n.mark()
}

// mark has the shares of a branch and of those above found anew.
func (n *node) mark() {
	for ; n != nil; n = n.parent {
		n.stale = true
	}
}

// spoil has all shares below found anew.
func (n *node) spoil() {
	n.stale, n.spoiled = true, true
	for _, c := range n.children {
		c.spoil()
	}
}

func (t *Tree) hold(allocated resource.Vector, factor int64) { t.held.AddTimes(allocated, factor) }

// refresh finds the shares that changed. When a resource runs out, or there is some again, jobs that want it become
// saturated or stop to be, everywhere.
func (t *Tree) refresh() {
	if !t.root.stale {
		return
	}
	turned := false
	for i, whole := range t.total {
		left := float64(t.held.Get(whole.Name)) < whole.Value
		turned = turned || t.left[i] != left
		t.left[i] = left
	}
	if turned {
		t.root.spoil()
	}
	t.update(t.root)
}

// exhausted reports whether the cluster has nothing left of a resource; it may never have had any.
func (t *Tree) exhausted(name corev1.ResourceName) bool {
	for i := range t.total {
		if t.total[i].Name == name {
			return !t.left[i]
		}
	}
	return true
}

// update finds the share of a branch from those below: what children hold that could still get more is scaled down to
// the smallest share among them, so that a branch is not charged for what one of its children alone could use.
func (t *Tree) update(n *node) {
	if !n.stale {
		return
	}
	n.stale = false
	n.saturated = n.idle == 0
	least := 1.0
	see := func(share float64, saturated bool) {
		n.saturated = n.saturated && saturated
		if !saturated && share != 0 {
			least = min(least, share)
		}
	}
	for _, c := range n.children {
		t.update(c)
		see(c.share, c.saturated)
	}
	for _, j := range n.running {
		if n.spoiled || !j.judged {
			j.judged, j.share, j.saturated = true, j.allocated.Dominant(t.total), t.saturated(j)
		}
		see(j.share, j.saturated)
	}
	n.spoiled = false
	n.allocated = n.allocated[:0]
	for _, c := range n.children {
		n.allocated = plus(n.allocated, c.allocated, scale(c.share, c.saturated, least))
	}
	for _, j := range n.running {
		n.allocated = plus(n.allocated, j.allocated, scale(j.share, j.saturated, least))
	}
	n.share = n.allocated.Dominant(t.total)
}

// scale is how much of what a child holds its branch is charged for.
func scale(share float64, saturated bool, least float64) float64 {
	switch {
	case share == 0:
		return 0
	case saturated:
		return 1
	}
	return least / share
}

// plus adds a multiple of amounts to a sum, in place as long as there is room.
func plus[N int64 | float64](sum resource.Portion, amounts []resource.Quantity[N], factor float64) resource.Portion {
	i := 0
	for _, a := range amounts {
		if factor == 0 || a.Value == 0 {
			continue
		}
		for i < len(sum) && sum[i].Name < a.Name {
			i++
		}
		if i == len(sum) || sum[i].Name != a.Name {
			sum = slices.Insert(sum, i, resource.Quantity[float64]{Name: a.Name})
		}
		sum[i].Value += float64(a.Value) * factor
	}
	return sum
}

// saturated reports whether a job that holds something can get no more of use: of a resource that it holds some of, it
// has all it asks for, or the cluster has none left.
func (t *Tree) saturated(j *job) bool {
	for _, a := range j.allocated {
		wants := j.request.Get(a.Name)
		if a.Value != 0 && wants != 0 && (a.Value >= wants || t.exhausted(a.Name)) {
			return true
		}
	}
	return false
}

// Compare orders two queues, negative when a goes first, as Behind does. Unlike Volcano, which leaves equal branches
// equal, the queue with the shorter path goes first when all levels of that are equal: a queue that was equal to two
// others, of which one goes before the other, could by its age come between them the wrong way round.
func (t *Tree) Compare(a, b string) int {
	return cmp.Or(t.Behind(a, b), cmp.Compare(max(1, len(t.paths[a].Names)), max(1, len(t.paths[b].Names))))
}

// Behind compares what two queues hold, negative when a is further behind: where their paths part, the branch that is not
// saturated, then the one with the smaller share for its weight; among equal branches those on the next level decide.
func (t *Tree) Behind(a, b string) int {
	order, _, _, _ := t.part(a, b)
	return order
}

// part finds the first level on which two queues are on branches of which one is further behind, and returns the branches, too. The order is zero
// if there is none.
func (t *Tree) part(a, b string) (order, level int, p, q *node) {
	t.refresh()
	x, y := t.paths[a], t.paths[b]
	p, q = t.root, t.root
	for level = 1; level < min(len(x.Names), len(y.Names)); level++ {
		p, q = p.branch(x.Names[level], x.Weights[level]), q.branch(y.Names[level], y.Weights[level])
		if p == q {
			continue
		}
		if p.saturated != q.saturated {
			if q.saturated {
				return -1, level, p, q
			}
			return 1, level, p, q
		}
		if c := cmp.Compare(p.share/p.weight, q.share/q.weight); c != 0 {
			return c, level, p, q
		}
	}
	return 0, 0, nil, nil
}

// Standing is how a branch stands in the order.
type Standing struct {
	// Path are the names of the branch from below the root.
	Path []string
	// Share is its share of the cluster, without what it is not charged for.
	Share, Weight float64
	// Saturated: none of its jobs can get more of use.
	Saturated bool
}

// Part returns the branches that decide which of two queues is further behind; false if neither is.
func (t *Tree) Part(a, b string) (x, y Standing, parted bool) {
	order, level, p, q := t.part(a, b)
	if order == 0 {
		return Standing{}, Standing{}, false
	}
	standing := func(queue string, n *node) Standing {
		return Standing{Path: t.paths[queue].Names[1 : level+1], Share: n.share, Weight: n.weight, Saturated: n.saturated}
	}
	return standing(a, p), standing(b, q), true
}

// Level reports whether two queues hold the same for their weights, or the first one less, up to a difference in parts of the cluster, in a tree
// all of whose queues are branches of the root. Of a deeper tree it says no: what branches are charged for depends on others there, so that
// decisions by equal shares may lead back to where they began.
func (t *Tree) Level(a, b string, slack float64) bool {
	t.refresh()
	p, q := t.at[a], t.at[b]
	return t.flat && p != nil && q != nil && p != q && p.share/p.weight <= q.share/q.weight+slack
}
