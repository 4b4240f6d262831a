// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package nodespec_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/caldera-scheduler/caldera/cmd/localcluster/nodespec"
)

func resources(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for pair := range slices.Chunk(pairs, 2) {
		list[corev1.ResourceName(pair[0])] = resource.MustParse(pair[1])
	}
	return list
}

func TestParseFlag(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		value string
		want  nodespec.Shape
	}{
		"cpu and memory are enough; 110 pods is the kubelet's default": {
			value: "cpu=32,memory=256Gi",
			want:  nodespec.Shape{Prefix: "node", Resources: resources("cpu", "32", "memory", "256Gi", "pods", "110")},
		},
		"every field at once": {
			value: "name=gpu, count=10,cpu=500m,memory=1Gi,pods=5,ephemeral-storage=1Ti,hugepages-2Mi=4Mi,nvidia.com/gpu=8," +
				"label:zone=a,label:empty=,taint:k=v:NoSchedule,taint:bare:NoExecute",
			want: nodespec.Shape{
				Prefix: "gpu", Count: 10,
				Labels: map[string]string{"zone": "a", "empty": ""},
				Taints: []corev1.Taint{
					{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}, {Key: "bare", Effect: corev1.TaintEffectNoExecute},
				},
				Resources: resources("cpu", "500m", "memory", "1Gi", "pods", "5",
					"ephemeral-storage", "1Ti", "hugepages-2Mi", "4Mi", "nvidia.com/gpu", "8"),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := nodespec.ParseFlag(tc.value)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("shape (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestParseFlagErrorsNameFieldValueAndRemedy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		value string
		want  []string
	}{
		"no value":                 {"cpu", []string{`field "cpu"`, "key=value"}},
		"empty":                    {"", []string{`field ""`, "key=value"}},
		"bare extended resource":   {"gpu=8", []string{`resource "gpu"`, "nvidia.com/gpu"}},
		"not a quantity":           {"cpu=many,memory=1Gi", []string{"cpu=many", "256Gi"}},
		"negative quantity":        {"cpu=-1,memory=1Gi", []string{"cpu=-1", "0 or more"}},
		"fraction of a device":     {"cpu=1,memory=1Gi,nvidia.com/gpu=500m", []string{"nvidia.com/gpu=500m", "whole numbers"}},
		"resource given twice":     {"cpu=1,cpu=2,memory=1Gi", []string{"cpu=2", "twice"}},
		"no memory":                {"cpu=1", []string{"memory: missing", "memory=32Gi"}},
		"count zero":               {"count=0,cpu=1,memory=1Gi", []string{"count 0", "1 or more"}},
		"count not a number":       {"count=ten,cpu=1,memory=1Gi", []string{`count "ten"`, "whole number"}},
		"taint without effect":     {"taint:k=v,cpu=1,memory=1Gi", []string{`taint "k=v"`, "key=value:Effect"}},
		"taint of unknown effect":  {"taint:k=v:Never,cpu=1,memory=1Gi", []string{`"Never"`, "NoSchedule"}},
		"label given twice":        {"label:a=b,label:a=c,cpu=1,memory=1Gi", []string{"label a=c", `"b"`}},
		"label with a bad value":   {"label:a=b c,cpu=1,memory=1Gi", []string{`label a="b c"`}},
		"name that is not a label": {"name=Big_Node,cpu=1,memory=1Gi", []string{`name "Big_Node"`, "RFC 1123"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := nodespec.ParseFlag(tc.value)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, part := range append(tc.want, "--node") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not contain %q", err, part)
				}
			}
		})
	}
}

