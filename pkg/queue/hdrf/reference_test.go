// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package hdrf_test

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/queue/hdrf"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

type amounts map[corev1.ResourceName]float64

// claim is a job of the reference.
type claim struct {
	queue              string
	allocated, request resource.Vector
}

// reference finds all shares from the formulas of reference section 4.5, from scratch each time it is asked.
type reference struct {
	total resource.Vector
	paths map[string]hdrf.Path
	jobs  map[string]claim
}

// place is the branch of a queue, such as "/eng/dev"; the root's is empty.
func (w *reference) place(queue string) string {
	place := ""
	for i, name := range w.paths[queue].Names {
		if i > 0 {
			place += "/" + name
		}
	}
	return place
}

// branches are all branches that paths lead to or through, in order.
func (w *reference) branches() []string {
	places := map[string]bool{"": true}
	for queue := range w.paths {
		for place := w.place(queue); place != ""; place = place[:strings.LastIndexByte(place, '/')] {
			places[place] = true
		}
	}
	return slices.Sorted(maps.Keys(places))
}

func (w *reference) share(held amounts) float64 {
	share := 0.0
	for _, whole := range w.total {
		if whole.Value > 0 {
			share = max(share, held[whole.Name]/float64(whole.Value))
		}
	}
	return share
}

// leaf is one job.
func (w *reference) leaf(c claim) (held amounts, share float64, saturated bool) {
	var all resource.Vector
	for _, other := range w.jobs {
		all.Add(other.allocated)
	}
	held = amounts{}
	for _, a := range c.allocated {
		if a.Value == 0 {
			continue
		}
		held[a.Name] = float64(a.Value)
		request := c.request.Get(a.Name)
		demanding := all.Get(a.Name) < w.total.Get(a.Name)
		saturated = saturated || request != 0 && (a.Value >= request || !demanding)
	}
	return held, w.share(held), saturated
}

// branch is an inner node.
func (w *reference) branch(at string) (held amounts, share float64, saturated bool) {
	type child struct {
		held      amounts
		share     float64
		saturated bool
	}
	var children []child
	for _, place := range w.branches() {
		if rest, below := strings.CutPrefix(place, at+"/"); below && !strings.Contains(rest, "/") {
			h, s, full := w.branch(place)
			children = append(children, child{h, s, full})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(w.jobs)) {
		if c := w.jobs[key]; w.place(c.queue) == at {
			h, s, full := w.leaf(c)
			children = append(children, child{h, s, full})
		}
	}
	least := 1.0
	saturated = true
	for _, c := range children {
		saturated = saturated && c.saturated
		if c.share != 0 && !c.saturated {
			least = min(least, c.share)
		}
	}
	held = amounts{}
	for _, c := range children {
		if c.share == 0 {
			continue
		}
		factor := 1.0
		if !c.saturated {
			factor = least / c.share
		}
		for name, value := range c.held {
			held[name] += value * factor
		}
	}
	return held, w.share(held), saturated
}
