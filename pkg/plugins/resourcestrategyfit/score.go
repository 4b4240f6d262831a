// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package resourcestrategyfit

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// strategies tell how nodes are scored by a resource; none: it does not count.
type strategies func(name string) (config.ResourceStrategy, bool)

// nothing are strategies by which no resource counts.
func nothing(string) (config.ResourceStrategy, bool) { return config.ResourceStrategy{}, false }

// among are strategies by name, where a name may be a pattern.
func among(all map[string]config.ResourceStrategy) strategies {
	return func(name string) (config.ResourceStrategy, bool) {
		if s, ok := all[name]; ok {
			return s, true
		}
		longest := ""
		for pattern := range all {
			head, wild := strings.CutSuffix(pattern, "*")
			if wild && strings.HasPrefix(name, head) && len(pattern) > len(longest) {
				longest = pattern
			}
		}
		s, ok := all[longest]
		return s, ok
	}
}

// ofPod are the strategies that a pod brings: one type for all its resources.
func ofPod(own *model.Scoring) strategies {
	direction := config.LeastAllocated
	if own.Most {
		direction = config.MostAllocated
	}
	return func(name string) (config.ResourceStrategy, bool) {
		w, ok := own.Weights[name]
		return config.ResourceStrategy{Type: direction, Weight: w}, ok
	}
}

// terms are the resources of a request that count.
func (s strategies) terms(request resource.Vector) []node.Term {
	var counting []node.Term
	for _, a := range request {
		if strategy, ok := s(string(a.Name)); ok {
			counting = append(counting, node.Term{Name: a.Name, Request: a.Value, Weight: strategy.Weight, Least: strategy.Type == config.LeastAllocated})
		}
	}
	return counting
}

// plenty is how little a node has of scarce resources, 0 to 1; 0 where something that is asked for is missing. It does
// not depend on what is in use.
func plenty(request resource.Vector, scarce map[string]int64, info fwk.NodeInfo) float64 {
	for _, a := range request {
		if has, _ := node.Amounts(info, a.Name); has == 0 {
			return 0
		}
	}
	all, present := int64(0), int64(0)
	for name, weight := range scarce {
		all += weight
		if has, _ := node.Amounts(info, corev1.ResourceName(name)); has > 0 {
			present += weight
		}
	}
	if all == 0 {
		return 0
	}
	return 1 - float64(present)/float64(all)
}

// gigabyte is the unit of memory in proportions.
const gigabyte = 1e9

// leaves reports whether a node keeps enough free for its idle devices when a request is placed. The resource for whose
// sake it does not is the one returned.
func leaves(request resource.Vector, proportions map[string]config.Proportion, info fwk.NodeInfo) (short string, ok bool) {
	left := func(name corev1.ResourceName) float64 {
		has, used := node.Amounts(info, name)
		return float64(has - used - request.Get(name))
	}
	cpu, memory := left(corev1.ResourceCPU)/1000, left(corev1.ResourceMemory)/gigabyte
	for _, name := range sorted(proportions) {
		has, used := node.Amounts(info, corev1.ResourceName(name))
		p := proportions[name]
		if idle := float64(has - used); has > 0 && (cpu < idle*p.CPU || memory < idle*p.Memory) {
			return name, false
		}
	}
	return "", true
}
