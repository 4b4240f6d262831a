// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/caldera-scheduler/caldera/pkg/version"
)

// TestDefaultsAreWhatKustomizeHas: the chart differs in labels of Helm's, in the namespace, which is there before a release is, and in how a change of the
// configuration rolls the Deployment. Definitions are never deleted.
func TestDefaultsAreWhatKustomizeHas(t *testing.T) {
	got, want := render(t, "", cluster{}), kustomized(t)
	for _, u := range got {
		without(t, u, "metadata", "labels", "app.kubernetes.io/managed-by")
		without(t, u, "metadata", "labels", "helm.sh/chart")
		switch u.GetKind() {
		case "Deployment":
			without(t, u, "spec", "template", "metadata", "annotations", "checksum/config")
		case "CustomResourceDefinition":
			without(t, u, "metadata", "annotations", "helm.sh/resource-policy")
		}
	}
	if ns := want["Namespace "+namespace]; ns == nil {
		t.Error("kustomize has no namespace")
	}
	delete(want, "Namespace "+namespace)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("helm template differs from kustomize (-kustomize +helm):\n%s", diff)
	}
}

// without takes a field away that has to be there, and what is empty then.
func without(t *testing.T, u *unstructured.Unstructured, path ...string) {
	t.Helper()
	if value, ok, err := unstructured.NestedFieldNoCopy(u.Object, path...); !ok || err != nil || value == "" {
		t.Errorf("%s has no %s", id(u), strings.Join(path, "."))
	}
	unstructured.RemoveNestedField(u.Object, path...)
	above := path[:len(path)-1]
	if rest, ok, _ := unstructured.NestedMap(u.Object, above...); ok && len(rest) == 0 {
		unstructured.RemoveNestedField(u.Object, above...)
	}
}

