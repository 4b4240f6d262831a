// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package card

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/node/fragment"
)

// The names of Volcano's GPU device plugin (Volcano pkg/scheduler/api/devices/nvidia/gpushare).
const (
	gpuMemory      corev1.ResourceName = "volcano.sh/gpu-memory"
	gpuNumber      corev1.ResourceName = "volcano.sh/gpu-number"
	gpuUnhealthy                       = "volcano.sh/gpu-unhealthy-ids"
	gpuIndex                           = "volcano.sh/gpu-index"
	gpuPredicateAt                     = "volcano.sh/predicate-time"
)

// Why a node has not enough, in Volcano's words and what is missing.
const (
	fewMemory = "GpuShare no enough gpu memory on node: no card has %d free"
	fewCards  = "GpuNumber no enough gpu number on node: fewer than %d cards without a pod"
)

// GPU gives pods whole cards, or memory of one card.
type GPU struct {
	// Whole: pods get as many cards as they ask for by volcano.sh/gpu-number. Else they get memory of one card, by
	// volcano.sh/gpu-memory.
	Whole bool
}

// limit is what a pod asks for: the sum of its containers, or what one init container asks for if that is more.
func limit(pod *corev1.Pod, name corev1.ResourceName) int64 {
	sum := int64(0)
	for i := range pod.Spec.Containers {
		sum += limitOf(&pod.Spec.Containers[i], name)
	}
	for i := range pod.Spec.InitContainers {
		sum = max(sum, limitOf(&pod.Spec.InitContainers[i], name))
	}
	return sum
}

func limitOf(c *corev1.Container, name corev1.ResourceName) int64 {
	quantity := c.Resources.Limits[name]
	return quantity.Value()
}

// demand is how many cards or how much memory a pod asks for.
func (g GPU) demand(pod *corev1.Pod) int64 {
	if g.Whole {
		return limit(pod, gpuNumber)
	}
	return limit(pod, gpuMemory)
}

// Wants implements Mode.
func (g GPU) Wants(pod *corev1.Pod) (bool, error) { return g.demand(pod) > 0, nil }

// Asks implements Mode.
func (g GPU) Asks(pod *corev1.Pod, memory int64) (cards, milli int) {
	switch demand := g.demand(pod); {
	case demand <= 0:
		return 0, 0
	case g.Whole:
		return int(demand), fragment.Whole
	default:
		return 1, thousandths(demand, memory)
	}
}

// Cards implements Mode: all cards of a node have the same memory.
func (g GPU) Cards(node *corev1.Node) ([]*Card, error) {
	memory, number := node.Status.Capacity[gpuMemory], node.Status.Capacity[gpuNumber]
	if memory.Value() <= 0 || number.Value() <= 0 {
		return nil, nil
	}
	unhealthy, err := indexes(node.Annotations[gpuUnhealthy])
	if err != nil {
		return nil, fmt.Errorf("annotation %s of the node is %q, want numbers of cards such as 0,2", gpuUnhealthy, node.Annotations[gpuUnhealthy])
	}
	var cards []*Card
	for i := range int(number.Value()) {
		if !slices.Contains(unhealthy, i) {
			cards = append(cards, &Card{ID: strconv.Itoa(i), Index: i, Memory: memory.Value() / number.Value()})
		}
	}
	return cards, nil
}

// indexes reads numbers with commas.
func indexes(list string) ([]int, error) {
	var all []int
	for text := range strings.SplitSeq(list, ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		i, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, nil
}

// Recorded implements Mode.
func (g GPU) Recorded(pod *corev1.Pod, _ string) (Assignment, bool) {
	all, err := indexes(pod.Annotations[gpuIndex])
	if err != nil || len(all) == 0 {
		return nil, false
	}
	var cards []Slice
	for _, i := range all {
		cards = append(cards, Slice{Card: strconv.Itoa(i), Memory: limit(pod, gpuMemory)})
	}
	return Assignment{cards}, true
}

// Choose implements Mode: the cards with the lowest numbers.
func (g GPU) Choose(pod *corev1.Pod, cards []*Card) (Choice, string) {
	demand, reason := g.demand(pod), fewMemory
	wanted, slice := 1, Slice{Memory: demand}
	if g.Whole {
		wanted, slice, reason = int(demand), Slice{}, fewCards
	}
	var chosen []*Card
	for _, c := range cards {
		if len(chosen) < wanted && (g.Whole && len(c.parts) == 0 || !g.Whole && c.Memory-c.memory() >= demand) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) < wanted {
		return Choice{}, fmt.Sprintf(reason, demand)
	}
	o := &owner{pod: pod}
	var given []Slice
	for _, c := range chosen {
		slice.Card = c.ID
		c.give(o, slice)
		given = append(given, slice)
	}
	return Choice{Assignment: Assignment{given}}, ""
}

// Annotations implements Mode.
func (g GPU) Annotations(a Assignment, _ string, now time.Time) map[string]string {
	var ids []string
	for _, given := range a {
		for _, s := range given {
			ids = append(ids, s.Card)
		}
	}
	return map[string]string{gpuIndex: strings.Join(ids, ","), gpuPredicateAt: strconv.FormatInt(now.UnixNano(), 10)}
}
