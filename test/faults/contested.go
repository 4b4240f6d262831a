// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"

	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// drawContested has jobs of three queues take room from one another again and again. Much happens while the scheduler looks for victims, or plans:
// in other scenarios these searches are few.
func drawContested(seed uint64) *scenario {
	r := rand.New(rand.NewPCG(seed, 0xc0))
	s := &scenario{Seed: seed, Conf: "queues", Standby: r.IntN(4) == 0, Drowsy: true}
	all := 0
	for i := range 2 + r.IntN(3) {
		s.Nodes = append(s.Nodes, node{Name: fmt.Sprintf("node-%d", i), Cores: 2 + r.IntN(5)})
		all += s.Nodes[i].Cores
	}
	seconds := func(from, to int) duration { return secondsBetween(r, from, to) }
	// It has the whole cluster whenever nobody else is there.
	s.Jobs = append(s.Jobs, job{Name: "holder", Size: all, Min: 1, Cores: 1, Queue: "default", Class: "low", Grace: seconds(1, 4)})
	for i := range 8 + r.IntN(6) {
		size := 1 + r.IntN(2)
		s.Jobs = append(s.Jobs, job{
			Name: fmt.Sprintf("job-%d", i), At: seconds(5, 150), Size: size, Min: size, Cores: 1 + r.IntN(2), Queue: []string{"a", "b"}[r.IntN(2)],
			Class: []string{"low", "high"}[r.IntN(2)], Lasts: seconds(3, 20), Grace: seconds(1, 4),
		})
	}
	s.drawEvents(r, kinds, within(r))
	s.drawEvents(r, kinds, within(r))
	for i := range s.Events {
		// They wait for the next search, so they have to be early enough for one.
		s.Events[i].At /= 2
	}
	s.aim(r, string(dispatch.Planning), string(dispatch.Preempting), string(dispatch.Preempting))
	return s
}
