// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulated_test lets evictions come to their end in simulated time. It is apart from the tests on a control plane
// because simulations set feature gates, which belong to the process.
package simulated_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	calderaconfig "github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// noon is when the simulations begin.
var noon = time.Date(2026, time.August, 15, 12, 0, 0, 0, time.UTC)

// lifetime is how long each simulation goes on, though nothing changes any more.
const lifetime = 5 * time.Minute

const (
	byShares = `
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`
	byDeserved = `
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: conformance}, {name: gang}]
- plugins: [{name: capacity}, {name: predicates}, {name: nodeorder}]
`
	byTree = `
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]
`
	wholeJobs = `
actions: "enqueue, allocate, gangreclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`
)

// world writes down a cluster of five nodes with four cores each and two queues.
func world(jobs ...string) string {
	var b strings.Builder
	for i := range 5 {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Node\nmetadata: {name: n%d}\nstatus: {allocatable: {cpu: '4', memory: 64Gi}}\n", i)
	}
	for name, deserved := range map[string]int{"a": 12, "b": 8} {
		b.WriteString(queue(name, "root", deserved))
	}
	return b.String() + strings.Join(jobs, "")
}

func queue(name, parent string, deserved int) string {
	return fmt.Sprintf("---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s}\nspec: {weight: 1, parent: %s, deserved: {cpu: '%d'}}\n",
		name, parent, deserved)
}

// job writes down a job of pods with one core each: as many as there are nodes named run on these, in turn, when the
// simulation begins.
func job(name, queue string, least, size int, nodes ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s}\nspec: {minMember: %d, queue: %s}\n", name, least, queue)
	for i := range size {
		place, status := "", ""
		if len(nodes) > 0 {
			place, status = "nodeName: "+nodes[i%len(nodes)]+", ", "status: {phase: Running}\n"
		}
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s-%d, annotations: {scheduling.k8s.io/group-name: %s}}\n"+
			"spec: {schedulerName: volcano, %scontainers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}\n%s", name, i, name, place, status)
	}
	return b.String()
}

// TestNothingHappensAfterAGangHasStarted has a gang take what it is due of a full cluster in which everybody who is
// evicted comes back, and counts evictions in five minutes.
func TestNothingHappensAfterAGangHasStarted(t *testing.T) {
	t.Parallel()
	all := []string{"n0", "n1", "n2", "n3", "n4"}
	var many []string
	for i, node := range all {
		many = append(many, job(fmt.Sprintf("crowd-%d", i), "a", 2, 4, node))
	}
	for _, c := range []struct {
		name, conf, world string
		// evicted are the pods that have to go, all at once. The gang starts unless there are none.
		evicted int
		// held is how many of the 20 cores the queues with jobs hold in the end.
		held map[string]int
	}{
		{"one job", byShares, world(job("big", "a", 1, 20, all...), job("gang", "b", 8, 8)), 8, map[string]int{"a": 12, "b": 8}},
		{"one job, and a gang that would grow", byDeserved, world(job("big", "a", 1, 20, all...), job("gang", "b", 8, 14)), 8, map[string]int{"a": 12, "b": 8}},
		{"many jobs", byShares, world(append(many, job("gang", "b", 8, 8))...), 8, map[string]int{"a": 12, "b": 8}},
		{"jobs that are evicted as bundles", wholeJobs, world(append(many, job("gang", "b", 8, 8))...), 8, map[string]int{"a": 12, "b": 8}},
		{"two gangs", byDeserved, world(job("big", "a", 1, 20, all...), job("gang", "b", 4, 4), job("other", "b", 4, 4)), 8, map[string]int{"a": 12, "b": 8}},
		{
			"a tree: the sibling gives before the cousin", byTree,
			world(queue("dept", "root", 8), queue("near", "dept", 2), queue("b2", "dept", 6),
				job("big", "near", 1, 8, "n0", "n1"), job("far", "a", 1, 12, "n2", "n3", "n4"), job("gang", "b2", 6, 6)), 6,
			map[string]int{"a": 12, "near": 2, "b2": 6},
		},
		{"one job at its minimum", byShares, world(job("big", "a", 20, 20, all...), job("gang", "b", 8, 8)), 0, map[string]int{"a": 20, "b": 0}},
		{"a job that is not to be evicted", byShares, world(keep(job("big", "a", 1, 20, all...)), job("gang", "b", 8, 8)), 0, map[string]int{"a": 20, "b": 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var evictions []int
			result := run(t, c.conf, c.world, func(r simulate.Round) { evictions = append(evictions, r.Disrupted) })
			held, total := map[string]int{}, 0
			for _, j := range result.Jobs {
				held[j.Queue] += j.Placed
				waits := j.Name == "gang" && c.evicted == 0
				if j.Started == waits || waits && j.Waits == nil {
					t.Errorf("job %s holds %d of %d pods, because of %v", j.Name, j.Placed, j.MinMember, j.Waits)
				}
			}
			for _, n := range evictions {
				total += n
			}
			if !result.Settled {
				t.Errorf("after %d rounds pods still move", result.Rounds)
			}
			if total != c.evicted || evictions[0] != c.evicted || !maps.Equal(held, c.held) {
				t.Errorf("evictions by round: %v, want %d in the first and no more; the queues hold %v, want %v", evictions, c.evicted, held, c.held)
			}
		})
	}
}

// keep has the pods of a job kept from eviction.
func keep(job string) string {
	return strings.ReplaceAll(job, "annotations: {", "annotations: {volcano.sh/preemptable: 'false', ")
}

func run(t *testing.T, conf, world string, progress func(simulate.Round)) *simulate.Result {
	t.Helper()
	config, err := profile.Read("volcano-scheduler.conf", []byte(conf), profile.Only)
	if err != nil {
		t.Fatal(err)
	}
	for i := range config.Profiles {
		for _, plugin := range config.Profiles[i].PluginConfig {
			if args, ok := plugin.Args.(*calderaconfig.ReclaimArgs); ok {
				// Nothing but the decisions themselves ends a circle of evictions.
				args.QueueCooldown.Duration = 0
			}
		}
	}
	read, err := scenario.Read("scenario", []byte(world))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := scenario.Complete(read, noon)
	if err != nil {
		t.Fatal(err)
	}
	// Errors only.
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(-1)))
	result, err := simulate.Run(klog.NewContext(t.Context(), logger), objects, simulate.Options{
		Config: config, For: lifetime, Recreate: true, Now: noon, Progress: progress,
	})
	if err != nil {
		t.Fatal(err)
	}
	return result
}