func TestParseFile(t *testing.T) {
	t.Parallel()
	got, err := nodespec.ParseFile("nodes.yaml", []byte(`
- count: 2
  resources: {cpu: 8, memory: 32Gi}
- name: gpu
  labels: {zone: b}
  taints: [{key: gpu, value: "true", effect: NoSchedule}]
  resources: {cpu: 0.5, memory: 1Gi, nvidia.com/gpu: 4}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []nodespec.Shape{
		{Prefix: "node", Count: 2, Resources: resources("cpu", "8", "memory", "32Gi", "pods", "110")},
		{
			Prefix: "gpu", Labels: map[string]string{"zone": "b"},
			Taints:    []corev1.Taint{{Key: "gpu", Value: "true", Effect: corev1.TaintEffectNoSchedule}},
			Resources: resources("cpu", "500m", "memory", "1Gi", "pods", "110", "nvidia.com/gpu", "4"),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shapes (-want,+got):\n%s", diff)
	}
}

func TestParseFileErrorsNameFileAndEntry(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		content string
		want    string
	}{
		"not a list":         {"count: 1", "want a YAML list"},
		"empty":              {"[]", "add entries such as"},
		"unknown field":      {"- {cpu: 8}", `unknown field "cpu"`},
		"bad second entry":   {"- {resources: {cpu: 1, memory: 1Gi}}\n- {resources: {cpu: 1}}", "entry 1: memory: missing"},
		"list as a quantity": {"- {resources: {cpu: [1], memory: 1Gi}}", "entry 0: resources.cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := nodespec.ParseFile("nodes.yaml", []byte(tc.content))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "nodes.yaml") {
				t.Errorf("error is %v, want it to contain %q and the file name", err, tc.want)
			}
		})
	}
}

func TestAssignSharesNodes(t *testing.T) {
	t.Parallel()
	open, fixed := nodespec.Shape{Prefix: "open"}, nodespec.Shape{Prefix: "fixed", Count: 7}
	for name, tc := range map[string]struct {
		shapes []nodespec.Shape
		total  int
		want   []int
		err    string
	}{
		"nothing asked for":                      {},
		"a number alone takes the default shape": {total: 3, want: []int{3}},
		"shapes alone are one node each":         {shapes: []nodespec.Shape{open, fixed, open}, want: []int{1, 7, 1}},
		"earlier shapes take the remainder":      {shapes: []nodespec.Shape{open, fixed, open, open}, total: 5, want: []int{2, 7, 2, 1}},
		"nothing to share":                       {shapes: []nodespec.Shape{fixed}, total: 5, err: "drop --nodes"},
		"fewer nodes than shapes":                {shapes: []nodespec.Shape{open, open}, total: 1, err: "raise --nodes to 2"},
		"a negative number":                      {total: -1, err: "--nodes -1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := nodespec.Assign(tc.shapes, tc.total)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error is %v, want it to contain %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var counts []int
			for _, shape := range got {
				counts = append(counts, shape.Count)
			}
			if diff := cmp.Diff(tc.want, counts); diff != "" {
				t.Errorf("counts (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestNodesAreNumberedPerPrefixAndSort(t *testing.T) {
	t.Parallel()
	shapes := []nodespec.Shape{
		{Prefix: "node", Count: 10_000}, {Prefix: "gpu", Count: 1}, {Prefix: "node", Count: 1},
	}
	nodes := nodespec.Nodes(shapes, "v1.37.1", time.Unix(0, 0))
	names, addresses := []string{}, map[string]bool{}
	for _, node := range nodes {
		if node.Name != "gpu-0000" {
			names = append(names, node.Name)
		}
		addresses[node.Status.Addresses[0].Address] = true
	}
	if !slices.IsSorted(names) || names[0] != "node-00000" || names[10_000] != "node-10000" {
		t.Errorf("names run from %s to %s, sorted: %v", names[0], names[len(names)-1], slices.IsSorted(names))
	}
	if len(addresses) != len(nodes) {
		t.Errorf("%d addresses for %d nodes", len(addresses), len(nodes))
	}
}

func TestNodeIsCompleteAndReady(t *testing.T) {
	t.Parallel()
	shape, err := nodespec.ParseFlag("cpu=8,memory=32Gi,label:zone=a,taint:k=v:NoSchedule")
	if err != nil {
		t.Fatal(err)
	}
	shape.Count = 1
	node := nodespec.Nodes([]nodespec.Shape{shape}, "v1.37.1", time.Unix(0, 0))[0]
	if diff := cmp.Diff(shape.Resources, node.Status.Allocatable); diff != "" {
		t.Errorf("allocatable (-want,+got):\n%s", diff)
	}
	wantLabels := map[string]string{
		"kubernetes.io/hostname": "node-0000", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "zone": "a",
	}
	if diff := cmp.Diff(wantLabels, node.Labels); diff != "" {
		t.Errorf("labels (-want,+got):\n%s", diff)
	}
	if diff := cmp.Diff(shape.Taints, node.Spec.Taints); diff != "" {
		t.Errorf("taints (-want,+got):\n%s", diff)
	}
	if c := node.Status.Conditions[0]; c.Type != corev1.NodeReady || c.Status != corev1.ConditionTrue {
		t.Errorf("first condition is %+v, want Ready", c)
	}
}
