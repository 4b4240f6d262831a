// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers_test

import (
	"fmt"
	"testing"

	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestProduction has 32 cores on four nodes.
func TestProduction(t *testing.T) {
	s := open(t, localcluster.Options{Shapes: []string{"name=cpu,count=4,cpu=8,memory=32Gi"}})
	s.run("production.conf", []decision{
		priority,
		gang,
		conformance,
		{
			plugin:  "overcommit",
			seen:    "of two jobs of a queue that holds its part of a full cluster one that asks for 7 is not let in, and one that asks for 6 is: 1.2 times 32 are 38.4",
			without: "both are let in: the queue may hold all 32",
			play: func(s *fixture) {
				s.divide()
				s.waits(of("light", needing("7", job("over", 7, 7, "1"))), model.NotAdmitted)
				s.waits(of("light", needing("6", job("within", 6, 6, "1"))), model.NotEnoughResources)
				s.phase("over", volcano.PodGroupPending)
				s.phase("within", volcano.PodGroupInqueue)
			},
		},
		{
			plugin:  "drf",
			seen:    "two elastic jobs that can each use the whole cluster hold half of it each",
			without: "the older one holds all of it but the other's minimum",
			play: func(s *fixture) {
				s.contend(job("first", 1, 32, "1"), job("second", 1, 32, "1"))
				s.nodes("first", 16)
				s.nodes("second", 16)
			},
		},
		predicates,
		{
			plugin:  "proportion",
			seen:    "of two queues with weights of 1 and 3 the first holds 8 cores, and the second 24",
			without: "the queue of the older job holds as much as the other",
			play:    (*fixture).divide,
		},
		nodeOrder,
		{
			plugin:  "binpack",
			seen:    "a pod goes to the node that is half full",
			without: "it goes to an empty one, which nodeorder prefers",
			play: func(s *fixture) {
				s.hold("half", "cpu-0003", "4")
				s.expect("packed", s.runs(job("packed", 1, 1, "1"), 1), "cpu-0003")
			},
		},
	})
}

// divide fills the cluster with jobs of two queues by their weights of 1 and 3.
func (s *fixture) divide() {
	s.t.Helper()
	s.queue("light", volcano.QueueSpec{Weight: 1})
	s.queue("heavy", volcano.QueueSpec{Weight: 3})
	s.contend(of("light", job("first", 1, 32, "1")), of("heavy", job("second", 1, 32, "1")))
	s.nodes("first", 8)
	s.nodes("second", 24)
}

// fill has somebody else use so much of every node.
func (s *fixture) fill(cpu string) (names []string) {
	s.t.Helper()
	for i := range 4 {
		name := fmt.Sprintf("busy-%d", i)
		s.hold(name, fmt.Sprintf("cpu-%04d", i), cpu)
		names = append(names, name)
	}
	return names
}

// contend has jobs wait for a full cluster, which is emptied when all of them are let in.
func (s *fixture) contend(jobs ...env.Gang) {
	s.t.Helper()
	busy := s.fill("8")
	for _, g := range jobs {
		s.waits(g, model.NotEnoughResources)
		s.phase(g.Name, volcano.PodGroupInqueue)
	}
	s.release(busy...)
}
