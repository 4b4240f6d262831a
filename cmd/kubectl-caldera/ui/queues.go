// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"cmp"
	"context"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/queues"
)

// amount is how much there is of a resource: for people, and to draw it.
type amount struct {
	Text  string  `json:"text"`
	Value float64 `json:"value"`
}

// amountOf reads a quantity as it is written; nil for none.
func amountOf(text string) *amount {
	if text == "" {
		return nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return nil
	}
	return &amount{text, q.AsApproximateFloat64()}
}

// queueRow is a queue by one resource.
type queueRow struct {
	Name  string `json:"name"`
	Depth int    `json:"depth"`
	// Inner: there are queues below it.
	Inner   bool    `json:"inner"`
	Held    *amount `json:"held"`
	Due     *amount `json:"due"`
	Limit   *amount `json:"limit"`
	Waiting int     `json:"waiting"`
	Running int     `json:"running"`
	Oldest  *moment `json:"oldest"`
	State   string  `json:"state"`
	Fault   bool    `json:"fault"`
}

// queueTable are all queues that the user may see, each after the one above it.
type queueTable struct {
	Note      string     `json:"note"`
	Resource  string     `json:"resource"`
	Resources []string   `json:"resources"`
	Queues    []queueRow `json:"queues"`
}

func (s *source) queues(ctx context.Context, parameters url.Values) (any, error) {
	_, views, note, err := queues.Read(ctx, s.flags, s.client)
	if err != nil {
		return nil, err
	}
	table := tableOf(views, corev1.ResourceName(parameters.Get("resource")))
	table.Note = note
	return table, nil
}

func tableOf(views []queues.View, name corev1.ResourceName) *queueTable {
	name = cmp.Or(name, queues.Shown(views))
	var lists []corev1.ResourceList
	for _, v := range views {
		lists = append(lists, v.Held, v.Due, v.Limit)
	}
	table := &queueTable{Resource: string(name), Queues: make([]queueRow, 0, len(views)), Resources: []string{}}
	for _, r := range queues.Resources(lists...) {
		table.Resources = append(table.Resources, string(r))
	}
	rows := queues.Tree(views)
	for i, r := range rows {
		table.Queues = append(table.Queues, queueRow{
			Name: r.Name, Depth: r.Depth, Inner: i+1 < len(rows) && rows[i+1].Depth > r.Depth,
			Held: amountOf(queues.Amount(r.Held, name, "0")), Due: amountOf(queues.Amount(r.Due, name, "")), Limit: amountOf(queues.Limit(r.View, name)),
			Waiting: int(r.Waiting), Running: int(r.Jobs.Running), Oldest: since(r.WaitingSince, r.AsOf.Time),
			State: queues.State(r.View, name), Fault: r.Fault != nil,
		})
	}
	return table
}

// below are the names of a queue and of all queues below it.
func below(views []queues.View, name string) map[string]bool {
	names := map[string]bool{name: true}
	deep := -1
	for _, r := range queues.Tree(views) {
		switch {
		case r.Name == name:
			deep = r.Depth
		case deep >= 0 && r.Depth > deep:
			names[r.Name] = true
		default:
			deep = -1
		}
	}
	return names
}
