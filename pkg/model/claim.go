// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Claim is a ResourceClaim, or a template of ResourceClaims. Pods hold devices by claims. Claims are immutable.
type Claim struct {
	Namespace, Name string
	// Template: a claim of its own is made by it for each pod that names it.
	Template bool
	// Pod is the UID of the pod for which the claim was made. It is empty for a claim that pods may share.
	Pod types.UID
	// Devices are those that it has or, as long as it has none, those that it asks for.
	Devices resource.Vector
}

type claimKey struct {
	namespace, name string
	template        bool
}

// compare orders keys in a namespace.
func (k claimKey) compare(o claimKey) int {
	if k.template != o.template {
		if k.template {
			return 1
		}
		return -1
	}
	return cmp.Compare(k.name, o.name)
}

// claims are the resource claims and their templates, and the tasks that name them.
type claims struct {
	known map[claimKey]*Claim
	// users are the tasks that name a claim, of are the claims that a task names.
	users map[claimKey]map[types.UID]bool
	of    map[types.UID][]claimKey
}

func newClaims() claims {
	return claims{known: map[claimKey]*Claim{}, users: map[claimKey]map[types.UID]bool{}, of: map[types.UID][]claimKey{}}
}

// ClaimsOf returns the names of a pod's claims. A claim that is made for the pod has no name before it is made.
func ClaimsOf(pod *corev1.Pod) []string {
	var names []string
	for i := range pod.Spec.ResourceClaims {
		if name := claimNamed(pod, &pod.Spec.ResourceClaims[i]); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// claimNamed is the name of a claim of a pod; empty while one is to be made for it, or need not be.
func claimNamed(pod *corev1.Pod, c *corev1.PodResourceClaim) string {
	if c.ResourceClaimName != nil {
		return *c.ResourceClaimName
	}
	for _, made := range pod.Status.ResourceClaimStatuses {
		if made.Name == c.Name && made.ResourceClaimName != nil {
			return *made.ResourceClaimName
		}
	}
	return ""
}

// keysOf are the claims and templates that a task names, each once.
func keysOf(t *Task) []claimKey {
	if t.Traits&HasClaims == 0 {
		return nil
	}
	var keys []claimKey
	for i := range t.Pod.Spec.ResourceClaims {
		c := &t.Pod.Spec.ResourceClaims[i]
		if name := claimNamed(t.Pod, c); name != "" {
			keys = append(keys, claimKey{namespace: t.Pod.Namespace, name: name})
		}
		if c.ResourceClaimTemplateName != nil {
			keys = append(keys, claimKey{namespace: t.Pod.Namespace, name: *c.ResourceClaimTemplateName, template: true})
		}
	}
	slices.SortFunc(keys, claimKey.compare)
	return slices.Compact(keys)
}

// follow takes note of the claims that a task names. A finished pod names none any more.
func (c *claims) follow(t *Task) {
	keys := keysOf(t)
	if slices.Equal(keys, c.of[t.UID]) {
		return
	}
	c.forget(t.UID)
	for _, key := range keys {
		if c.users[key] == nil {
			c.users[key] = map[types.UID]bool{}
		}
		c.users[key][t.UID] = true
	}
	if len(keys) > 0 {
		c.of[t.UID] = keys
	}
}

// forget undoes follow.
func (c *claims) forget(task types.UID) {
	for _, key := range c.of[task] {
		if delete(c.users[key], task); len(c.users[key]) == 0 {
			delete(c.users, key)
		}
	}
	delete(c.of, task)
}

// charge returns what the queue of a task is charged with. A claim counts nothing as long as neither it nor its template is known. Its pod
// cannot be scheduled before.
func (c *claims) charge(t *Task) resource.Vector {
	if t.Traits&HasClaims == 0 {
		return t.Request
	}
	charge := t.Request.Clone()
	var counted []string
	for i := range t.Pod.Spec.ResourceClaims {
		of := &t.Pod.Spec.ResourceClaims[i]
		name := claimNamed(t.Pod, of)
		claim := c.known[claimKey{namespace: t.Pod.Namespace, name: name}]
		if claim == nil && of.ResourceClaimTemplateName != nil {
			claim = c.known[claimKey{namespace: t.Pod.Namespace, name: *of.ResourceClaimTemplateName, template: true}]
		}
		switch {
		case claim == nil, !claim.Template && slices.Contains(counted, name):
			continue
		case claim.Template, claim.Pod == t.UID:
			charge.Add(claim.Devices)
		default:
			charge.Add(claim.Devices.Shared(claim.Namespace + "/" + claim.Name))
		}
		counted = append(counted, name)
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

// UpsertClaim records a resource claim, or a template.
func (s *State) UpsertClaim(claim *Claim) Change {
	return s.write(func(c *Change) {
		key := claimKey{claim.Namespace, claim.Name, claim.Template}
		s.claims.known[key] = claim
		s.recharge(key, c)
	})
}

// DeleteClaim forgets a resource claim, or a template.
func (s *State) DeleteClaim(namespace, name string, template bool) Change {
	return s.write(func(c *Change) {
		key := claimKey{namespace, name, template}
		delete(s.claims.known, key)
		s.recharge(key, c)
	})
}

// recharge brings the tasks that name a claim up to date with it.
func (s *State) recharge(key claimKey, c *Change) {
	if !key.template {
		c.Events |= DevicesChanged
	}
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
