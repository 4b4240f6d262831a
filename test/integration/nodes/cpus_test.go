// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
	nodeinfo "volcano.sh/apis/pkg/apis/nodeinfo/v1alpha1"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestGangsWaitForNumatopologies begins without their definition, as on a cluster to which the exporter comes later.
func TestGangsWaitForNumatopologies(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=8,memory=64Gi"}})
	node := onlyNode(t, e)
	start(t, e, "{name: numa-aware}")
	limits := corev1.ResourceList{"cpu": resource.MustParse("3"), "memory": resource.MustParse("1Gi")}
	gang := func(name string, size int) env.Gang {
		return env.Gang{Name: name, Min: size, Size: size, Pod: func(_ int, p *corev1.Pod) {
			p.Annotations[model.NUMAPolicyAnnotation] = "single-numa-node"
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: limits, Limits: limits}
		}}
	}
	e.Create(t, gang("two", 2))
	env.Eventually(t, 30*time.Second, e.Waits(t, "two", model.NotEnoughResources))
	define(t, e, "crds-optional/nodeinfo.volcano.sh_numatopologies.yaml")
	topology := &nodeinfo.Numatopology{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: nodeinfo.NumatopoSpec{
		Policies:   map[nodeinfo.PolicyName]string{nodeinfo.CPUManagerPolicy: "static", nodeinfo.TopologyManagerPolicy: "single-numa-node"},
		NumaResMap: map[string]nodeinfo.ResourceInfo{"cpu": {Allocatable: "0-7", Capacity: 8}},
		CPUDetail:  map[string]nodeinfo.CPUInfo{},
	}}
	for id := range 8 {
		topology.Spec.CPUDetail[fmt.Sprint(id)] = nodeinfo.CPUInfo{NUMANodeID: id / 4, SocketID: id / 4, CoreID: id}
	}
	env.Eventually(t, 30*time.Second, func() string {
		if _, err := e.Volcano.NodeinfoV1alpha1().Numatopologies().Create(t.Context(), topology, metav1.CreateOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	env.Eventually(t, 60*time.Second, e.AllBound(t, "two", 2))
	// One CPU is left on each NUMA node, and two of them are of no use to a pod that wants them together.
	limits = corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi")}
	e.Create(t, gang("one", 1))
	env.Eventually(t, 30*time.Second, e.Waits(t, "one", model.NotEnoughResources))
}

// define creates a definition of manifests.
func define(t *testing.T, e *env.Env, file string) {
	t.Helper()
	data, err := manifests.All.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(data, &definition.Object); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(e.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if _, err := definitions.Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
