// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodespec turns the node descriptions a user writes, on the command line or in a file, into Node objects.
// It does no I/O and imports API types only.
package nodespec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// DefaultPrefix is the node name prefix of shapes that give none.
const DefaultPrefix = "node"

// Shape describes a group of equal nodes.
type Shape struct {
	// Prefix starts the node names: node-0000, node-0001, ...
	Prefix string
	// Count is the number of nodes; 0 means "a share of --nodes" until Assign has run.
	Count int
	// Labels are added to the labels every node gets (hostname, os, arch).
	Labels map[string]string
	// Taints are set on the nodes as given.
	Taints []corev1.Taint
	// Resources are both the capacity and the allocatable amounts.
	Resources corev1.ResourceList
}

// Default is the shape used when the user asks for a number of nodes and describes none.
func Default() Shape {
	return Shape{Prefix: DefaultPrefix, Resources: corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("8"),
		corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}}
}

// Assign gives every shape its count. Shapes without one share total as evenly as possible, earlier shapes first;
// when total is 0 they get one node each. Without any shape, total nodes of the default shape are made.
func Assign(shapes []Shape, total int) ([]Shape, error) {
	if total < 0 {
		return nil, fmt.Errorf("--nodes %d: must be 0 or more", total)
	}
	if len(shapes) == 0 {
		if total == 0 {
			return nil, nil
		}
		shapes = []Shape{Default()}
	}
	out := slices.Clone(shapes)
	open := 0
	for _, s := range out {
		if s.Count == 0 {
			open++
		}
	}
	switch {
	case total > 0 && open == 0:
		return nil, fmt.Errorf("--nodes %d: every shape has its own count, so nothing is left to share; "+
			"drop --nodes, or drop count= from one shape", total)
	case total > 0 && total < open:
		return nil, fmt.Errorf("--nodes %d: fewer nodes than the %d shapes without count; raise --nodes to %d or more", total, open, open)
	case total == 0:
		total = open
	}
	for i, seen := 0, 0; i < len(out); i++ {
		if out[i].Count == 0 {
			out[i].Count = total/open + boolToInt(seen < total%open)
			seen++
		}
	}
	return out, nil
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// setResource validates and stores one amount, for example cpu=32 or nvidia.com/gpu=8.
func (s *Shape) setResource(name, amount string) error {
	if err := checkResourceName(name); err != nil {
		return err
	}
	if _, twice := s.Resources[corev1.ResourceName(name)]; twice {
		return fmt.Errorf("%s=%s: given twice; keep one", name, amount)
	}
	quantity, err := resource.ParseQuantity(amount)
	if err != nil {
		return fmt.Errorf("%s=%s: not a quantity; write for example 32, 500m, 256Gi", name, amount)
	}
	if quantity.Sign() < 0 {
		return fmt.Errorf("%s=%s: must be 0 or more", name, amount)
	}
	if strings.Contains(name, "/") && quantity.MilliValue()%1000 != 0 {
		return fmt.Errorf("%s=%s: extended resources are whole numbers", name, amount)
	}
	if s.Resources == nil {
		s.Resources = corev1.ResourceList{}
	}
	s.Resources[corev1.ResourceName(name)] = quantity
	return nil
}

func checkResourceName(name string) error {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage:
		return nil
	}
	if strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
		return nil
	}
	if !strings.Contains(name, "/") {
		return fmt.Errorf("resource %q: not one of cpu, memory, pods, ephemeral-storage, hugepages-<size>; "+
			"other resources need a domain, for example nvidia.com/gpu", name)
	}
	if problems := validation.IsQualifiedName(name); len(problems) > 0 {
		return fmt.Errorf("resource %q: %s", name, strings.Join(problems, "; "))
	}
	return nil
}

func (s *Shape) setLabel(key, value string) error {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return fmt.Errorf("label key %q: %s", key, strings.Join(problems, "; "))
	}
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		return fmt.Errorf("label %s=%q: %s", key, value, strings.Join(problems, "; "))
	}
	if old, twice := s.Labels[key]; twice {
		return fmt.Errorf("label %s=%s: already set to %q; keep one", key, value, old)
	}
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels[key] = value
	return nil
}

func (s *Shape) addTaint(taint corev1.Taint) error {
	if problems := validation.IsQualifiedName(taint.Key); len(problems) > 0 {
		return fmt.Errorf("taint key %q: %s", taint.Key, strings.Join(problems, "; "))
	}
	if problems := validation.IsValidLabelValue(taint.Value); len(problems) > 0 {
		return fmt.Errorf("taint %s=%q: %s", taint.Key, taint.Value, strings.Join(problems, "; "))
	}
	switch taint.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		return fmt.Errorf("taint %s effect %q: must be NoSchedule, PreferNoSchedule or NoExecute", taint.Key, taint.Effect)
	}
	s.Taints = append(s.Taints, taint)
	return nil
}

// setPrefix validates the name with the longest suffix Nodes can append.
func (s *Shape) setPrefix(prefix string) error {
	if problems := validation.IsDNS1123Subdomain(prefix + "-0000000"); len(problems) > 0 {
		return fmt.Errorf("name %q: %s", prefix, strings.Join(problems, "; "))
	}
	s.Prefix = prefix
	return nil
}

func (s *Shape) setCount(count int) error {
	if count < 1 {
		return fmt.Errorf("count %d: must be 1 or more; leave it out to share --nodes", count)
	}
	s.Count = count
	return nil
}

// complete fills what was left out and refuses a node no pod could run on.
func (s *Shape) complete() error {
	if s.Prefix == "" {
		s.Prefix = DefaultPrefix
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if _, ok := s.Resources[name]; !ok {
			return fmt.Errorf("%s: missing; add for example cpu=8 and memory=32Gi", name)
		}
	}
	if _, ok := s.Resources[corev1.ResourcePods]; !ok {
		s.Resources[corev1.ResourcePods] = resource.MustParse("110")
	}
	return nil
}
