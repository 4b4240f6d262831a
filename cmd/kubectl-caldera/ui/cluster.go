// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

// moment is a time: for people how long ago it was, and for the page when.
type moment struct {
	Ago string    `json:"ago"`
	At  time.Time `json:"at"`
}

// since is how long ago a time was by another clock; nil for no time.
func since(t *metav1.Time, now time.Time) *moment {
	if t.IsZero() {
		return nil
	}
	return &moment{Ago: leader.Age(t, now), At: t.UTC()}
}

// counted is how often there is something.
type counted struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// leftOut is a queue that is left out of scheduling.
type leftOut struct {
	Queue   string `json:"queue"`
	Message string `json:"message"`
}

// summary is the cluster in a line.
type summary struct {
	Leader    string    `json:"leader"`
	Version   string    `json:"version"`
	Since     *moment   `json:"since"`
	Nodes     int       `json:"nodes"`
	Waiting   int       `json:"waiting"`
	Reasons   []counted `json:"reasons"`
	LeftOut   []leftOut `json:"leftOut"`
	Evicted   int64     `json:"evicted"`
	Decisions int64     `json:"decisions"`
	Wasted    int64     `json:"wasted"`
}

func (s *source) cluster(ctx context.Context, _ url.Values) (any, error) {
	view := &v1alpha1.ClusterView{}
	if err := s.client.Get(ctx, v1alpha1.ClusterViews, "", v1alpha1.ClusterName, view); err != nil {
		return nil, err
	}
	return summarize(&view.Status), nil
}

func summarize(c *v1alpha1.ClusterViewStatus) *summary {
	sum := &summary{
		Leader: c.Leader.Identity, Version: c.Leader.Version, Since: since(&c.Leader.Since, c.AsOf.Time), Nodes: int(c.Nodes), Waiting: int(c.Waiting),
		Reasons: make([]counted, 0, len(c.Reasons)), LeftOut: make([]leftOut, 0, len(c.LeftOut)),
		Evicted: c.Evictions.Evicted, Decisions: c.Evictions.Decisions, Wasted: c.Evictions.Wasted,
	}
	for _, r := range c.Reasons {
		sum.Reasons = append(sum.Reasons, counted{r.Type, int(r.Jobs)})
	}
	for _, q := range c.LeftOut {
		sum.LeftOut = append(sum.LeftOut, leftOut{q.Name, q.Reason.Message})
	}
	return sum
}
