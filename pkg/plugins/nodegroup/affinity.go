// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"hash/fnv"
	"maps"
	"math"
	"slices"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// allowed reports whether a queue may use a group of nodes, as Volcano reads the four lists: what is named to be preferred
// is allowed, and later lists override earlier ones. A group in no list is not allowed.
func allowed(g *model.NodeGroups, group string) bool {
	may := slices.Contains(g.Required, group) || slices.Contains(g.Preferred, group)
	may = may && !slices.Contains(g.AntiRequired, group)
	return may || slices.Contains(g.AntiPreferred, group)
}

// The points of Volcano's scores.
const (
	requiredPoints  = 100
	preferredPoints = 50
	avoidedPoints   = -1
	mostPoints      = requiredPoints + preferredPoints
)

// points is Volcano's score of a group for a queue: -1, or 0 to 150.
func points(g *model.NodeGroups, group string, ordered bool) float64 {
	if slices.Contains(g.AntiPreferred, group) {
		return avoidedPoints
	}
	sum := 0.0
	if slices.Contains(g.Required, group) {
		sum += requiredPoints
	}
	if i := slices.Index(g.Preferred, group); i >= 0 {
		part := 1.0
		if ordered {
			distinct := map[string]bool{}
			for _, name := range g.Preferred {
				distinct[name] = true
			}
			part = float64(len(distinct)-i) / float64(len(distinct))
		}
		sum += preferredPoints * part
	}
	return sum
}

// scaled maps points to 0 to 100: 0 is for groups that are to be avoided, which are worse than those without points.
func scaled(points float64) int64 {
	if points < 0 {
		return 0
	}
	return 1 + int64(math.Round(points*99/mostPoints))
}

// root is the queue above those that name none.
const root = "root"

// groupsOf are the groups of nodes that a queue names or, with inherit, those of the nearest queue above it that has an
// affinity, be it empty; nil when there is none. A circle of parents ends the search.
func groupsOf(name string, inherit bool, queue func(string) *model.Queue) *model.NodeGroups {
	seen := map[string]bool{}
	for !seen[name] {
		seen[name] = true
		q := queue(name)
		if q == nil {
			return nil
		}
		if q.NodeGroups != nil || !inherit || name == root {
			return q.NodeGroups
		}
		if name = q.Parent; name == "" {
			name = root
		}
	}
	return nil
}

// digest numbers what a queue says about groups: equal numbers for the same.
func digest(groups *model.NodeGroups) int64 {
	if groups == nil {
		return 0
	}
	h := fnv.New64a()
	for _, list := range [][]string{groups.Required, groups.Preferred, groups.AntiRequired, groups.AntiPreferred} {
		for _, name := range list {
			h.Write([]byte(name + "\x00"))
		}
		h.Write([]byte{1})
	}
	return int64(h.Sum64() | 1)
}

// clone copies what is in use by group.
func clone[V interface{ Clone() V }](m map[string]V) map[string]V {
	c := maps.Clone(m)
	for k, v := range c {
		c[k] = v.Clone()
	}
	return c
}
