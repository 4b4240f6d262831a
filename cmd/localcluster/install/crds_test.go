// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/cmd/localcluster/install"
)

func crd(name string) string {
	return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + "}\n"
}

func files(contents map[string]string) fstest.MapFS {
	fs := fstest.MapFS{}
	for name, content := range contents {
		fs[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fs
}

func TestReadCRDs(t *testing.T) {
	t.Parallel()
	crds, err := install.ReadCRDs(files(map[string]string{
		"b.yml":          crd("three"),
		"a.yaml":         "# a comment\n---\n" + crd("one") + "---\n" + crd("two") + "---\n",
		"README.md":      "not YAML: [",
		"below/sub.yaml": crd("ignored"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range crds {
		got = append(got, c.Name)
	}
	if diff := cmp.Diff([]string{"one", "two", "three"}, got); diff != "" {
		t.Errorf("names (-want,+got):\n%s", diff)
	}
}

func TestReadCRDsErrorsNameTheFile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ content, want string }{
		"another kind":     {"apiVersion: v1\nkind: Namespace\nmetadata: {name: some}\n", `Namespace "some": only CustomResourceDefinitions`},
		"an old version":   {strings.Replace(crd("old"), "/v1", "/v1beta1", 1), "only CustomResourceDefinitions of apiextensions.k8s.io/v1"},
		"a field mistyped": {crd("typo") + "spce: {}\n", `unknown field "spce"`},
		"not YAML":         {"a: [", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := install.ReadCRDs(files(map[string]string{"x.yaml": tc.content}))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "x.yaml") {
				t.Errorf("error is %v, want it to contain %q and the file name", err, tc.want)
			}
		})
	}
}
