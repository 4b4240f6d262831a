// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/caldera-scheduler/caldera/internal/testing/rights"
)

const systemNamespace = "caldera-system"

func TestSchedulerMayDoItsWorkAndNoMore(t *testing.T) {
	rules := granted(t, "rbac", "visibility/roles.yaml")
	cases := map[string]struct {
		// verbs, space-separated, on resource[/subresource][.group][ name].
		verbs, on string
		namespace string
		refused   bool
	}{
		"reads PodGroups": {verbs: "get list watch", on: "podgroups.scheduling.volcano.sh", namespace: "team"},
		"writes the status of PodGroups that have it in the object": {verbs: "patch", on: "podgroups.scheduling.volcano.sh", namespace: "team"},
		"writes PodGroup status":                                    {verbs: "patch", on: "podgroups/status.scheduling.volcano.sh", namespace: "team"},
		"replaces no PodGroup status":                               {verbs: "update", on: "podgroups/status.scheduling.volcano.sh", namespace: "team", refused: true},
		"makes, replaces and ends no PodGroups":                     {verbs: "create update delete", on: "podgroups.scheduling.volcano.sh", namespace: "team", refused: true},
		"reads Queues":                                              {verbs: "get list watch", on: "queues.scheduling.volcano.sh"},
		"creates the queues root and default":                       {verbs: "create", on: "queues.scheduling.volcano.sh"},
		"writes Queue status":                                       {verbs: "patch", on: "queues/status.scheduling.volcano.sh"},
		"replaces no Queue status":                                  {verbs: "update", on: "queues/status.scheduling.volcano.sh", refused: true},
		"changes and deletes no Queues":                             {verbs: "update patch delete", on: "queues.scheduling.volcano.sh", refused: true},
		"reads label PodGroups":                                     {verbs: "get list watch", on: "podgroups.scheduling.x-k8s.io", namespace: "team"},
		"writes label PodGroup status":                              {verbs: "patch", on: "podgroups/status.scheduling.x-k8s.io", namespace: "team"},
		"replaces no label PodGroup status":                         {verbs: "update", on: "podgroups/status.scheduling.x-k8s.io", namespace: "team", refused: true},
		"reads pods":                                                {verbs: "get list watch", on: "pods", namespace: "team"},
		"binds pods":                                                {verbs: "create", on: "pods/binding", namespace: "team"},
		"writes pod status":                                         {verbs: "update patch", on: "pods/status", namespace: "team"},
		"changes no pods":                                           {verbs: "update patch", on: "pods", namespace: "team", refused: true},
		"deletes pods":                                              {verbs: "delete", on: "pods", namespace: "team"},
		"evicts pods":                                               {verbs: "create", on: "pods/eviction", namespace: "team"},
		"creates no pods":                                           {verbs: "create", on: "pods", namespace: "team", refused: true},
		"reads nodes":                                               {verbs: "get list watch", on: "nodes"},
		"changes no nodes":                                          {verbs: "update patch delete", on: "nodes", refused: true},
		"reads the load of nodes":                                   {verbs: "get", on: "nodes/node_cpu_usage_avg.custom.metrics.k8s.io *"},
		"reads how full nodes are":                                  {verbs: "get", on: "nodes/node_memory_usage_avg.custom.metrics.k8s.io *"},
		"reads HyperNodes":                                          {verbs: "get list watch", on: "hypernodes.topology.volcano.sh"},
		"reads NUMA topologies":                                     {verbs: "get list watch", on: "numatopologies.nodeinfo.volcano.sh"},
		"reads namespaces":                                          {verbs: "get list watch", on: "namespaces"},
		"reads priority classes":                                    {verbs: "get list watch", on: "priorityclasses.scheduling.k8s.io"},
		"reads disruption budgets":                                  {verbs: "get list watch", on: "poddisruptionbudgets.policy", namespace: "team"},
		"reads resource quotas":                                     {verbs: "get list watch", on: "resourcequotas", namespace: "team"},
		"writes core events":                                        {verbs: "create patch update", on: "events", namespace: "team"},
		"writes events":                                             {verbs: "create patch update", on: "events.events.k8s.io", namespace: "team"},
		"binds volumes":                                             {verbs: "get list watch update patch", on: "persistentvolumes"},
		"binds volume claims":                                       {verbs: "get list watch update patch", on: "persistentvolumeclaims", namespace: "team"},
		"allocates resource claims":                                 {verbs: "get list watch update patch", on: "resourceclaims/status.resource.k8s.io", namespace: "team"},
		"says where views are":                                      {verbs: "get patch", on: "endpointslices.discovery.k8s.io caldera-visibility", namespace: systemNamespace},
		"says nothing of other Services":                            {verbs: "get patch update delete", on: "endpointslices.discovery.k8s.io other", namespace: systemNamespace, refused: true},
		"says by which certificate views are known":                 {verbs: "get patch", on: "apiservices.apiregistration.k8s.io v1alpha1.visibility.caldera.dev"},
		"changes no other APIService":                               {verbs: "patch update delete", on: "apiservices.apiregistration.k8s.io v1.apps", refused: true},
		"keeps its ledger":                                          {verbs: "get patch", on: "configmaps caldera-ledger-7", namespace: systemNamespace},
		"reads no other ConfigMaps":                                 {verbs: "get patch update delete", on: "configmaps caldera-scheduler-config", namespace: systemNamespace, refused: true},
		"creates its lease":                                         {verbs: "create", on: "leases.coordination.k8s.io", namespace: systemNamespace},
		"renews its lease":                                          {verbs: "get update", on: "leases.coordination.k8s.io caldera-scheduler", namespace: systemNamespace},
		"leaves other leases alone":                                 {verbs: "get update", on: "leases.coordination.k8s.io other", namespace: systemNamespace, refused: true},
		"reads how clients authenticate":                            {verbs: "get list watch", on: "configmaps extension-apiserver-authentication", namespace: "kube-system"},
		"reviews tokens":                                            {verbs: "create", on: "tokenreviews.authentication.k8s.io"},
		"reviews access":                                            {verbs: "create", on: "subjectaccessreviews.authorization.k8s.io"},
		"reads no secrets":                                          {verbs: "get list watch", on: "secrets", namespace: "team", refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for verb := range strings.FieldsSeq(tc.verbs) {
				if got := rules.Allow(attributes(verb, tc.on, tc.namespace)); got == tc.refused {
					t.Errorf("%s %s: allowed is %t", verb, tc.on, got)
				}
			}
		})
	}
}

