// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package card

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// What a node and its pods say about vGPUs.
const (
	vgpuRegister   = "volcano.sh/node-vgpu-register"
	vgpuNode       = "volcano.sh/vgpu-node"
	vgpuTime       = "volcano.sh/vgpu-time"
	vgpuIDs        = "volcano.sh/vgpu-ids-new"
	vgpuToAllocate = "volcano.sh/devices-to-allocate"
	bindPhase      = "volcano.sh/bind-phase"
	bindTime       = "volcano.sh/bind-time"
	allocating     = "allocating"
	// nvidia is the device plugin's word for cards of its kind.
	nvidia = "NVIDIA"
)

// noFit is Volcano's reason with what is missing. The reasons of cards that are there are added.
const noFit = "hami-vgpuDeviceSharing error: fewer than %d card(s) left for container %s"

// Order is the order in which cards are tried. Where it leaves two equal, the one with the higher index comes first, as it does
// without an order.
type Order string

// The orders.
const (
	// AnyOrder goes by index alone, and scores no node.
	AnyOrder Order = ""
	// Binpack begins with the card whose memory is used most.
	Binpack Order = "binpack"
	// Spread begins with the card with the fewest slices.
	Spread Order = "spread"
)

// VGPU gives containers slices of cards: so much memory and so many cores of each of a number of cards.
type VGPU struct {
	Order Order
	// Exclusive are sets of labels: pods that have all labels of one do not share cards with each other.
	Exclusive []map[string]string
}

// Wants implements Mode.
func (v VGPU) Wants(pod *corev1.Pod) (bool, error) {
	wants := false
	for i := range pod.Spec.Containers {
		r, err := requestOf(&pod.Spec.Containers[i])
		if err != nil {
			return false, err
		}
		wants = wants || r.number > 0
	}
	if !wants {
		return false, nil
	}
	for _, known := range [][2]string{{model.VGPUModeAnnotation, hamiCore}, {model.VGPUGroupPolicyAnnotation, spread}} {
		annotation, supported := known[0], known[1]
		if given := pod.Annotations[annotation]; given != "" && given != supported {
			return false, fmt.Errorf("annotation %s is %q: only %s is supported; write that or remove it", annotation, given, supported)
		}
	}
	return true, nil
}

// Asks implements Mode. Of containers that ask for parts of different size the largest counts for all.
func (v VGPU) Asks(pod *corev1.Pod, memory int64) (cards, milli int) {
	for i := range pod.Spec.Containers {
		r, err := requestOf(&pod.Spec.Containers[i])
		if err != nil {
			return 0, 0
		}
		if r.number == 0 {
			continue
		}
		cards += r.number
		milli = max(milli, thousandths(r.cores, 100), thousandths(r.of(&Card{Memory: memory}), memory))
	}
	return cards, milli
}

// Cards implements Mode. The annotation has an entry "uuid,shares,megabytes,type,health,mode" for each card, and a colon between
// them; older device plugins leave the mode out.
func (v VGPU) Cards(node *corev1.Node) ([]*Card, error) {
	for _, name := range []corev1.ResourceName{vgpuNumber, vgpuCores, vgpuMemory} {
		if has := node.Status.Allocatable[name]; has.Sign() <= 0 {
			return nil, nil
		}
	}
	var cards []*Card
	index := 0
	for entry := range strings.SplitSeq(node.Annotations[vgpuRegister], ":") {
		if strings.TrimSpace(entry) == "" {
			continue
		}
		c, healthy, err := cardOf(strings.Split(entry, ","))
		if err != nil {
			return nil, fmt.Errorf("annotation %s of the node has %q, want uuid,shares,megabytes,type,health,mode", vgpuRegister, entry)
		}
		c.Index = index
		index++
		if healthy {
			cards = append(cards, c)
		}
	}
	return cards, nil
}

func cardOf(fields []string) (c *Card, healthy bool, err error) {
	if len(fields) < 5 {
		return nil, false, strconv.ErrSyntax
	}
	c = &Card{ID: fields[0], Type: fields[3], Partitioned: len(fields) > 5 && fields[5] == mig}
	if c.Shares, err = strconv.Atoi(fields[1]); err != nil {
		return nil, false, err
	}
	if c.Memory, err = strconv.ParseInt(fields[2], 10, 64); err != nil {
		return nil, false, err
	}
	healthy, err = strconv.ParseBool(fields[4])
	return c, healthy && c.Shares > 0 && c.Memory > 0, err
}

// Recorded implements Mode.
func (v VGPU) Recorded(pod *corev1.Pod, node string) (Assignment, bool) {
	ids := pod.Annotations[vgpuIDs]
	if ids == "" || pod.Annotations[vgpuNode] != node {
		return nil, false
	}
	var a Assignment
	for container := range strings.SplitSeq(strings.TrimSuffix(ids, ";"), ";") {
		var given []Slice
		for entry := range strings.SplitSeq(container, ":") {
			if entry == "" {
				continue
			}
			fields := strings.Split(entry, ",")
			if len(fields) < 4 {
				return nil, false
			}
			memory, errMemory := strconv.ParseInt(fields[2], 10, 64)
			cores, errCores := strconv.ParseInt(fields[3], 10, 64)
			if errMemory != nil || errCores != nil {
				return nil, false
			}
			given = append(given, Slice{Card: fields[0], Memory: memory, Cores: cores})
		}
		a = append(a, given)
	}
	return a, true
}

