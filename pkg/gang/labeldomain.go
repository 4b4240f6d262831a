// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// mostLabelDomains is in how many sets of nodes with one value of a label evictions are tried; as many as Volcano's gang actions try
// HyperNodes by default (maxDomains).
const mostLabelDomains = 8

// labelDomains returns a set of nodes for each value of the label that a job's topology constraint names (KEP-5732). The smallest that has
// places for all of the job comes first, so that large sets stay whole. A job that has tasks on nodes stays with the value of these.
func labelDomains(job *model.Job, nodes []fwk.NodeInfo) (domains []Domain, refusal string) {
	key := job.Group.TopologyKey
	all, here := byValue(key, job, nodes)
	switch {
	case len(here) > 1:
		return nil, fmt.Sprintf("its pods are to have one value of the node label %s in common, and those on nodes have %s: restart the job",
			key, strings.Join(here, ", "))
	case len(all) == 0:
		return nil, fmt.Sprintf("its pods are to have one value of the node label %s in common, and no node has that label", key)
	case len(here) == 1:
		all = map[string]*labelled{here[0]: all[here[0]]}
	}
	need := job.Requirement().Tasks
	for _, value := range slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(all[a].compare(all[b], need), cmp.Compare(a, b)) }) {
		l := all[value]
		domains = append(domains, Domain{Kind: TopologyDomain, Name: key + "=" + value, Nodes: l.nodes, Short: l.places < need})
	}
	return domains, ""
}

// labelled are the nodes with one value of a label.
type labelled struct {
	nodes []string
	// rooms is how many tasks there is room for, by their kind; idle is the sum. Places is how many of those that wait find room at most.
	rooms        []int
	idle, places int
}

// byValue sorts nodes by the value of a label, and tells which values those have that hold tasks of a job.
func byValue(key string, job *model.Job, nodes []fwk.NodeInfo) (all map[string]*labelled, here []string) {
	all, on, values := map[string]*labelled{}, sets.New(job.Nodes()...), sets.New[string]()
	for _, info := range nodes {
		n := info.Node()
		value, ok := n.Labels[key]
		if !ok {
			continue
		}
		if all[value] == nil {
			all[value] = &labelled{rooms: make([]int, len(job.Pending))}
		}
		l := all[value]
		l.nodes = append(l.nodes, n.Name)
		for i := range job.Pending {
			places := room(info, job.Pending[i].Request)
			l.rooms[i] += places
			l.idle += places
		}
		if on.Has(n.Name) {
			values.Insert(value)
		}
	}
	for _, l := range all {
		for i := range job.Pending {
			l.places += min(job.Pending[i].Count, l.rooms[i])
		}
	}
	return all, sets.List(values)
}

// compare is the order in which they are tried: of those with places for all that is needed the one with the least room first, of the
// others the one with the most places.
func (l *labelled) compare(o *labelled, need int) int {
	switch x, y := l.places >= need, o.places >= need; {
	case x && y:
		return cmp.Compare(l.idle, o.idle)
	case !x && !y:
		return cmp.Compare(o.places, l.places)
	case x:
		return -1
	}
	return 1
}
