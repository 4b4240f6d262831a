// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Claim is a ResourceClaim, by which pods hold devices. Claims are immutable.
type Claim struct {
	Namespace, Name string
	// Pod is the UID of the pod for which it was made from a template. It is empty for a claim that pods may share.
	Pod types.UID
	// Devices are those that it has or, as long as it has none, those that it asks for.
	Devices resource.Vector
}

type claimKey struct{ namespace, name string }

// claims are the resource claims, and the tasks that name them.
type claims struct {
	known map[claimKey]*Claim
	users map[claimKey]map[types.UID]bool
}

func newClaims() claims {
	return claims{known: map[claimKey]*Claim{}, users: map[claimKey]map[types.UID]bool{}}
}

// ClaimsOf returns the names of the claims of a pod, as far as they are known: those that are made for it have one once they are made.
func ClaimsOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.ResourceClaims {
		switch c := &pod.Spec.ResourceClaims[i]; {
		case c.ResourceClaimName != nil:
			names = append(names, *c.ResourceClaimName)
		default:
			for _, made := range pod.Status.ResourceClaimStatuses {
				if made.Name == c.Name && made.ResourceClaimName != nil {
					names = append(names, *made.ResourceClaimName)
				}
			}
		}
	}
	return names
}

// follow takes note of the claims that a task names.
func (c *claims) follow(t *Task) {
	if t.Traits&HasClaims == 0 {
		return
	}
	for _, name := range ClaimsOf(t.Pod) {
		key := claimKey{t.Pod.Namespace, name}
		if c.users[key] == nil {
			c.users[key] = map[types.UID]bool{}
		}
		c.users[key][t.UID] = true
	}
}

// forget undoes follow.
func (c *claims) forget(t *Task) {
	if t.Traits&HasClaims == 0 {
		return
	}
	for _, name := range ClaimsOf(t.Pod) {
		key := claimKey{t.Pod.Namespace, name}
		if delete(c.users[key], t.UID); len(c.users[key]) == 0 {
			delete(c.users, key)
		}
	}
}

// charge returns what the queue of a task is charged with. A claim that is not known counts nothing: its pod cannot be scheduled yet.
func (c *claims) charge(t *Task) resource.Vector {
	if t.Traits&HasClaims == 0 {
		return t.Request
	}
	charge := t.Request.Clone()
	names := ClaimsOf(t.Pod)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		claim := c.known[claimKey{t.Pod.Namespace, name}]
		switch {
		case claim == nil:
		case claim.Pod == t.UID:
			charge.Add(claim.Devices)
		default:
			charge.Add(claim.Devices.Shared(claim.Namespace + "/" + claim.Name))
		}
	}
	return charge
}

// charged returns the task with what its queue is charged with by the claims that are known.
func (c *claims) charged(t *Task) *Task {
	charge := c.charge(t)
	if charge.Equal(t.Charge) {
		return t
	}
	after := *t
	after.Charge, after.BestEffort = charge, charge.BestEffort()
	return &after
}

// UpsertClaim records a resource claim.
func (s *State) UpsertClaim(claim *Claim) Change {
	return s.write(func(c *Change) {
		key := claimKey{claim.Namespace, claim.Name}
		s.claims.known[key] = claim
		s.recharge(key, c)
	})
}

// DeleteClaim forgets a resource claim.
func (s *State) DeleteClaim(namespace, name string) Change {
	return s.write(func(c *Change) {
		key := claimKey{namespace, name}
		delete(s.claims.known, key)
		s.recharge(key, c)
	})
}

// recharge brings the tasks that name a claim up to date with it.
func (s *State) recharge(key claimKey, c *Change) {
	c.Events |= DevicesChanged
	users := make([]types.UID, 0, len(s.claims.users[key]))
	for uid := range s.claims.users[key] {
		users = append(users, uid)
	}
	slices.Sort(users)
	for _, uid := range users {
		t := s.task(uid)
		if after := s.claims.charged(t); after != t {
			s.putTask(after, c)
		}
	}
}