// TestMoreMayBeChangedWithOptionalRoles: which cards a pod has is written with one, the queue's gate taken off with another, and what queues have held
// is written with the third.
func TestMoreMayBeChangedWithOptionalRoles(t *testing.T) {
	rules := granted(t, "rbac", "rbac-optional")
	for on, namespace := range map[string]string{"pods": "team", "queues.scheduling.volcano.sh": ""} {
		if !rules.Allow(attributes("patch", on, namespace)) {
			t.Errorf("patch %s is refused", on)
		}
		if rules.Allow(attributes("update", on, namespace)) {
			t.Errorf("update %s is allowed", on)
		}
	}
	if rules.Allow(attributes("create", "pods", "team")) || rules.Allow(attributes("delete", "queues.scheduling.volcano.sh", "")) {
		t.Error("pods may be created, or queues deleted")
	}
}

func granted(t *testing.T, dirs ...string) rights.Rules {
	t.Helper()
	rules, err := rights.Granted(dirs...)
	if err != nil {
		t.Fatal(err)
	}
	return rules
}

func attributes(verb, on, namespace string) authorizer.Attributes {
	on, name, _ := strings.Cut(on, " ")
	resource, group, _ := strings.Cut(on, ".")
	resource, subresource, _ := strings.Cut(resource, "/")
	return authorizer.AttributesRecord{
		Verb: verb, APIGroup: group, Resource: resource, Subresource: subresource,
		Namespace: namespace, Name: name, ResourceRequest: true,
	}
}
