// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package hdrf_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/hdrf"
)

func TestSharesAndOrder(t *testing.T) {
	golden.Walk(t, "tree", map[string]func(*golden.Case) string{"tree": tree, "fill": fill})
}

// planted is a tree of the queues and jobs of a world.
type planted struct {
	*hdrf.Tree
	world *golden.World
}

func plant(c *golden.Case) planted {
	p := planted{hdrf.New(), c.World()}
	p.SetTotal(p.world.State.Totals().Allocatable)
	paths := map[string]hdrf.Path{}
	for _, name := range p.world.Queues {
		if q := p.world.State.Queue(name); q.Hierarchy != nil {
			paths[name] = hdrf.Path{Names: q.Hierarchy, Weights: q.HierarchyWeights}
		}
	}
	p.SetPaths(paths)
	for _, key := range p.world.Jobs {
		p.follow(key)
	}
	return p
}

func (p planted) follow(key model.JobKey) {
	job := p.world.State.Job(key)
	p.SetJob(key.Name, job.Queue, job.Usage.Allocated, job.Usage.Requested)
}

// tree shows all branches, and the queues in order; "=" stands between queues that are equal.
func tree(c *golden.Case) string {
	p := plant(c)
	table := &golden.Table{}
	table.Row("branch", "weight", "counts as", "share", "share/weight", "saturated")
	branches := p.Branches()
	for _, path := range slices.Sorted(maps.Keys(branches)) {
		b := branches[path]
		table.Row("root"+path, golden.Number(b.Weight), golden.Portion(b.Allocated), golden.Number(b.Share),
			golden.Number(b.Share/b.Weight), b.Saturated)
	}
	queues := slices.Clone(p.world.Queues)
	slices.SortStableFunc(queues, p.Compare)
	var order strings.Builder
	for i, name := range queues {
		switch {
		case i > 0 && p.Compare(queues[i-1], name) == 0:
			order.WriteString(" = ")
		case i > 0:
			order.WriteString(" < ")
		}
		order.WriteString(name)
	}
	return table.String() + "order: " + order.String() + "\n"
}

// fill gives one pod at a time to a job of the first queue that has one that fits, until nothing fits. It shows who got
// the first pods, and what each job holds in the end.
func fill(c *golden.Case) string {
	p := plant(c)
	var turns []string
	for {
		key, ok := p.next()
		if !ok {
			break
		}
		if !p.world.Run(key) {
			c.Fatalf("job %s has no pod that waits", key)
		}
		p.follow(key)
		turns = append(turns, key.Name)
	}
	table := &golden.Table{}
	table.Row("job", "holds")
	for _, key := range p.world.Jobs {
		table.Row(key.Name, golden.Vector(p.world.State.Job(key).Usage.Allocated))
	}
	return fmt.Sprintf("turns: %s\n", strings.Join(turns[:min(len(turns), c.Options.Int("turns", 0))], " ")) + table.String()
}

// next is the job that gets the next pod: of those that have one that fits, the one whose queue goes first; the earlier
// in the world of equal ones.
func (p planted) next() (first model.JobKey, found bool) {
	totals := p.world.State.Totals()
	free := totals.Allocatable.Clone()
	free.Sub(totals.Used)
	for _, key := range p.world.Jobs {
		job := p.world.State.Job(key)
		if len(job.Pending) == 0 || len(job.Pending[0].Request.Exceeding(free)) > 0 {
			continue
		}
		if !found || p.Compare(job.Queue, p.world.State.Job(first).Queue) < 0 {
			first, found = key, true
		}
	}
	return first, found
}

// names are the resources that rapid draws amounts of.
var names = []corev1.ResourceName{"cpu", "memory", "pods"}

func sign(n int) int { return cmp.Compare(n, 0) }
