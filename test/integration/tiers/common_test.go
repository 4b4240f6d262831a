// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// The nodes that every cluster has, with eight cores each.
const (
	one = "cpu-0000"
	two = "cpu-0001"
)

// What plugins decide in every file.
var (
	priority = decision{
		plugin:  "priority",
		seen:    "of two gangs for one node the one of higher priority gets it, though the other has waited for longer",
		without: "the older one gets it",
		play: func(s *fixture) {
			s.hold("busy", one, "8")
			s.waits(job("patient", 2, 2, "4", on(one)), model.NotEnoughResources)
			s.waits(hurried(job("hurried", 2, 2, "4", on(one))), model.NotEnoughResources)
			// A job that has a turn while the room comes free is refused by what it saw: neither may have one then.
			env.Consistently(s.t, 2*time.Second, s.AllBound(s.t, "hurried", 0))
			s.release("busy")
			s.nodes("hurried", 2)
			s.nodes("patient", 0)
		},
	}
	gang = decision{
		plugin:  "gang",
		seen:    "a gang of three with room for two waits, and one that needs two of its three starts those",
		without: "the first starts two, too",
		play: func(s *fixture) {
			s.waits(job("whole", 3, 3, "3", on(one)), model.NotEnoughResources)
			s.runs(job("part", 2, 3, "3", on(one)), 2)
			s.nodes("whole", 0)
		},
	}
	conformance = decision{
		plugin:  "conformance",
		seen:    "a pod that is critical to its node stays, and the one before it in line makes way for a job of higher priority",
		without: "the critical one, which is younger, makes way",
		play: func(s *fixture) {
			s.protects(func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }, nil)
		},
	}
	predicates = decision{
		plugin:  "predicates",
		seen:    "the second pod with the same port of one node waits, and one without it runs",
		without: "the same: pods are not bound to nodes that do not take them",
		play: func(s *fixture) {
			port := func(p *corev1.Pod) {
				p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 8080, HostPort: 8080}}
			}
			s.runs(job("serves", 1, 1, "1", on(one), port), 1)
			s.waits(job("also", 1, 1, "1", on(one), port), model.NotEnoughResources)
			s.runs(job("silent", 1, 1, "1", on(one)), 1)
		},
	}
	nodeOrder = decision{
		plugin:  "nodeorder",
		seen:    "each of two equal pods goes to the node that it prefers",
		without: "both go to the same node, or to any",
		play: func(s *fixture) {
			for _, node := range []string{two, one} {
				name := "for-" + node
				s.expect(name, s.runs(job(name, 1, 1, "500m", prefers(node)), 1), node)
			}
		},
	}
)

// protects has a job of higher priority need the room of one of two pods on a node. The younger pod, whose turn to go it is, is
// changed so that something protects it; then is called when it runs.
func (s *fixture) protects(change func(*corev1.Pod), then func()) {
	s.t.Helper()
	s.runs(job("other", 1, 1, "4", on(one)), 1)
	s.runs(job("kept", 1, 1, "4", on(one), change), 1)
	if then != nil {
		then()
	}
	s.runs(hurried(job("taker", 1, 1, "4", on(one), annotated(model.PreemptableKey, "false"))), 1)
	s.nodes("kept", 1)
	s.nodes("other", 0)
}
