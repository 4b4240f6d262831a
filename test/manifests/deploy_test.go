// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// render is what kubectl apply -k manifests sends.
func render(t *testing.T) []runtime.Object {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), "../../manifests")
	if err != nil {
		t.Fatal(err)
	}
	data, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, data)
}

func TestKustomizationHasEveryResource(t *testing.T) {
	want := []string{"ConfigMap caldera-system/caldera-scheduler-config"}
	for _, dir := range []string{"crds", "deploy", "rbac", "visibility"} {
		for _, object := range loadAll(t, dir) {
			want = append(want, id(t, object))
		}
	}
	var got []string
	for _, object := range render(t) {
		// The generated name ends in a hash of the content.
		name := id(t, object)
		if _, ok := object.(*corev1.ConfigMap); ok {
			name = name[:strings.LastIndex(name, "-")]
		}
		got = append(got, name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("rendered:\n%q\nin the files:\n%q", got, want)
	}
}

func TestDeploymentFindsWhatItRefersTo(t *testing.T) {
	rendered := render(t)
	deployments := only[*appsv1.Deployment](rendered)
	if len(deployments) != 1 {
		t.Fatalf("%d Deployments, want 1", len(deployments))
	}
	deployment := deployments[0]
	pod := deployment.Spec.Template.Spec
	var ids []string
	for _, object := range rendered {
		ids = append(ids, id(t, object))
	}
	account := fmt.Sprintf("ServiceAccount %s/%s", deployment.Namespace, pod.ServiceAccountName)
	for _, want := range []string{"Namespace /" + deployment.Namespace, account} {
		if !slices.Contains(ids, want) {
			t.Errorf("no %s", want)
		}
	}

	var configMap *corev1.ConfigMap
	for _, cm := range only[*corev1.ConfigMap](rendered) {
		if pod.Volumes[0].ConfigMap != nil && pod.Volumes[0].ConfigMap.Name == cm.Name {
			configMap = cm
		}
	}
	if configMap == nil {
		t.Fatal("the volume names no rendered ConfigMap")
	}
	mount := pod.Containers[0].VolumeMounts[0].MountPath
	for _, arg := range pod.Containers[0].Args {
		if file, ok := strings.CutPrefix(arg, "--config="+mount+"/"); ok {
			if configMap.Data[file] == "" {
				t.Errorf("%s: the ConfigMap has no such file", arg)
			}
			return
		}
	}
	t.Errorf("args %q name no file below %s", pod.Containers[0].Args, mount)
}

// id is the kind, namespace and name of an object.
func id(t *testing.T, object runtime.Object) string {
	t.Helper()
	accessor, err := meta.Accessor(object)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s/%s", object.GetObjectKind().GroupVersionKind().Kind, accessor.GetNamespace(), accessor.GetName())
}
