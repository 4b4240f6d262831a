// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// valueSchema is the part of values.schema.json that matters here.
type valueSchema struct {
	Type                 any
	Description          string
	Properties           map[string]*valueSchema
	AdditionalProperties any
	Items                *valueSchema
}

func readSchema(t *testing.T) *valueSchema {
	t.Helper()
	data, err := os.ReadFile(chartDir + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	s := &valueSchema{}
	if err := json.Unmarshal(data, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// whole are values that users set as a whole, though the schema knows their parts.
var whole = []string{"featureGates", "resources", "schedulerConfig", "visibility.certManager.issuerRef"}

// leaves calls a function for each value of a schema that has no parts.
func (s *valueSchema) leaves(path string, visit func(path string, leaf *valueSchema)) {
	if len(s.Properties) == 0 || slices.Contains(whole, path) {
		visit(path, s)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		s.Properties[name].leaves(strings.TrimPrefix(path+"."+name, "."), visit)
	}
}

// TestEveryValue renders the chart with values other than its own, and compares what that changes with what is written down. Run it with -rewrite, and
// look at what it writes, after a change. Each value has a case.
func TestEveryValue(t *testing.T) {
	seen := map[string]bool{}
	datadriven.RunTest(t, "testdata/values.txt", func(t *testing.T, data *datadriven.TestData) string {
		t.Helper()
		with := values(t, data.Input)
		var of cluster
		for _, arg := range data.CmdArgs {
			if arg.Key == "served" {
				of.apis = append(of.apis, arg.Vals...)
			}
		}
		rendered, err := template(load(t), with, of)
		if data.Cmd == "refused" {
			if err == nil {
				t.Fatalf("%s: these values are taken:\n%s", data.Pos, data.Input)
			}
			// Where in the templates that is matters to nobody.
			return regexp.MustCompile(`^execution error at \([^)]*\): `).ReplaceAllString(err.Error(), "")
		}
		if err != nil {
			t.Fatalf("%s: %v", data.Pos, err)
		}
		readSchema(t).leaves("", func(path string, _ *valueSchema) {
			if _, ok, _ := unstructured.NestedFieldNoCopy(with, strings.Split(path, ".")...); ok {
				seen[path] = true
			}
		})
		after := objects(t, rendered)
		validated(t, after)
		text := changes(render(t, "", cluster{}), after)
		if text == "" {
			t.Errorf("%s: these values change nothing:\n%s", data.Pos, data.Input)
		}
		return text
	})
	readSchema(t).leaves("", func(path string, _ *valueSchema) {
		if !seen[path] && path != "global" {
			t.Errorf("no case of testdata/values.txt sets %s", path)
		}
	})
}

// validated has kubectl caldera check the configurations.
func validated(t *testing.T, all map[string]*unstructured.Unstructured) {
	t.Helper()
	files, _, _ := unstructured.NestedStringMap(all["ConfigMap caldera-system/caldera-scheduler-config"].Object, "data")
	if len(files) != 2 {
		t.Errorf("the ConfigMap has the files %q, want two", slices.Sorted(maps.Keys(files)))
	}
	for name, content := range files {
		if checked[content] {
			continue
		}
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if output, err := exec.CommandContext(t.Context(), program(t, "CALDERA_KUBECTL_CALDERA"), "validate", file).CombinedOutput(); err != nil {
			t.Errorf("%s is refused: %v\n%s", name, err, output)
		}
		checked[content] = true
	}
}

// checked are the configurations that were found to be right.
var checked = map[string]bool{}

// program is a binary that make has built.
func program(t *testing.T, variable string) string {
	t.Helper()
	binary := os.Getenv(variable)
	if binary == "" {
		t.Fatalf("%s is not set: run this by make test-chart", variable)
	}
	return binary
}

// changes says what two renderings differ in, a line for each field.
func changes(before, after map[string]*unstructured.Unstructured) string {
	var out strings.Builder
	names := map[string]bool{}
	for _, all := range []map[string]*unstructured.Unstructured{before, after} {
		for name := range all {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, is := map[string]string{}, map[string]string{}
		if u := before[name]; u != nil {
			flatten("", u.Object, was)
		}
		if u := after[name]; u != nil {
			flatten("", u.Object, is)
		}
		const shown = 30
		switch {
		case maps.Equal(was, is):
		case len(is) == 0:
			fmt.Fprintf(&out, "- %s\n", name)
		case len(was) == 0:
			fmt.Fprintf(&out, "+ %s\n", name)
			if len(is) > shown {
				fmt.Fprintf(&out, "    ...\n")
				continue
			}
			fallthrough
		default:
			if len(was) > 0 {
				fmt.Fprintf(&out, "  %s\n", name)
			}
			fields(&out, was, is)
		}
	}
	return out.String()
}

// told are fields of each object that say nothing about values.
var told = []string{"apiVersion", "kind", "metadata.name", "metadata.namespace", "metadata.labels.app.kubernetes.io/managed-by", "metadata.labels.helm.sh/chart"}

func fields(out *strings.Builder, was, is map[string]string) {
	paths := map[string]bool{}
	for _, all := range []map[string]string{was, is} {
		for path := range all {
			paths[path] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		old, existed := was[path]
		now, exists := is[path]
		switch {
		case old == now && existed == exists, slices.Contains(told, path):
		case strings.HasSuffix(path, "checksum/config"):
			fmt.Fprintf(out, "    %s: another\n", path)
		case !exists:
			fmt.Fprintf(out, "    %s: %s -> none\n", path, old)
		case !existed:
			fmt.Fprintf(out, "    %s: %s\n", path, now)
		default:
			fmt.Fprintf(out, "    %s: %s -> %s\n", path, old, now)
		}
	}
}

// flatten lists the fields of an object, those of files in YAML within it, too.
func flatten(path string, value any, into map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for name, part := range v {
			flatten(strings.TrimPrefix(path+"."+name, "."), part, into)
		}
		if len(v) == 0 {
			into[path] = "{}"
		}
	case []any:
		for i, part := range v {
			flatten(fmt.Sprintf("%s[%d]", path, i), part, into)
		}
		if len(v) == 0 {
			into[path] = "[]"
		}
	case string:
		inner := map[string]any{}
		if strings.Count(v, "\n") > 1 && yaml.Unmarshal([]byte(v), &inner) == nil {
			flatten(path+"|", inner, into)
			return
		}
		into[path] = v
	default:
		into[path] = fmt.Sprint(v)
	}
}

// TestValuesAndTheirSchemaAgree: the schema describes each value, has each that values.yaml has, and knows where one is misspelt.
func TestValuesAndTheirSchemaAgree(t *testing.T) {
	s := readSchema(t)
	s.leaves("", func(path string, leaf *valueSchema) {
		if leaf.Description == "" {
			t.Errorf("%s has no description", path)
		}
		if _, ok, _ := unstructured.NestedFieldNoCopy(load(t).Values, strings.Split(path, ".")...); !ok && path != "global" {
			t.Errorf("values.yaml has no %s", path)
		}
	})
	s.check(t, "values")
}

// check looks for objects whose fields nobody has written down.
func (s *valueSchema) check(t *testing.T, path string) {
	t.Helper()
	if len(s.Properties) > 0 && s.AdditionalProperties != false && !strings.HasSuffix(path, ".featureGates") {
		t.Errorf("%s takes fields that nobody knows", path)
	}
	for name, part := range s.Properties {
		if part.Description == "" {
			t.Errorf("%s.%s has no description", path, name)
		}
		part.check(t, path+"."+name)
	}
	if s.Items != nil {
		s.Items.check(t, path+"[]")
	}
}

// TestQueuesHaveTheFieldsOfTheirDefinition: a field that Volcano adds has to be added to the schema.
func TestQueuesHaveTheFieldsOfTheirDefinition(t *testing.T) {
	crd := render(t, "", cluster{})["CustomResourceDefinition queues.scheduling.volcano.sh"]
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	want, ok, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties")
	if !ok || err != nil {
		t.Fatal("the definition of queues has no spec", err)
	}
	got := readSchema(t).Properties["queues"].Items.Properties["spec"].Properties
	if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
		t.Errorf("the schema of values has %q, the definition %q", g, w)
	}
}
