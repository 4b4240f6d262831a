// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package card decides which cards of a node a pod gets, from what the node and the pods on it say about themselves, and tells
// device plugins by annotations. It talks to nobody.
package card

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/node"
	"github.com/caldera-scheduler/caldera/pkg/node/fragment"
)

// Slice is what a container gets of a card.
type Slice struct {
	// Card is the ID of the card.
	Card string
	// Memory is in megabytes for vGPUs and in units of volcano.sh/gpu-memory else; 0 is the whole card.
	Memory int64
	// Cores are in percent of the card.
	Cores int64
}

// Assignment is what a pod gets, by container. Where cards are given to pods and not to containers it is one list.
type Assignment [][]Slice

// Card is a card of a node.
type Card struct {
	// ID is the card's UUID, or its number on the node.
	ID string
	// Index is its place among the cards of the node.
	Index int
	// Memory is in the units of Slice.
	Memory int64
	// Shares is how many slices of it there may be; 0 is no limit.
	Shares int
	// Type is what the device plugin calls the model.
	Type string
	// Partitioned: the card is in MIG mode.
	Partitioned bool
	parts       []part
}

// owner is a pod that has cards. Pods of a gang that is being planned may be one and the same object.
type owner struct{ pod *corev1.Pod }

// part is a slice of a card with its owner.
type part struct {
	*owner
	Slice
}

// give gives a pod a slice.
func (c *Card) give(o *owner, s Slice) { c.parts = append(c.parts, part{owner: o, Slice: s}) }

// returnTo returns what a pod has to the cards.
func (o *owner) returnTo(cards []*Card) {
	for _, c := range cards {
		c.parts = slices.DeleteFunc(c.parts, func(p part) bool { return p.owner == o })
	}
}

// usedBesides reports whether another pod of some kind has a slice of the card.
func (c *Card) usedBesides(o *owner, kind func(*corev1.Pod) bool) bool {
	return slices.ContainsFunc(c.parts, func(p part) bool { return p.owner != o && kind(p.pod) })
}

// memory is how much of the card's memory is taken.
func (c *Card) memory() int64 {
	taken := int64(0)
	for i := range c.parts {
		if c.parts[i].Memory == 0 {
			return c.Memory
		}
		taken += c.parts[i].Memory
	}
	return taken
}

// cores is how many percent of the card's cores are taken.
func (c *Card) cores() int64 {
	taken := int64(0)
	for i := range c.parts {
		taken += c.parts[i].Cores
	}
	return taken
}

// Left is what is left of the card, in thousandths: of its memory or of its cores, of which there is less.
func (c *Card) Left() int {
	if c.Partitioned || c.Shares > 0 && len(c.parts) >= c.Shares || c.Memory <= 0 {
		return 0
	}
	return max(0, min(int((c.Memory-c.memory())*fragment.Whole/c.Memory), int(100-c.cores())*fragment.Whole/100))
}

// Mode is a way of giving cards to pods.
type Mode interface {
	// Wants reports whether a pod asks for cards. An error says what is wrong with the pod, and what to write instead.
	Wants(pod *corev1.Pod) (bool, error)
	// Asks is what a pod asks for, where a card has so much memory: how many cards, and how much of each, in thousandths.
	Asks(pod *corev1.Pod, memory int64) (cards, milli int)
	// Cards are the healthy cards of a node, with nobody on them. An error says which annotation of the node cannot be read.
	Cards(node *corev1.Node) ([]*Card, error)
	// Recorded is what the annotations of a pod on a node say it has there; false when they say nothing about it.
	Recorded(pod *corev1.Pod, node string) (Assignment, bool)
	// Choose gives a pod that wants some of the cards what it asks for. If there is not enough, nothing is given, and the
	// reason says what is missing.
	Choose(pod *corev1.Pod, cards []*Card) (choice Choice, reason string)
	// Annotations are what the device plugin on the node is to read off the pod.
	Annotations(a Assignment, node string, now time.Time) map[string]string
}

// ModeOf is the mode that the arguments of the plugin DeviceShare tell of.
func ModeOf(args *config.DeviceShareArgs) Mode {
	if args.Mode == config.DeviceVGPU {
		return VGPU{Order: Order(args.SchedulePolicy), Exclusive: args.ExclusiveRules}
	}
	return GPU{Whole: args.Mode == config.DeviceGPUNumber}
}

// Choice is what a pod gets, and how good that is.
type Choice struct {
	Assignment Assignment
	// Score is from 0 to 100.
	Score float64
}

// Taken are the cards of a node with what the pods on it have: what was reserved for those that have just been placed, what the
// annotations of the others say, and for the rest, which are being planned, what they would be given one after the other.
func Taken(mode Mode, on *corev1.Node, pods []*corev1.Pod, reserved func(*corev1.Pod) (Assignment, bool)) ([]*Card, error) {
	cards, err := mode.Cards(on)
	if err != nil || len(cards) == 0 {
		return nil, err
	}
	var planned []*corev1.Pod
	for _, pod := range pods {
		if ended(pod) {
			continue
		}
		assignment, ok := reserved(pod)
		if !ok && pod.Spec.NodeName == on.Name { // A pod that waits may have annotations from an attempt to bind it.
			assignment, ok = mode.Recorded(pod, on.Name)
		}
		if ok {
			hand(cards, pod, assignment)
		} else if wants, err := mode.Wants(pod); err == nil && wants {
			planned = append(planned, pod)
		}
	}
	slices.SortFunc(planned, node.Earlier)
	for _, pod := range planned {
		// A pod for which there is not enough has nothing that could be missing.
		_, _ = mode.Choose(pod, cards)
	}
	return cards, nil
}

// hand gives a pod what it has. Cards that are gone or unhealthy are left out.
func hand(cards []*Card, pod *corev1.Pod, a Assignment) {
	o := &owner{pod: pod}
	for _, container := range a {
		for _, s := range container {
			for _, c := range cards {
				if c.ID == s.Card {
					c.give(o, s)
				}
			}
		}
	}
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
