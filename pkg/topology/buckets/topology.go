// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package buckets groups the tasks of a job into buckets, by which of its roles want to be near each other, and says how
// well a node suits a task of a bucket. Source: Volcano's plugin task-topology (pkg/scheduler/plugins/task-topology).
package buckets

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// The annotations of a PodGroup. In the first two, groups of roles are separated by semicolons, and the roles of a group by
// commas; a group of one role is about tasks of that role among each other. The third is a list with commas.
const (
	AffinityAnnotation     = "volcano.sh/task-topology-affinity"
	AntiAffinityAnnotation = "volcano.sh/task-topology-anti-affinity"
	TaskOrderAnnotation    = "volcano.sh/task-topology-task-order"
)

// The ranks of the rules that a role can have: the highest of its rules decides how early its tasks choose a bucket.
const (
	interAntiAffinity = iota + 1
	selfAffinity
	interAffinity
	selfAntiAffinity
)

// pair is two roles, which may be the same.
type pair struct{ a, b string }

// topology is what the annotations of a job say about its roles.
type topology struct {
	// near are the pairs with affinity, apart those with anti-affinity, in both directions.
	near, apart map[pair]bool
	// order is greater for roles that come first; 0 for those that are not listed.
	order map[string]int
	// rank is that of the highest rule of a role; roles without one are not part of the topology.
	rank map[string]int
}

// parse reads annotations. It returns nil when they say nothing, and an error that tells what to change.
func parse(annotations map[string]string, roles sets.Set[string]) (*topology, error) {
	t := &topology{near: map[pair]bool{}, apart: map[pair]bool{}, order: map[string]int{}, rank: map[string]int{}}
	if err := t.relate(annotations, AffinityAnnotation, roles, t.near, selfAffinity, interAffinity); err != nil {
		return nil, err
	}
	if err := t.relate(annotations, AntiAffinityAnnotation, roles, t.apart, selfAntiAffinity, interAntiAffinity); err != nil {
		return nil, err
	}
	order, err := group(annotations[TaskOrderAnnotation], TaskOrderAnnotation, roles)
	if err != nil {
		return nil, err
	}
	for i, role := range order {
		t.order[role] = len(order) - i
	}
	if len(t.rank) == 0 {
		return nil, nil
	}
	return t, nil
}

// relate reads one annotation with groups into a relation.
func (t *topology) relate(annotations map[string]string, key string, roles sets.Set[string], relation map[pair]bool, self, inter int) error {
	for text := range strings.SplitSeq(annotations[key], ";") {
		members, err := group(text, key, roles)
		if err != nil {
			return err
		}
		if len(members) == 1 {
			role := members[0]
			relation[pair{role, role}] = true
			t.rank[role] = max(t.rank[role], self)
			continue
		}
		for _, a := range members {
			t.rank[a] = max(t.rank[a], inter)
			for _, b := range members {
				if a != b {
					relation[pair{a, b}] = true
				}
			}
		}
	}
	return nil
}

// group reads the roles of a list with commas. Blanks around them and empty ones do not count.
func group(text, key string, roles sets.Set[string]) ([]string, error) {
	var members []string
	seen := sets.New[string]()
	for role := range strings.SplitSeq(text, ",") {
		role = strings.TrimSpace(role)
		switch {
		case role == "":
			continue
		case !roles.Has(role):
			return nil, fmt.Errorf("annotation %s names task %q, which the job does not have: write one of %s; it has no effect until then",
				key, role, strings.Join(sets.List(roles), ", "))
		case seen.Has(role):
			return nil, fmt.Errorf("annotation %s names task %q twice in one group: remove one; it has no effect until then", key, role)
		}
		seen.Insert(role)
		members = append(members, role)
	}
	return members, nil
}

// compareRoles puts roles first that are listed first, then those with the higher rank.
func (t *topology) compareRoles(a, b string) int {
	return cmp.Or(-cmp.Compare(t.order[a], t.order[b]), -cmp.Compare(t.rank[a], t.rank[b]))
}

// attraction is how much a task of a role is drawn to tasks of other roles, given by their numbers.
func (t *topology) attraction(role string, others map[string]int) int {
	sum := 0
	for other, n := range others {
		if t.near[pair{role, other}] {
			sum += n
		}
	}
	return sum - t.repulsion(role, others)
}

// repulsion counts the tasks of other roles that a task of a role is to be apart from.
func (t *topology) repulsion(role string, others map[string]int) int {
	sum := 0
	for other, n := range others {
		if t.apart[pair{role, other}] {
			sum += n
		}
	}
	return sum
}

// rolesOf are the roles that a job has by its pods or its minimums.
func rolesOf(job *model.Job) sets.Set[string] {
	roles := sets.New[string]()
	for _, r := range job.Roles {
		roles.Insert(r.Role)
	}
	if job.Group != nil {
		roles = roles.Union(sets.KeySet(job.Group.MinTaskMember))
	}
	return roles.Delete("")
}
