// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/queues"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

// course is what a queue held and was due, at the times of the chart; nil while it did not exist.
type course struct {
	Name string     `json:"name"`
	Held []*float64 `json:"held"`
	Due  []*float64 `json:"due"`
}

// chart is what the queues below one have held of a resource.
type chart struct {
	Resource  string      `json:"resource"`
	Resources []string    `json:"resources"`
	Times     []time.Time `json:"times"`
	Queues    []course    `json:"queues"`
}

// root is the queue above all others, where queues are a tree.
const root = "root"

func (s *source) history(ctx context.Context, parameters url.Values) (any, error) {
	// Queues of the first level are below the root, or below none where they are no tree.
	parents := []string{root, ""}
	if parent := parameters.Get("parent"); parent != "" {
		parents = []string{parent}
	}
	list := &v1alpha1.QueueHistoryList{}
	for _, parent := range parents {
		list.Items = nil
		selector := fields.OneTermEqualSelector("status.parent", parent).String()
		if err := s.client.List(ctx, v1alpha1.QueueHistories, "", metav1.ListOptions{FieldSelector: selector}, list); err != nil {
			return nil, err
		}
		if len(list.Items) > 0 {
			break
		}
	}
	if parameters.Get("parent") == "" && len(list.Items) > 1 {
		// Where queues are no tree the root is one of those below none, and holds what all of them hold.
		list.Items = slices.DeleteFunc(list.Items, func(h v1alpha1.QueueHistory) bool { return h.Name == root })
	}
	return chartOf(list.Items, corev1.ResourceName(parameters.Get("resource"))), nil
}

func chartOf(histories []v1alpha1.QueueHistory, name corev1.ResourceName) *chart {
	var views []queues.View
	var lists []corev1.ResourceList
	c := &chart{Resources: []string{}, Times: []time.Time{}, Queues: []course{}}
	for i := range histories {
		h := &histories[i]
		for _, s := range h.Status.Samples {
			c.Times = append(c.Times, s.Time.UTC())
			lists = append(lists, s.Held, s.Due)
		}
		if n := len(h.Status.Samples); n > 0 {
			last := &h.Status.Samples[n-1]
			views = append(views, queues.View{Name: h.Name, QueueViewStatus: &v1alpha1.QueueViewStatus{Held: last.Held, Due: last.Due}})
		}
	}
	slices.SortFunc(c.Times, time.Time.Compare)
	c.Times = slices.CompactFunc(c.Times, time.Time.Equal)
	name = cmp.Or(name, queues.Shown(views))
	c.Resource = string(name)
	for _, r := range queues.Resources(lists...) {
		c.Resources = append(c.Resources, string(r))
	}
	for i := range histories {
		c.Queues = append(c.Queues, courseOf(&histories[i], c.Times, name))
	}
	return c
}

// courseOf has a value for each of the times.
func courseOf(h *v1alpha1.QueueHistory, times []time.Time, name corev1.ResourceName) course {
	c := course{Name: h.Name, Held: make([]*float64, len(times)), Due: make([]*float64, len(times))}
	for _, s := range h.Status.Samples {
		i, ok := slices.BinarySearchFunc(times, s.Time.Time, time.Time.Compare)
		if !ok {
			continue
		}
		c.Held[i] = new(value(s.Held, name))
		if len(s.Due) > 0 {
			c.Due[i] = new(value(s.Due, name))
		}
	}
	return c
}

func value(list corev1.ResourceList, name corev1.ResourceName) float64 {
	q := list[name]
	return q.AsApproximateFloat64()
}
