// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Record tells when each pod was created, bound and ended. Times are milliseconds since the demo began.
type Record struct {
	// Until is when the record was made.
	Until     int64   `json:"until"`
	Workloads []Lives `json:"workloads"`
}

// Lives are those of a workload's pods, the first one first.
type Lives struct {
	Name string `json:"name"`
	// Min is the minimum of a gang, 0 for pods that start on their own.
	Min  int    `json:"min,omitempty"`
	Pods []Life `json:"pods"`
}

// Life is that of one pod. Bound and Ended are 0 for one that had no node, or had not ended.
type Life struct {
	Created int64 `json:"created"`
	Bound   int64 `json:"bound,omitempty"`
	Ended   int64 `json:"ended,omitempty"`
}

// life is when a pod was first seen, first seen with a node, and first seen to have ended.
type life struct{ created, bound, ended time.Time }

// live takes in a pod as it is now.
func (e *entry) live(uid types.UID, p *pod, now time.Time) {
	l := e.lives[uid]
	if l == nil {
		l = &life{created: now}
		e.lives[uid] = l
	}
	if p.node != "" && l.bound.IsZero() {
		l.bound = now
	}
	if p.state >= succeeded && l.ended.IsZero() {
		l.ended = now
	}
}

// Record returns what became of every pod that was seen, in the order in which the workloads are applied.
func (h *History) Record(now time.Time) Record {
	since := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.Sub(h.begun).Milliseconds()
	}
	r := Record{Until: since(now)}
	for _, e := range h.entries {
		w := Lives{Name: e.Name}
		if e.Gang {
			w.Min = e.Min
		}
		for _, l := range e.lives {
			w.Pods = append(w.Pods, Life{Created: since(l.created), Bound: since(l.bound), Ended: since(l.ended)})
		}
		slices.SortFunc(w.Pods, func(a, b Life) int {
			return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Bound, b.Bound), cmp.Compare(a.Ended, b.Ended))
		})
		r.Workloads = append(r.Workloads, w)
	}
	return r
}
