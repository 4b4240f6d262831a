// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
	podresource "k8s.io/component-helpers/resource"
)

// nodeRow is a node by one resource.
type nodeRow struct {
	Name string `json:"name"`
	// Allocatable is what pods may ask for in all, Free what is left of it; less than nothing is nothing.
	Allocatable amount `json:"allocatable"`
	Free        amount `json:"free"`
	Pods        int    `json:"pods"`
	// Problem is why no pod gets the node; empty if pods do.
	Problem string `json:"problem"`
}

// nodeTable are the nodes.
type nodeTable struct {
	Resource  string    `json:"resource"`
	Resources []string  `json:"resources"`
	Nodes     []nodeRow `json:"nodes"`
}

// nodes reads nodes and pods of the cluster. The API server answers from its memory, and does not ask its store.
func (s *source) nodes(ctx context.Context, parameters url.Values) (any, error) {
	var nodes []*corev1.Node
	err := each(ctx, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return s.core.CoreV1().Nodes().List(ctx, o)
	}, "",
		func(n *corev1.Node) { nodes = append(nodes, n) })
	if err != nil {
		return nil, fmt.Errorf("reading nodes: %w", err)
	}
	held := map[string]*load{}
	err = each(ctx, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return s.core.CoreV1().Pods("").List(ctx, o)
	},
		"status.phase!=Succeeded,status.phase!=Failed", func(p *corev1.Pod) { add(held, p) })
	if err != nil {
		return nil, fmt.Errorf("reading pods: %w", err)
	}
	return nodesOf(nodes, held, corev1.ResourceName(parameters.Get("resource"))), nil
}

// each reads all objects of a kind, some at a time.
func each[T any](ctx context.Context, list pager.ListPageFunc, selector string, do func(T)) error {
	return pager.New(list).EachListItem(ctx, metav1.ListOptions{ResourceVersion: "0", FieldSelector: selector}, func(o runtime.Object) error {
		if object, ok := o.(T); ok {
			do(object)
		}
		return nil
	})
}

// load is what the pods of a node ask for.
type load struct {
	pods     int
	requests corev1.ResourceList
}

func add(held map[string]*load, p *corev1.Pod) {
	if p.Spec.NodeName == "" {
		return
	}
	l := held[p.Spec.NodeName]
	if l == nil {
		l = &load{requests: corev1.ResourceList{}}
		held[p.Spec.NodeName] = l
	}
	l.pods++
	for name, q := range podresource.PodRequests(p, podresource.PodResourcesOptions{UseStatusResources: true}) {
		sum := l.requests[name]
		sum.Add(q)
		l.requests[name] = sum
	}
}

func nodesOf(nodes []*corev1.Node, held map[string]*load, name corev1.ResourceName) *nodeTable {
	names := countable(nodes)
	if name == "" {
		name = names[0]
	}
	table := &nodeTable{Resource: string(name), Resources: []string{}, Nodes: make([]nodeRow, 0, len(nodes))}
	for _, n := range names {
		table.Resources = append(table.Resources, string(n))
	}
	for _, n := range nodes {
		row := nodeRow{Name: n.Name, Problem: trouble(n)}
		allocatable := n.Status.Allocatable[name]
		free := allocatable.DeepCopy()
		if l := held[n.Name]; l != nil {
			row.Pods = l.pods
			free.Sub(l.requests[name])
		}
		if free.Sign() < 0 {
			free = *resource.NewQuantity(0, allocatable.Format)
		}
		row.Allocatable = amount{allocatable.String(), allocatable.AsApproximateFloat64()}
		row.Free = amount{free.String(), free.AsApproximateFloat64()}
		table.Nodes = append(table.Nodes, row)
	}
	slices.SortFunc(table.Nodes, func(a, b nodeRow) int { return strings.Compare(a.Name, b.Name) })
	return table
}

// countable are the resources that nodes are looked at by: devices, those that there are most of first, then cpu and memory.
func countable(nodes []*corev1.Node) []corev1.ResourceName {
	sums := map[corev1.ResourceName]float64{}
	for _, n := range nodes {
		for name, q := range n.Status.Allocatable {
			if strings.Contains(string(name), "/") {
				sums[name] += q.AsApproximateFloat64()
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(sums), func(a, b corev1.ResourceName) int {
		return cmp.Or(-cmp.Compare(sums[a], sums[b]), cmp.Compare(a, b))
	})
	return append(names, corev1.ResourceCPU, corev1.ResourceMemory)
}

// trouble is why no pod gets a node.
func trouble(n *corev1.Node) string {
	var parts []string
	ready := false
	for _, c := range n.Status.Conditions {
		ready = ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}
	if !ready {
		parts = append(parts, "not ready")
	}
	if n.Spec.Unschedulable {
		parts = append(parts, "cordoned")
	}
	return strings.Join(parts, ", ")
}
