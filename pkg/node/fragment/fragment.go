// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fragment measures what is left of the GPUs of a node and is of no use: fragmentation as in "Beware of Fragmentation: Scheduling GPU-Sharing
// Workloads with Fragmentation Gradient Descent" (Weng et al., USENIX ATC 2023).
package fragment

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Whole is a GPU, in the unit of this package: thousandths.
const Whole = 1000

// Demand is the CPU and the GPUs that a pod asks for.
type Demand struct {
	MilliCPU int64
	// GPUs is how many it asks for, Milli how much of each, in thousandths; both 0: none.
	GPUs, Milli int
	// Models are those of GPUs that it accepts, joined with "|"; empty: all.
	Models string
}

// Compare orders demands: by CPU, then by GPUs.
func (d Demand) Compare(other Demand) int {
	return cmp.Or(cmp.Compare(d.MilliCPU, other.MilliCPU), cmp.Compare(d.Milli, other.Milli), cmp.Compare(d.GPUs, other.GPUs), cmp.Compare(d.Models, other.Models))
}

// Left is the free CPU and the free GPUs of a node.
type Left struct {
	MilliCPU int64
	// GPUs are the free parts of each GPU, in thousandths.
	GPUs []int
	// Model is that of the GPUs; empty: not known.
	Model string
}

// Sum adds up the free parts of all GPUs, in thousandths.
func (l Left) Sum() int {
	sum := 0
	for _, g := range l.GPUs {
		sum += g
	}
	return sum
}

// Without is what a pod leaves of it: parts are taken from the GPU with the least that suffices, whole GPUs in their order. False: it does not suffice.
func (l Left) Without(d Demand) (Left, bool) {
	after := Left{MilliCPU: l.MilliCPU - d.MilliCPU, GPUs: slices.Clone(l.GPUs), Model: l.Model}
	for range d.GPUs {
		best := -1
		for i, left := range after.GPUs {
			if left >= d.Milli && left == l.GPUs[i] && (best < 0 || left < after.GPUs[best]) {
				best = i
			}
		}
		if best < 0 {
			return l, false
		}
		after.GPUs[best] -= d.Milli
	}
	return after, after.MilliCPU >= 0
}

// usual is the part of all pods that kinds are to make up.
const usual = 0.95

// Kinds are the demands of usual pods, and how usual each is.
type Kinds struct {
	chosen []popular
	groups []group
}

// popular is a demand and how many pods have it.
type popular struct {
	Demand
	pods float64
}

// group are kinds that differ in CPU only.
type group struct {
	gpus, milli int
	// models are accepted; none: all are.
	models []string
	// cpus rise. Sums, one more than these, are the parts of the pods that ask for less CPU than each, and last that of the group.
	cpus []int64
	sums []float64
}

// KindsOf are the most frequent of some demands, which make up 95 % of them; of equal frequency the larger one is first. Counts says how often there
// is each.
func KindsOf(counts map[Demand]float64) Kinds {
	all := make([]popular, 0, len(counts))
	for d, n := range counts {
		all = append(all, popular{d, n})
	}
	slices.SortFunc(all, func(a, b popular) int {
		return -cmp.Or(cmp.Compare(a.pods, b.pods), a.Compare(b.Demand))
	})
	pods := sum(all)
	chosen, so := 0, 0.0
	for chosen < len(all) && so < usual*pods {
		so += all[chosen].pods
		chosen++
	}
	return grouped(all[:chosen])
}

func sum(all []popular) float64 {
	pods := 0.0
	for i := range all {
		pods += all[i].pods
	}
	return pods
}

// grouped makes kinds of demands, of which all count.
func grouped(chosen []popular) Kinds {
	k := Kinds{chosen: chosen}
	type key struct {
		gpus, milli int
		models      string
	}
	of := map[key][]popular{}
	var order []key
	for _, p := range chosen {
		one := key{p.GPUs, p.Milli, p.Models}
		if of[one] == nil {
			order = append(order, one)
		}
		of[one] = append(of[one], p)
	}
	pods := sum(chosen)
	for _, one := range order {
		g := group{gpus: one.gpus, milli: one.milli, sums: []float64{0}}
		if one.models != "" {
			g.models = strings.Split(one.models, "|")
		}
		slices.SortFunc(of[one], func(a, b popular) int { return cmp.Compare(a.MilliCPU, b.MilliCPU) })
		part := 0.0
		for _, p := range of[one] {
			part += p.pods / pods
			g.cpus, g.sums = append(g.cpus, p.MilliCPU), append(g.sums, part)
		}
		k.groups = append(k.groups, g)
	}
	return k
}