// Annotations implements Mode.
func (v VGPU) Annotations(a Assignment, node string, now time.Time) map[string]string {
	var ids strings.Builder
	for _, given := range a {
		for _, s := range given {
			fmt.Fprintf(&ids, "%s,%s,%d,%d:", s.Card, nvidia, s.Memory, s.Cores)
		}
		ids.WriteString(";")
	}
	seconds := strconv.FormatInt(now.Unix(), 10)
	return map[string]string{
		vgpuNode: node, vgpuTime: seconds, vgpuIDs: ids.String(), vgpuToAllocate: ids.String(), bindPhase: allocating, bindTime: seconds,
	}
}

// Choose implements Mode. A container gets different cards; two containers may get the same one.
func (v VGPU) Choose(pod *corev1.Pod, cards []*Card) (Choice, string) {
	var chosen Choice
	number := 0
	o := &owner{pod: pod}
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		// Wants has read it before.
		r, _ := requestOf(container)
		given, score, reasons := v.give(o, r, cards)
		if len(given) < r.number {
			o.returnTo(cards)
			return Choice{}, strings.Join(append([]string{fmt.Sprintf(noFit, r.number, container.Name)}, reasons...), ", ")
		}
		chosen.Assignment = append(chosen.Assignment, given)
		chosen.Score += score
		number += len(given)
	}
	if number > 0 {
		chosen.Score /= float64(number)
	}
	return chosen, ""
}

// give gives a container the first cards that take it, or as many as there are. It returns the sum of their scores, and why other
// cards did not.
func (v VGPU) give(o *owner, r request, cards []*Card) (given []Slice, score float64, reasons []string) {
	w := wishesOf(o.pod)
	for _, c := range slices.SortedFunc(slices.Values(cards), v.compare) {
		if len(given) == r.number {
			break
		}
		if why := v.refuses(c, r, o, w); why != "" {
			reasons = append(reasons, why)
			continue
		}
		before := len(c.parts)
		s := Slice{Card: c.ID, Memory: r.of(c), Cores: r.cores}
		c.give(o, s)
		given = append(given, s)
		score += v.score(c, before)
	}
	slices.Sort(reasons)
	return given, score, slices.Compact(reasons)
}

// compare orders cards.
func (v VGPU) compare(a, b *Card) int {
	first := 0
	switch v.Order {
	case Binpack:
		first = cmp.Compare(b.memory(), a.memory())
	case Spread:
		first = cmp.Compare(len(a.parts), len(b.parts))
	case AnyOrder:
	}
	return cmp.Or(first, cmp.Compare(b.Index, a.Index))
}

// score is how good it is to have got a slice of a card with so many slices before, 0 to 100: for binpack how full the memory
// is then, for spread 100 for a card that nobody used. Volcano looks whether anybody uses it afterwards
// (pkg/scheduler/api/devices/nvidia/vgpu/utils.go), so that it scores 0 always.
func (v VGPU) score(c *Card, before int) float64 {
	switch {
	case v.Order == Binpack:
		return 100 * float64(c.memory()) / float64(c.Memory)
	case v.Order == Spread && before == 0:
		return 100
	}
	return 0
}

// refuses is why a container does not get a slice of a card; empty when it may.
func (v VGPU) refuses(c *Card, r request, o *owner, w wishes) string {
	cores := c.cores()
	switch {
	case c.Partitioned:
		return "MIG mode is not supported"
	case !w.accepts(c):
		return "not of a type or UUID that the pod accepts"
	case len(c.parts) >= c.Shares:
		return "all shares are taken"
	case c.Memory-c.memory() < r.of(c):
		return "too little memory"
	case r.cores == 100 && len(c.parts) > 0:
		return "in use, and all cores are asked for"
	case cores+r.cores > 100, r.cores == 0 && cores == 100:
		return "too few cores"
	case v.excludes(c, o):
		return "used by a pod of the same exclusive rule"
	case LooksAtGroup(o.pod) && c.usedBesides(o, func(p *corev1.Pod) bool { return model.JobByMarks(p) == model.JobByMarks(o.pod) }):
		return "used by a pod of the same PodGroup"
	}
	return ""
}

// excludes reports whether a rule that holds for a pod holds for another one on the card, too.
func (v VGPU) excludes(c *Card, o *owner) bool {
	return slices.ContainsFunc(v.Exclusive, func(rule map[string]string) bool {
		return covers(rule, o.pod) && c.usedBesides(o, func(p *corev1.Pod) bool { return covers(rule, p) })
	})
}

// covers reports whether a pod has all labels of a rule.
func covers(rule map[string]string, pod *corev1.Pod) bool {
	for key, value := range rule {
		if has, ok := pod.Labels[key]; !ok || has != value {
			return false
		}
	}
	return true
}
