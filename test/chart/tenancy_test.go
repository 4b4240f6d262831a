// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
)

// TestTenancyIsThatOfItsFiles: what the chart adds for tenants are the objects of manifests/tenancy, which have tests of their own.
func TestTenancyIsThatOfItsFiles(t *testing.T) {
	got := render(t, "tenancy: {enabled: true}", cluster{})
	maps.DeleteFunc(got, func(name string, _ *unstructured.Unstructured) bool { return render(t, "", cluster{})[name] != nil })
	want := map[string]*unstructured.Unstructured{}
	for _, name := range []string{"bindings", "limits", "policies", "roles"} {
		text, err := os.ReadFile("../../manifests/tenancy/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		all, err := decode(string(text))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(want, all)
	}
	limits := want["ConfigMap caldera-system/caldera-tenancy"]
	limits.Object["data"] = map[string]any{}
	for _, u := range got {
		without(t, u, "metadata", "labels", "app.kubernetes.io/managed-by")
		without(t, u, "metadata", "labels", "helm.sh/chart")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tenancy differs (-files +chart):\n%s", diff)
	}
}

// TestLimitsOfValuesHold on a real API server, and another value is another limit.
func TestLimitsOfValuesHold(t *testing.T) {
	t.Parallel()
	r := start(t, localcluster.Options{NoControllers: true})
	r.install(t, "tenancy: {enabled: true, limits: {queues: [default], minMember: 5000000}}")
	groups := r.dynamic.Resource(schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}).Namespace("default")
	group := named(schema.GroupVersionKind{Group: "scheduling.volcano.sh", Version: "v1beta1", Kind: "PodGroup"}, "default", "train")
	group.Object["spec"] = map[string]any{"queue": "research", "minMember": int64(4_999_999)}
	// The API server takes in policies, and what they read, after a moment.
	create := func(ctx context.Context) error {
		_, err := groups.Create(ctx, group, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	const refusal = "namespace default may not use queue research: name one of [default]"
	eventually(t, func(ctx context.Context) string {
		if err := create(ctx); err == nil || !strings.Contains(err.Error(), refusal) {
			return fmt.Sprintf("a PodGroup of another queue has the answer %v, want %s", err, refusal)
		}
		return ""
	})
	r.upgrade(t, "tenancy: {enabled: true, limits: {queues: [default], minMember: 5000000}, namespaces: {default: {queues: [default, research]}}}")
	eventually(t, func(ctx context.Context) string {
		if err := create(ctx); err != nil {
			return fmt.Sprintf("a PodGroup of a queue that may be named, below the limit of its size: %v", err)
		}
		return ""
	})
}