// Len is how many kinds there are.
func (k Kinds) Len() int { return len(k.chosen) }

// Scarce are the kinds with those that accept few models weighed up, by the GPUs of the cluster for each one that they accept: what is lost to
// them can be had in few other places. GPUs is how many there are of each model. This is not part of the published measure.
func (k Kinds) Scarce(gpus map[string]int) Kinds {
	all := 0
	for _, n := range gpus {
		all += n
	}
	weighed := slices.Clone(k.chosen)
	for i := range weighed {
		if weighed[i].Models == "" {
			continue
		}
		accepted := 0
		for model := range strings.SplitSeq(weighed[i].Models, "|") {
			accepted += gpus[model]
		}
		if accepted > 0 {
			weighed[i].pods *= float64(all) / float64(accepted)
		}
	}
	return grouped(weighed)
}

// Lost is what the average pod could not use of what is left on a node, in thousandths of a GPU: all of it where the pod asks for no GPU or does not
// fit, else the pieces that are too small for it.
func (k Kinds) Lost(l Left) float64 {
	lost, _ := k.losses(l)
	return lost
}

// losses are two parts of what is left on a node. Lost is what the average pod could not use. Stranded are GPUs that it could use now: they will have
// no CPU if only such pods come.
func (k Kinds) losses(l Left) (lost, stranded float64) {
	all := l.Sum()
	if all == 0 {
		return 0, 0
	}
	for i := range k.groups {
		g := &k.groups[i]
		pods := g.sums[len(g.sums)-1]
		small, ok := g.small(l)
		if !ok {
			lost += pods * float64(all)
			continue
		}
		enough, _ := slices.BinarySearch(g.cpus, l.MilliCPU+1)
		fit := g.sums[enough]
		lost += fit*float64(small) + (pods-fit)*float64(all)
		stranded += g.stranded(l.MilliCPU, all-small, enough)
	}
	return lost, stranded
}

// stranded adds up the GPUs that have no CPU if only pods of one kind come, times how usual the kind is. The first kinds of the group fit, so many as
// are enough. Pods are divided as CPU and GPUs are, into parts too.
func (g *group) stranded(milliCPU int64, gpus, enough int) (sum float64) {
	each := float64(g.gpus * g.milli)
	for i := enough - 1; i >= 0; i-- {
		over := float64(gpus)
		if g.cpus[i] > 0 {
			over -= float64(milliCPU) / float64(g.cpus[i]) * each
		}
		if g.cpus[i] == 0 || over <= 0 {
			// For those who ask for less CPU it suffices, too.
			break
		}
		sum += (g.sums[i+1] - g.sums[i]) * over
	}
	return sum
}

// small are the pieces that are too small for pods of a group; false: these get no GPU there, or want none.
func (g *group) small(l Left) (int, bool) {
	if g.gpus == 0 || len(g.models) > 0 && !slices.Contains(g.models, l.Model) {
		return 0, false
	}
	large, small := 0, 0
	for _, left := range l.GPUs {
		if left >= g.milli {
			large++
		} else {
			small += left
		}
	}
	return small, large >= g.gpus
}

// Levels is how many levels of gain there are. So coarse are they that many nodes are on one: the published figures are worse with the exact gain.
const Levels = 100

// foresight is the part of a GPU that counts as lost when its node will not have the CPU for it. It is not part of the published measure. By that a
// node loses nothing until the last pod that fits has come. The value was chosen on four orders of three of the published lists. There 0.1, 0.15 and
// 0.25 are equally good.
const foresight = 0.15

// expected is what counts as lost of what is left on a node.
func (k Kinds) expected(l Left) float64 {
	lost, stranded := k.losses(l)
	return lost + foresight*stranded
}

// Level is how good it is to leave a node so: 0 to 99, 50 where as much is lost as before. Around that a level is 40 thousandths of a GPU that are
// lost or won; far from it levels get wider, as those of the paper do.
func (k Kinds) Level(before, after Left) int {
	gain := k.expected(before) - k.expected(after)
	return min(Levels-1, int(Levels/(1+math.Exp(-gain/Whole))))
}
