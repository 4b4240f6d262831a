// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

const (
	// NodeGroupLabel of a node names the group it is in.
	NodeGroupLabel = "volcano.sh/nodegroup-name"
	// NodeGroupLimitsAnnotation of a queue bounds what its pods may ask for in groups of nodes, in JSON.
	NodeGroupLimitsAnnotation = "volcano.sh/nodegroup-resource-limits"
)

// NodeGroups are the groups of nodes that a queue names, each list as given.
type NodeGroups struct {
	Required, Preferred         []string
	AntiRequired, AntiPreferred []string
}

// Named reports whether any group is named at all.
func (g *NodeGroups) Named() bool {
	return g != nil && len(g.Required)+len(g.Preferred)+len(g.AntiRequired)+len(g.AntiPreferred) > 0
}

func (g *NodeGroups) equal(o *NodeGroups) bool {
	if g == nil || o == nil {
		return g == o
	}
	return slices.Equal(g.Required, o.Required) && slices.Equal(g.Preferred, o.Preferred) &&
		slices.Equal(g.AntiRequired, o.AntiRequired) && slices.Equal(g.AntiPreferred, o.AntiPreferred)
}

// GroupLimits bound what the pods of a queue ask for in groups of nodes. The zero value bounds nothing.
type GroupLimits struct {
	// Of are the limits by group. A resource that is not named is not bounded.
	Of map[string]resource.Vector
	// Unreadable: the annotation means nothing, and nobody knows what it was to bound.
	Unreadable bool
}

func (l GroupLimits) equal(o GroupLimits) bool {
	return l.Unreadable == o.Unreadable && maps.EqualFunc(l.Of, o.Of, resource.Vector.Equal)
}

// GroupLimitsOf reads the limits of a queue. An error says what is wrong with the annotation and what to write instead.
func GroupLimitsOf(annotations map[string]string) (GroupLimits, error) {
	text, given := annotations[NodeGroupLimitsAnnotation]
	if !given || text == "" {
		return GroupLimits{}, nil
	}
	var lists map[string]corev1.ResourceList
	if err := json.Unmarshal([]byte(text), &lists); err != nil {
		return GroupLimits{Unreadable: true}, fmt.Errorf(
			`annotation %s is %q: write amounts by group, such as {"a100": {"cpu": "64", "nvidia.com/gpu": "8"}}; the queue gets no nodes until then`,
			NodeGroupLimitsAnnotation, text)
	}
	limits := GroupLimits{Of: make(map[string]resource.Vector, len(lists))}
	for group, list := range lists {
		limits.Of[group] = bounds(list)
	}
	return limits, nil
}

// bounds keeps amounts of 0, which say that nothing may be asked for.
func bounds(list corev1.ResourceList) resource.Vector {
	v := make(resource.Vector, 0, len(list))
	for _, name := range slices.Sorted(maps.Keys(list)) {
		v = append(v, resource.Amount{Name: name, Value: resource.FromList(corev1.ResourceList{name: list[name]}).Get(name)})
	}
	return v
}
