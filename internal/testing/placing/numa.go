// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package placing

import (
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/cpuset"
	nodeinfo "volcano.sh/apis/pkg/apis/nodeinfo/v1alpha1"
	volcanofake "volcano.sh/apis/pkg/client/clientset/versioned/fake"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/model/informer"
)

// numa reads the Numatopology of a node.
func (w *world) numa(l *golden.Line) {
	o := &nodeinfo.Numatopology{ObjectMeta: metav1.ObjectMeta{Name: l.Word(1)}, Spec: nodeinfo.NumatopoSpec{
		Policies: map[nodeinfo.PolicyName]string{
			nodeinfo.CPUManagerPolicy: l.Text("manager", "static"), nodeinfo.TopologyManagerPolicy: l.Text("policy", ""),
		},
		ResReserved: map[string]string{"cpu": l.Text("reserved", "0")},
		CPUDetail:   map[string]nodeinfo.CPUInfo{},
	}}
	var all []int
	for i, list := range l.Split("cpus", "/") {
		cpus, err := cpuset.Parse(list)
		if err != nil {
			o.Spec.CPUDetail[list] = nodeinfo.CPUInfo{}
		}
		for _, id := range cpus.List() {
			o.Spec.CPUDetail[strconv.Itoa(id)] = nodeinfo.CPUInfo{NUMANodeID: i, SocketID: i, CoreID: id}
			all = append(all, id)
		}
	}
	free := strings.ReplaceAll(l.Text("free", cpuset.New(all...).String()), "none", "")
	o.Spec.NumaResMap = map[string]nodeinfo.ResourceInfo{"cpu": {Allocatable: free, Capacity: len(all)}}
	w.topologies = append(w.topologies, o)
}

// groups is an API server with the Numatopologies.
func (w *world) groups() *informer.Clients {
	served := []*metav1.APIResourceList{{GroupVersion: nodeinfo.SchemeGroupVersion.String()}}
	return &informer.Clients{
		Discovery: &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: served}},
		Volcano:   volcanofake.NewSimpleClientset(w.topologies...),
	}
}

// told has an element for each time that the model was told of nodes.
type told chan struct{}

// topologies hears when Numatopologies have been read. It must be called before the first write.
func topologies(state *model.State) told {
	heard := make(told, 1000)
	state.Observe(func(c model.Change) {
		if c.Events&model.NodeChanged != 0 {
			heard <- struct{}{}
		}
	})
	return heard
}

// forget forgets what was told so far.
func (t told) forget() {
	for len(t) > 0 {
		<-t
	}
}

// wait waits until something was told so many times.
func (t told) wait(times int) {
	for range times {
		<-t
	}
}
