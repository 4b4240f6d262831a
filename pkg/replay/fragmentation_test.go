// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"math/rand/v2"
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/replay"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
)

// packed has the plugin binpack in the place of fragmentation.
const (
	cardsOut = `actions: allocate
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: deviceshare, arguments: {deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack}}]
`
	leaving = cardsOut + `- plugins: [{name: fragmentation}]
`
	packed = cardsOut + `- plugins: [{name: binpack, arguments: {binpack.memory: 0, binpack.resources: volcano.sh/vgpu-memory}}]
`
)

// TestFragmentationLeavesWhatOthersNeed plays pods that ask for parts of GPUs, one, two or four of nodes with eight, for much or little CPU, and a fifth of them for the
// model that a quarter of the nodes have, until as many were asked for as there are. It counts what they got: two such streams.
func TestFragmentationLeavesWhatOthersNeed(t *testing.T) {
	t.Parallel()
	const each = 8 * 20
	held := func(conf string, seed uint64) float64 {
		rng := rand.New(rand.NewPCG(seed, 0))
		tr := &trace.Trace{Nodes: nodes(each/8, 8), Once: true}
		for i := range tr.Nodes {
			tr.Nodes[i].Model = []string{"A100", "T4", "A100", "A100"}[i%4]
		}
		for asked := 0.0; asked < each; {
			j := job(len(tr.Jobs), len(tr.Jobs), 0, 1, []int{1, 1, 1, 1, 1, 1, 2, 4}[rng.IntN(8)], "")
			if j.GPUs == 1 {
				j.MilliGPU = []int{1000, 1000, 700, 500, 300}[rng.IntN(5)]
			}
			j.MilliCPU, j.MemoryMiB = int64(j.GPUs*[]int{2000, 6000, 8000}[rng.IntN(3)]), 1024
			if rng.IntN(5) == 0 {
				j.Models = []string{"T4"}
			}
			tr.Jobs = append(tr.Jobs, j)
			asked += j.AllGPUs()
		}
		h, err := run(t, tr, replay.Options{Config: configured(t, conf)})
		check(t, err)
		return h.Arrivals[len(h.Arrivals)-1].Held
	}
	const streams = 2
	ours, theirs := 0.0, 0.0
	for seed := range uint64(streams) {
		ours += held(leaving, seed)
		theirs += held(packed, seed)
	}
	if ours < 1.05*theirs {
		t.Errorf("of %d GPUs %g are held, and %g where pods are packed: want a twentieth more", streams*each, ours, theirs)
	}
}
