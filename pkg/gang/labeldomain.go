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
	in, places, here := map[string][]string{}, map[string]int{}, map[string]bool{}
	on := sets.New(job.Nodes()...)
	for _, info := range nodes {
		n := info.Node()
		value, ok := n.Labels[key]
		if !ok {
			continue
		}
		in[value] = append(in[value], n.Name)
		places[value] += placesFor(job, info)
		if on.Has(n.Name) {
			here[value] = true
		}
	}
	values := slices.Sorted(maps.Keys(in))
	switch len(here) {
	case 0:
	case 1:
		values = slices.Collect(maps.Keys(here))
	default:
		return nil, fmt.Sprintf("its pods are to have one value of the node label %s in common, and those on nodes have %s: restart the job",
			key, strings.Join(slices.Sorted(maps.Keys(here)), ", "))
	}
	if len(values) == 0 {
		return nil, fmt.Sprintf("its pods are to have one value of the node label %s in common, and no node has that label", key)
	}
	need := job.Requirement().Tasks
	slices.SortStableFunc(values, func(a, b string) int {
		if enough := places[a] >= need; enough != (places[b] >= need) {
			if enough {
				return -1
			}
			return 1
		}
		return cmp.Compare(places[a], places[b])
	})
	for _, value := range values {
		domains = append(domains, Domain{Kind: TopologyDomain, Name: key + "=" + value, Nodes: in[value]})
	}
	return domains, ""
}

// placesFor is how many tasks like the largest number of a job's that are alike a node has room for.
func placesFor(job *model.Job, info fwk.NodeInfo) int {
	if len(job.Pending) == 0 {
		return 0
	}
	most := slices.MaxFunc(job.Pending, func(a, b model.Demand) int { return cmp.Compare(a.Count, b.Count) })
	return room(info, most.Request)
}
