// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	coschedulingv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcanov1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

func TestDefinitionsAreWhatUsersKnow(t *testing.T) {
	cases := map[string]struct {
		file       string
		scope      apiextensionsv1.ResourceScope
		shortNames []string
		// columns of kubectl get; those in brackets are of -o wide.
		columns []string
	}{
		"podgroups.scheduling.volcano.sh": {
			file:       "crds/scheduling.volcano.sh_podgroups.yaml",
			scope:      apiextensionsv1.NamespaceScoped,
			shortNames: []string{"pg", "podgroup-v1beta1"},
			columns:    []string{"STATUS", "minMember", "RUNNINGS", "AGE", "[QUEUE]"},
		},
		"queues.scheduling.volcano.sh": {
			file:       "crds/scheduling.volcano.sh_queues.yaml",
			scope:      apiextensionsv1.ClusterScoped,
			shortNames: []string{"q", "queue-v1beta1"},
			columns:    []string{"PARENT", "WEIGHT", "STATE", "AGE", "[RECLAIMABLE]"},
		},
		"hypernodes.topology.volcano.sh": {
			file:       "crds-optional/topology.volcano.sh_hypernodes.yaml",
			scope:      apiextensionsv1.ClusterScoped,
			shortNames: []string{"hn"},
			columns:    []string{"Tier", "TierName", "NodeCount", "Age"},
		},
		"numatopologies.nodeinfo.volcano.sh": {
			file:       "crds-optional/nodeinfo.volcano.sh_numatopologies.yaml",
			scope:      apiextensionsv1.ClusterScoped,
			shortNames: []string{"numatopo"},
		},
		"podgroups.scheduling.x-k8s.io": {
			file:       "crds-optional/scheduling.x-k8s.io_podgroups.yaml",
			scope:      apiextensionsv1.NamespaceScoped,
			shortNames: []string{"pg", "pgs"},
			columns:    []string{"Phase", "MinMember", "Running", "Succeeded", "Failed", "Age"},
		},
	}
	if got := len(files(t, "crds")) + len(files(t, "crds-optional")); got != len(cases) {
		t.Errorf("%d files of definitions, %d cases", got, len(cases))
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			crd := loadCRD(t, tc.file)
			if crd.Name != name || crd.Spec.Scope != tc.scope || !slices.Equal(crd.Spec.Names.ShortNames, tc.shortNames) {
				t.Errorf("got %s, %s, %q", crd.Name, crd.Spec.Scope, crd.Spec.Names.ShortNames)
			}
			if len(crd.Spec.Versions) != 1 {
				t.Fatalf("got %d versions, want 1", len(crd.Spec.Versions))
			}
			version := crd.Spec.Versions[0]
			if version.Subresources == nil || version.Subresources.Status == nil {
				t.Error("no status subresource")
			}
			if got := columnNames(version.AdditionalPrinterColumns); !slices.Equal(got, tc.columns) {
				t.Errorf("got columns %q, want %q", got, tc.columns)
			}
			if errs := crdvalidation.ValidateCustomResourceDefinition(t.Context(), internal(t, crd)); len(errs) > 0 {
				t.Errorf("the API server would refuse the definition: %v", errs)
			}
		})
	}
}

