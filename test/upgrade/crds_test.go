// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// definitions reads the definitions of a version, by the names of their files.
func definitions(t *testing.T, v *version) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, pattern := range []string{"crds/*.yaml", "crds-optional/*.yaml"} {
		names, err := fs.Glob(v.manifests, pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			data, err := fs.ReadFile(v.manifests, name)
			if err != nil {
				t.Fatal(err)
			}
			all[name] = &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.UnmarshalStrict(data, all[name]); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	return all
}

// TestObjectsOutliveNewDefinitions has an object of each kind, with every field that its definition knew before. The new definitions take the place of the old ones: the object
// is still there as it was, and can be written.
func TestObjectsOutliveNewDefinitions(t *testing.T) { //nolint:tparallel // The last part spoils a definition, once the others are done.
	t.Parallel()
	old := from(t)
	current, err := present(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	before, after := definitions(t, old), definitions(t, current)
	if len(before) == 0 {
		t.Fatal("the earlier version has no definitions")
	}
	optional := filepath.Join(filepath.Dir(old.crds), "crds-optional")
	cluster, err := localcluster.Start(t.Context(), localcluster.Options{
		NoDefaultCRDs: true, CRDDirs: []string{old.crds, optional}, NoControllers: true, NoKubelets: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	client, err := dynamic.NewForConfig(cluster.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]*object{}
	for name, crd := range before {
		objects[name] = store(t, client, crd)
	}
	names := slices.Sorted(maps.Keys(after))
	if err := cluster.Apply(t.Context(), "upgrade", current.manifests, names...); err != nil {
		t.Fatal(err)
	}
	for name, o := range objects {
		t.Run(o.GetKind(), func(t *testing.T) {
			if after[name] == nil {
				t.Fatalf("the new version has no %s: what becomes of its objects is to be said in docs/upgrade.md", name)
			}
			if cmp.Equal(before[name], after[name]) {
				t.Logf("%s is the same in both versions", name)
			}
			if said := o.changed(t.Context()); said != "" {
				t.Error(said)
			}
		})
	}
	t.Run("a definition that forgets a field", func(t *testing.T) {
		const queue = "crds/scheduling.volcano.sh_queues.yaml"
		objects[queue].forgets(t, client, after[queue], "weight")
	})
}

// object is one that was stored by the definitions of the earlier version.
type object struct {
	*unstructured.Unstructured
	client dynamic.ResourceInterface
	status bool
}

// store creates an object with every field of a definition.
func store(t *testing.T, client dynamic.Interface, crd *apiextensionsv1.CustomResourceDefinition) *object {
	t.Helper()
	i := slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	v := crd.Spec.Versions[i]
	full, _ := example(v.Schema.OpenAPIV3Schema).(map[string]any)
	o := &object{status: v.Subresources != nil && v.Subresources.Status != nil && full["status"] != nil}
	o.Unstructured = &unstructured.Unstructured{Object: full}
	o.SetAPIVersion(crd.Spec.Group + "/" + v.Name)
	o.SetKind(crd.Spec.Names.Kind)
	full["metadata"] = map[string]any{"name": "example"}
	resources := client.Resource(schema.GroupVersionResource{Group: crd.Spec.Group, Version: v.Name, Resource: crd.Spec.Names.Plural})
	o.client = resources
	if crd.Spec.Scope == apiextensionsv1.NamespaceScoped {
		o.client = resources.Namespace(namespace)
	}
	created, err := o.client.Create(t.Context(), o.Unstructured, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		t.Fatalf("creating a %s: %v", o.GetKind(), err)
	}
	if o.status {
		created.Object["status"] = full["status"]
		if created, err = o.client.UpdateStatus(t.Context(), created, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Fatalf("writing the status of a %s: %v", o.GetKind(), err)
		}
	}
	o.Unstructured = created
	return o
}

// changed says how an object is not as it was, or why it cannot be written as a whole; empty if it is and can.
func (o *object) changed(ctx context.Context) string {
	strict := metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}
	now, err := o.client.Get(ctx, o.GetName(), metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	if diff := o.differs(now); diff != "" {
		return "the object was changed (-before +after):\n" + diff
	}
	now.SetAnnotations(map[string]string{"written": "again"})
	if now, err = o.client.Update(ctx, now, strict); err != nil {
		return "writing it: " + err.Error()
	}
	if o.status {
		if now, err = o.client.UpdateStatus(ctx, now, strict); err != nil {
			return "writing its status: " + err.Error()
		}
	}
	if diff := o.differs(now); diff != "" {
		return "writing changed it (-before +after):\n" + diff
	}
	return ""
}

// differs compares all but the metadata.
func (o *object) differs(now *unstructured.Unstructured) string {
	content := func(u *unstructured.Unstructured) map[string]any {
		fields := maps.Clone(u.Object)
		delete(fields, "metadata")
		return fields
	}
	return cmp.Diff(content(o.Unstructured), content(now))
}

// forgets has a definition forget a field of the spec, and returns when that is noticed.
func (o *object) forgets(t *testing.T, client dynamic.Interface, crd *apiextensionsv1.CustomResourceDefinition, field string) {
	t.Helper()
	spoilt := crd.DeepCopy()
	delete(spoilt.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, field)
	spoilt.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spoilt)
	if err != nil {
		t.Fatal(err)
	}
	delete(fields, "status")
	crds := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	if _, err := crds.Apply(t.Context(), crd.Name, &unstructured.Unstructured{Object: fields}, metav1.ApplyOptions{FieldManager: "upgrade", Force: true}); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, time.Minute, func() string {
		if said := o.changed(t.Context()); !strings.Contains(said, field) {
			return fmt.Sprintf("%s is not known any more, and what is noticed is %q", field, said)
		}
		return ""
	})
}

// example is a value with every field of a schema. Of fields that exclude each other it has the first.
func example(s *apiextensionsv1.JSONSchemaProps) any {
	if len(s.Enum) > 0 {
		var value any
		if err := json.Unmarshal(s.Enum[len(s.Enum)-1].Raw, &value); err == nil {
			return value
		}
	}
	switch {
	case s.XIntOrString:
		return "1"
	case s.Type == "array":
		return []any{example(s.Items.Schema)}
	case s.Type == "object" && s.AdditionalProperties != nil:
		return map[string]any{"example": example(s.AdditionalProperties.Schema)}
	case s.Type == "object":
		fields := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			property := s.Properties[name]
			if len(fields) == 0 || len(s.XValidations) == 0 || slices.Contains(s.Required, name) {
				fields[name] = example(&property)
			}
		}
		return fields
	case s.Format == "date-time":
		return "2026-01-01T00:00:00Z"
	case s.Type == "boolean":
		return true
	case s.Type == "integer" || s.Type == "number":
		return max(1, int64(pointed(s.Minimum)))
	}
	return "a"
}

func pointed(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}