// kustomized is what kubectl apply -k manifests sends, without the sums in the names of ConfigMaps.
func kustomized(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../manifests")
	if err != nil {
		t.Fatal(err)
	}
	data, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	all, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range all {
		if u.GetKind() == "ConfigMap" {
			name := u.GetName()
			text = strings.ReplaceAll(text, name, name[:strings.LastIndex(name, "-")])
		}
	}
	if all, err = decode(text); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestAnotherNamespaceIsEverywhere: the configuration, too, names the namespace of the lease.
func TestAnotherNamespaceIsEverywhere(t *testing.T) {
	for _, u := range render(t, "", cluster{namespace: "batch-system"}) {
		if ns := u.GetNamespace(); ns != "" && ns != "batch-system" && ns != "kube-system" {
			t.Errorf("%s is elsewhere", id(u))
		}
		if text, err := u.MarshalJSON(); err != nil || strings.Contains(string(text), namespace) {
			t.Errorf("%s names the namespace %s: %v", id(u), namespace, err)
		}
	}
}

// TestAPackageRendersTheSame: the links are no links in it.
func TestAPackageRendersTheSame(t *testing.T) {
	archive, err := chartutil.Save(load(t), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	packed, err := loader.Load(archive)
	if err != nil {
		t.Fatal(err)
	}
	got, err := template(packed, nil, cluster{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(render(t, "", cluster{}), objects(t, got)); diff != "" {
		t.Errorf("a package renders something else (-folder +package):\n%s", diff)
	}
}

func TestLint(t *testing.T) {
	lint := action.NewLint()
	version, err := common.ParseKubeVersion(oldest)
	if err != nil {
		t.Fatal(err)
	}
	lint.Strict, lint.Namespace, lint.KubeVersion = true, namespace, version
	result := lint.Run([]string{chartDir}, map[string]any{})
	if result.TotalChartsLinted != 1 {
		t.Errorf("%d charts were linted, want 1", result.TotalChartsLinted)
	}
	for _, err := range result.Errors {
		t.Error(err)
	}
	for _, message := range result.Messages {
		if !strings.Contains(message.Error(), "icon is recommended") {
			t.Error(message)
		}
	}
}

// TestOlderClustersAreRefused: the scheduler cannot act as their version.
func TestOlderClustersAreRefused(t *testing.T) {
	for version, refused := range map[string]bool{
		"v1.33.9": true, "v1.34.0-alpha.1": false, "v1.34.0": false, "v1.36.2-eks-1": false, "v1.37.1": false, "v1.38.0": false,
	} {
		_, err := template(load(t), nil, cluster{version: version})
		if !refused && err != nil {
			t.Errorf("%s: %v", version, err)
		}
		if refused && (err == nil || !strings.Contains(err.Error(), "kubeVersion: >=1.34.0-0 which is incompatible with Kubernetes "+version)) {
			t.Errorf("%s: got %v, want that it is too old", version, err)
		}
	}
}

// TestTheChartAsksForWhatTheSchedulerServes: who bumps Kubernetes has to bump the chart's.
func TestTheChartAsksForWhatTheSchedulerServes(t *testing.T) {
	data, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	linked := regexp.MustCompile(`\tk8s\.io/kubernetes (v\d+\.\d+\.\d+)\n`).FindSubmatch(data)
	if linked == nil {
		t.Fatal("go.mod requires no k8s.io/kubernetes")
	}
	asked := regexp.MustCompile(`^>=(\d+\.\d+)\.0-0$`).FindStringSubmatch(load(t).Metadata.KubeVersion)
	if asked == nil {
		t.Fatalf("the chart's kubeVersion is %q, want >=major.minor.0-0", load(t).Metadata.KubeVersion)
	}
	ours, floor := utilversion.MustParseGeneric(string(linked[1])), utilversion.MustParseGeneric(asked[1])
	if _, err := version.Beside(ours, floor); err != nil {
		t.Errorf("the chart takes more than the scheduler: %v", err)
	}
	if _, err := version.Beside(ours, floor.SubtractMinor(1)); err == nil {
		t.Errorf("the scheduler takes more than the chart, which asks for %s", asked[0])
	}
}

// TestNotesSayWhatToDoNext for each way to run it.
func TestNotesSayWhatToDoNext(t *testing.T) {
	for with, wants := range map[string][]string{
		"mode: beside":                   {"schedulerName: volcano", "kubectl caldera status", "minMember: 2", "kubectl caldera explain first"},
		"mode: instead":                  {"Stop the cluster's own kube-scheduler", "nothing places them anew", "kubectl caldera status"},
		"visibility: {enabled: false}":   {"kubectl get podgroups.scheduling.volcano.sh", "!kubectl caldera"},
		"image: {tag: v9.9.9}":           {"Caldera v9.9.9"},
		"image: {repository: elsewhere}": {"Caldera dev"},
	} {
		rendered, err := template(load(t), values(t, with), cluster{})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			text, absent := strings.CutPrefix(want, "!")
			if strings.Contains(rendered.Info.Notes, text) == absent {
				t.Errorf("%s: want %s in the notes:\n%s", with, want, rendered.Info.Notes)
			}
		}
	}
}

// TestDashboardsAndAlertsAreThoseOfTheFiles: nothing of a template's kind in them is carried out.
func TestDashboardsAndAlertsAreThoseOfTheFiles(t *testing.T) {
	all := render(t, "monitoring: {rules: {enabled: true}, dashboards: {enabled: true}}", cluster{})
	rules, err := os.ReadFile("../../manifests/monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, _, _ := unstructured.NestedMap(all["PrometheusRule caldera-system/caldera"].Object, "spec")
	if diff := cmp.Diff(values(t, string(rules)), got); diff != "" {
		t.Errorf("the alerts differ (-file +chart):\n%s", diff)
	}
	files, err := os.ReadDir("../../manifests/monitoring/dashboards")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range files {
		file := entry.Name()
		want, err := os.ReadFile("../../manifests/monitoring/dashboards/" + file)
		if err != nil {
			t.Fatal(err)
		}
		name := "ConfigMap caldera-system/caldera-dashboard-" + strings.TrimSuffix(file, ".json")
		if all[name] == nil {
			t.Fatalf("no %s among %q", name, slices.Sorted(maps.Keys(all)))
		}
		if got, _, _ := unstructured.NestedString(all[name].Object, "data", file); got != string(want) {
			t.Errorf("%s differs from its file", name)
		}
	}
}
