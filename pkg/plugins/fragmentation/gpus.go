// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/node"
	"github.com/caldera-scheduler/caldera/pkg/node/fragment"
	"github.com/caldera-scheduler/caldera/pkg/plugins/deviceshare/card"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// gpus reads what pods ask for and what nodes have left.
type gpus interface {
	// demand is what a pod asks for. Its models are what the pod says about them, which takes understands.
	demand(pod *corev1.Pod) fragment.Demand
	// takes reports whether pods that say so take a model.
	takes(models, model string) bool
	// all are the GPUs of a node, as if nobody was there.
	all(info fwk.NodeInfo) fragment.Left
	// left is what is left of a node, and what would be with a pod there that asks for d; false: the pod does not fit.
	left(info fwk.NodeInfo, pod *corev1.Pod, d fragment.Demand) (before, after fragment.Left, ok bool)
}

// most is how many units of a resource of a node are GPUs. Memory in megabytes that somebody has named is not.
const most = 128

// whole are GPUs that pods get whole, as a resource of nodes.
type whole struct {
	resource   corev1.ResourceName
	modelLabel string
}

func (w whole) demand(pod *corev1.Pod) fragment.Demand {
	request := resource.OfPod(pod)
	d := fragment.Demand{MilliCPU: request.Get(corev1.ResourceCPU), GPUs: int(min(most, request.Get(w.resource)))}
	if d.GPUs > 0 {
		d.Milli, d.Models = fragment.Whole, strings.Join(w.models(pod), "|")
	}
	return d
}

// models are those that a pod may run on by its node selector, and else by its node affinity; none: all.
func (w whole) models(pod *corev1.Pod) []string {
	if model, ok := pod.Spec.NodeSelector[w.modelLabel]; ok {
		return []string{model}
	}
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil || pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	var all []string
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		i := slices.IndexFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == w.modelLabel && r.Operator == corev1.NodeSelectorOpIn
		})
		if i < 0 {
			// By this term any model will do.
			return nil
		}
		all = append(all, term.MatchExpressions[i].Values...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (w whole) takes(models, model string) bool {
	return slices.Contains(strings.Split(models, "|"), model)
}

func (w whole) all(info fwk.NodeInfo) fragment.Left { return w.without(info, 0, 0) }

func (w whole) left(info fwk.NodeInfo, _ *corev1.Pod, d fragment.Demand) (before, after fragment.Left, ok bool) {
	_, milliCPU := node.Amounts(info, corev1.ResourceCPU)
	_, taken := node.Amounts(info, w.resource)
	before = w.without(info, milliCPU, taken)
	after, ok = before.Without(d)
	return before, after, ok
}

// without is what a node has besides some CPU and some GPUs.
func (w whole) without(info fwk.NodeInfo, milliCPU, taken int64) fragment.Left {
	cpu, _ := node.Amounts(info, corev1.ResourceCPU)
	has, _ := node.Amounts(info, w.resource)
	l := fragment.Left{MilliCPU: cpu - milliCPU, GPUs: make([]int, min(most, has)), Model: info.Node().Labels[w.modelLabel]}
	for i := range l.GPUs {
		if int64(i) < has-taken {
			l.GPUs[i] = fragment.Whole
		}
	}
	return l
}

// cards are what the plugin DeviceShare gives out.
type cards struct{ mode card.Mode }

// ofMemory is how much memory a card is taken to have where a pod asks for megabytes: what that is of a card differs from node to node, and is not
// to make two kinds of one.
const ofMemory = 80_000

func (c cards) demand(pod *corev1.Pod) fragment.Demand {
	d := fragment.Demand{MilliCPU: resource.OfPod(pod).Get(corev1.ResourceCPU)}
	if wants, err := c.mode.Wants(pod); err == nil && wants {
		d.GPUs, d.Milli = c.mode.Asks(pod, ofMemory)
		d.Models = card.TypesOf(pod)
	}
	return d
}

func (c cards) takes(models, model string) bool { return card.TakesType(models, model) }

func (c cards) all(info fwk.NodeInfo) fragment.Left {
	cpu, _ := node.Amounts(info, corev1.ResourceCPU)
	// Cards that cannot be read are none: the plugin DeviceShare says so to those who want some.
	has, _ := c.mode.Cards(info.Node())
	return leftOf(cpu, has)
}

func (c cards) left(info fwk.NodeInfo, pod *corev1.Pod, d fragment.Demand) (before, after fragment.Left, ok bool) {
	cpu, taken := node.Amounts(info, corev1.ResourceCPU)
	pods := make([]*corev1.Pod, len(info.GetPods()))
	for i, p := range info.GetPods() {
		pods[i] = p.GetPod()
	}
	has, _ := card.Taken(c.mode, info.Node(), pods, func(*corev1.Pod) (card.Assignment, bool) { return nil, false })
	before = leftOf(cpu-taken, has)
	if d.GPUs > 0 {
		if _, reason := c.mode.Choose(pod, has); reason != "" {
			return before, before, false
		}
	}
	after = leftOf(cpu-taken-d.MilliCPU, has)
	return before, after, after.MilliCPU >= 0
}

// leftOf is what is left of cards. Those of one node are taken to be of one model.
func leftOf(milliCPU int64, of []*card.Card) fragment.Left {
	l := fragment.Left{MilliCPU: milliCPU, GPUs: make([]int, len(of))}
	for i, c := range of {
		l.GPUs[i], l.Model = c.Left(), c.Type
	}
	return l
}
