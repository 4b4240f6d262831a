// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"sync"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/caldera-scheduler/caldera/internal/testing/rights"
)

// granted is what the shipped manifests allow the scheduler, with those of the optional ones that are of use here: it takes gates off pods.
var granted = sync.OnceValues(func() (rights.Rules, error) { return rights.Granted("rbac", "rbac-optional/queue-gate.yaml") })

// reading are the verbs that change nothing.
var reading = []string{"get", "list", "watch"}

// allowed reports whether a request is one that the scheduler has the right to make. It notes which rights to write are made use of.
func (w *wire) allowed(info *request.RequestInfo) bool {
	if !info.IsResourceRequest {
		// What is served where, which everybody may ask.
		return true
	}
	a := authorizer.AttributesRecord{
		Verb: info.Verb, APIGroup: info.APIGroup, Resource: info.Resource, Subresource: info.Subresource,
		Namespace: info.Namespace, Name: info.Name, ResourceRequest: true,
	}
	if !w.granted.Allow(a) {
		return false
	}
	if !slices.Contains(reading, info.Verb) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.hits[right(kindOf(info))]++
	}
	return true
}

// right names the right to make requests of a kind.
func right(kind string) string { return "the right to " + kind }

// writingRights are the rights to write that our own role gives, beside those of the roles of every API server. Each has to be of use.
func writingRights() ([]string, error) {
	rules, err := granted()
	if err != nil {
		return nil, err
	}
	var all []string
	for _, rule := range rules.Own {
		for _, verb := range rule.Verbs {
			for _, resource := range rule.Resources {
				// PodGroups of Volcano's API and of Kubernetes' own have one name.
				if name := right(verb + " " + resource); !slices.Contains(reading, verb) && !slices.Contains(all, name) {
					all = append(all, name)
				}
			}
		}
	}
	return all, nil
}
