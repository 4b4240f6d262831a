// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests_test loads every file below manifests as its consumer would, and checks that the files agree with
// each other.
package manifests_test

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulerscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	volcanov1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/documents"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// onDisk is the directory that users apply. Reading it, and not only what is embedded, finds files nobody embeds.
var onDisk = os.DirFS("../../manifests")

// objects decodes what users apply. Strict: an unknown or repeated field is an error.
var objects = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	utilruntime.Must(volcanov1beta1.AddToScheme(scheme))
	utilruntime.Must(apiregistrationv1.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}()

func TestEveryFileLoads(t *testing.T) {
	// How the files of a directory are loaded. A file of another directory, or another type of file, has to be added here.
	loaders := map[string]func(*testing.T, string){
		"config":        func(t *testing.T, name string) { loadConfig(t, name) },
		"crds":          func(t *testing.T, name string) { loadObjects(t, name) },
		"crds-optional": func(t *testing.T, name string) { loadObjects(t, name) },
		"deploy":        func(t *testing.T, name string) { loadObjects(t, name) },
		"examples":      func(t *testing.T, name string) { loadObjects(t, name) },
		"monitoring":    func(t *testing.T, name string) { loadRules(t, name) },
		"rbac":          func(t *testing.T, name string) { loadObjects(t, name) },
		"rbac-optional": func(t *testing.T, name string) { loadObjects(t, name) },
		"static-pod":    func(t *testing.T, name string) { loadObjects(t, name) },
		"tenancy":       func(t *testing.T, name string) { loadObjects(t, name) },
		"visibility":    func(t *testing.T, name string) { loadObjects(t, name) },
		"volcano":       func(t *testing.T, name string) { loadVolcano(t, name) },

		"monitoring/dashboards": func(t *testing.T, name string) { loadDashboard(t, name) },
	}
	for _, name := range files(t, ".") {
		if name == "embed.go" || name == "kustomization.yaml" { // Compiled; rendered by TestKustomizationRenders.
			continue
		}
		t.Run(name, func(t *testing.T) {
			load, ok := loaders[path.Dir(name)]
			extension := ".yaml"
			switch path.Dir(name) {
			case "volcano":
				extension = ".conf"
			case "monitoring/dashboards":
				extension = ".json"
			}
			if !ok || path.Ext(name) != extension {
				t.Fatal("nothing loads this file: add it to the loaders, or move it")
			}
			load(t, name)
		})
	}
}

func TestEveryFileIsEmbeddedOnce(t *testing.T) {
	var want, got []string
	for _, name := range files(t, ".") {
		if name != "embed.go" {
			want = append(want, name)
		}
	}
	for _, embedded := range []fs.FS{manifests.CRDs, manifests.Monitoring, manifests.All} {
		got = append(got, walk(t, embedded, ".")...)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("embedded files:\n%q\nfiles on disk:\n%q", got, want)
	}
}

// files lists the files below a directory of manifests, sorted. Those of the Helm chart are not among them: test/chart has Helm itself read them.
func files(t *testing.T, dir string) []string {
	t.Helper()
	return slices.DeleteFunc(walk(t, onDisk, dir), func(name string) bool { return strings.HasPrefix(name, "chart/") })
}

func walk(t *testing.T, fsys fs.FS, dir string) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(fsys, dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := fs.ReadFile(onDisk, name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// loadVolcano reads a volcano-scheduler.conf as the scheduler does.
func loadVolcano(t *testing.T, name string) {
	t.Helper()
	if _, err := profile.Read(name, read(t, name), profile.Only); err != nil {
		t.Fatal(err)
	}
}

// loadObjects decodes all documents of a file.
func loadObjects(t *testing.T, name string) []runtime.Object {
	t.Helper()
	return decode(t, read(t, name))
}

func decode(t *testing.T, data []byte) []runtime.Object {
	t.Helper()
	var decoded []runtime.Object
	for document, err := range documents.In(data) {
		if err != nil {
			t.Fatal(err)
		}
		object, _, err := objects.Decode(document, nil, nil)
		if err != nil {
			t.Fatalf("decoding document %d: %v", len(decoded)+1, err)
		}
		decoded = append(decoded, object)
	}
	if len(decoded) == 0 {
		t.Fatal("no document")
	}
	return decoded
}

// loadAll decodes all objects of all files of a directory.
func loadAll(t *testing.T, dir string) []runtime.Object {
	t.Helper()
	var all []runtime.Object
	for _, name := range files(t, dir) {
		all = append(all, loadObjects(t, name)...)
	}
	return all
}

// only returns the objects of type T.
func only[T runtime.Object](all []runtime.Object) []T {
	var found []T
	for _, object := range all {
		if o, ok := object.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

// loadConfig decodes and validates a scheduler configuration as kube-scheduler's --config does.
func loadConfig(t *testing.T, name string) *schedulerconfig.KubeSchedulerConfiguration {
	t.Helper()
	object, gvk, err := schedulerscheme.Codecs.UniversalDecoder().Decode(read(t, name), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, ok := object.(*schedulerconfig.KubeSchedulerConfiguration)
	if !ok {
		t.Fatalf("decoded a %T", object)
	}
	config.APIVersion = gvk.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(config); err != nil {
		t.Fatal(err)
	}
	return config
}
