// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakes has clients of an API in memory that answer within the call. They are client-go's fakes, with nothing of their own behind them, and compile for
// as long as much of Kubernetes' clients: who asks the API's server, as any client does, needs none of them.
package fakes

import (
	native "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/testing"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	coschedulingfake "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned/fake"
	nodeinfo "volcano.sh/apis/pkg/apis/nodeinfo/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	topology "volcano.sh/apis/pkg/apis/topology/v1alpha1"
	volcanofake "volcano.sh/apis/pkg/client/clientset/versioned/fake"

	"github.com/caldera-scheduler/caldera/pkg/model/informer"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
)

// Kube returns a client of an API.
func Kube(a *memory.API) kubernetes.Interface {
	c := &kubefake.Clientset{}
	a.Serve(&c.Fake)
	return c
}

// Groups returns clients of the group APIs, all of which are served.
func Groups(a *memory.API) informer.Clients {
	groups, coschedulingGroups := &volcanofake.Clientset{}, &coschedulingfake.Clientset{}
	a.Serve(&groups.Fake)
	a.Serve(&coschedulingGroups.Fake)
	return informer.Clients{
		Discovery: &fakediscovery.FakeDiscovery{Fake: &testing.Fake{Resources: []*metav1.APIResourceList{
			{GroupVersion: volcano.SchemeGroupVersion.String()},
			{GroupVersion: coscheduling.SchemeGroupVersion.String()},
			{GroupVersion: native.SchemeGroupVersion.String()},
			{GroupVersion: topology.SchemeGroupVersion.String()},
			{GroupVersion: nodeinfo.SchemeGroupVersion.String()},
		}}},
		Volcano:      groups,
		Coscheduling: coschedulingGroups,
		Kube:         Kube(a),
	}
}