// What Volcano's users and controllers send is accepted: a mistake in it is reported on the object.
func TestSchemasAcceptWhatClientsSend(t *testing.T) {
	const (
		podGroups   = "crds/scheduling.volcano.sh_podgroups.yaml"
		queues      = "crds/scheduling.volcano.sh_queues.yaml"
		labelGroups = "crds-optional/scheduling.x-k8s.io_podgroups.yaml"
	)
	podGroup := func(change func(*volcanov1beta1.PodGroup)) any {
		pg := &volcanov1beta1.PodGroup{Spec: volcanov1beta1.PodGroupSpec{MinMember: 1, Queue: "default"}}
		change(pg)
		return pg
	}
	queue := func(change func(*volcanov1beta1.Queue)) any {
		q := &volcanov1beta1.Queue{Spec: volcanov1beta1.QueueSpec{Weight: 1}}
		change(q)
		return q
	}
	cases := map[string]struct {
		file   string
		object any
		// want is part of the refusal; empty: accepted.
		want string
	}{
		"a PodGroup without any field set": {
			file: podGroups, object: &volcanov1beta1.PodGroup{},
		},
		"a PodGroup whose minimum is negative": {
			file: podGroups, object: podGroup(func(pg *volcanov1beta1.PodGroup) { pg.Spec.MinMember = -1 }),
		},
		"a PodGroup whose role minimum is negative": {
			file: podGroups, object: podGroup(func(pg *volcanov1beta1.PodGroup) { pg.Spec.MinTaskMember = map[string]int32{"worker": -1} }),
		},
		"a PodGroup with extended resources": {
			file: podGroups, object: podGroup(func(pg *volcanov1beta1.PodGroup) {
				pg.Spec.MinResources = &corev1.ResourceList{"nvidia.com/gpu": {}, corev1.ResourceCPU: {}}
			}),
		},
		"a PodGroup condition without a time": {
			file: podGroups, object: podGroup(func(pg *volcanov1beta1.PodGroup) {
				pg.Status.Conditions = []volcanov1beta1.PodGroupCondition{{Type: volcanov1beta1.PodGroupScheduled, Status: corev1.ConditionTrue}}
			}),
		},
		"a PodGroup phase nobody knows": {
			file: podGroups, object: podGroup(func(pg *volcanov1beta1.PodGroup) { pg.Status.Phase = "Waiting" }),
			want: "status.phase: Unsupported value",
		},
		"a Queue without any field set": {
			file: queues, object: &volcanov1beta1.Queue{},
		},
		"a Queue with a parent, limits and a state": {
			file: queues, object: queue(func(q *volcanov1beta1.Queue) {
				q.Spec.Parent = "root"
				q.Spec.Capability = corev1.ResourceList{"nvidia.com/gpu": {}}
				q.Status.State = volcanov1beta1.QueueStateOpen
			}),
		},
		"a Queue whose weight is out of the range of the type": {
			file: queues, object: queue(func(q *volcanov1beta1.Queue) { q.Spec.Weight = 65536 }),
			want: "spec.weight: Invalid value: 65536",
		},
		"a label PodGroup that has not started": {
			file: labelGroups, object: &coschedulingv1alpha1.PodGroup{Spec: coschedulingv1alpha1.PodGroupSpec{MinMember: 2}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			schema := internal(t, loadCRD(t, tc.file)).Spec.Validation.OpenAPIV3Schema
			validator, _, err := validation.NewSchemaValidator(schema)
			if err != nil {
				t.Fatal(err)
			}
			errs := validation.ValidateCustomResource(nil, asJSON(t, tc.object), validator)
			got := ""
			if len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got refusal %q, want %q", got, tc.want)
			}
		})
	}
}

func loadCRD(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crds := only[*apiextensionsv1.CustomResourceDefinition](loadObjects(t, name))
	if len(crds) != 1 {
		t.Fatalf("%s has %d definitions, want 1", name, len(crds))
	}
	return crds[0]
}

// internal converts a definition as the API server does when it receives one.
func internal(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *apiextensions.CustomResourceDefinition {
	t.Helper()
	received := crd.DeepCopy()
	apiextensionsv1.SetDefaults_CustomResourceDefinition(received)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&received.Spec)
	received.Status.StoredVersions = []string{crd.Spec.Versions[0].Name}
	var converted apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(received, &converted, nil); err != nil {
		t.Fatal(err)
	}
	return &converted
}

func columnNames(columns []apiextensionsv1.CustomResourceColumnDefinition) []string {
	var names []string
	for _, column := range columns {
		if column.Priority > 0 {
			column.Name = "[" + column.Name + "]"
		}
		names = append(names, column.Name)
	}
	return names
}

// asJSON is what a Go client sends.
func asJSON(t *testing.T, object any) map[string]any {
	t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var sent map[string]any
	if err := json.Unmarshal(data, &sent); err != nil {
		t.Fatal(err)
	}
	delete(sent, "metadata") // Checked apart from the schema.
	return sent
}
