// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

const (
	aNode  = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
	aQueue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n"
	aPod   = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: i}]}\n"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// describe names what was read and where: "file.yaml, document 1 (line 1): Node n1".
func describe(objects []scenario.Sourced) []string {
	var all []string
	for _, o := range objects {
		all = append(all, o.Source+": "+o.GetName())
	}
	return all
}

func TestDocumentsAreRead(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want []string
	}{
		"an empty file holds nothing":                 {"", nil},
		"comments and separators are no documents":    {"# nothing\n---\n---\n# here\n", nil},
		"one document":                                {aNode, []string{"f, document 1 (line 1): n1"}},
		"documents are numbered and know their lines": {"# nodes\n" + aNode + "---\n\n---\n" + aQueue, []string{"f, document 1 (line 1): n1", "f, document 2 (line 7): q"}},
		"a separator may carry a comment":             {aNode + "--- # queues\n" + aQueue, []string{"f, document 1 (line 1): n1", "f, document 2 (line 4): q"}},
		"the last line may lack its end":              {strings.TrimSuffix(aNode, "\n"), []string{"f, document 1 (line 1): n1"}},
		"windows line ends":                           {strings.ReplaceAll(aNode+"---\n"+aQueue, "\n", "\r\n"), []string{"f, document 1 (line 1): n1", "f, document 2 (line 4): q"}},
		"json is yaml, too":                           {`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}`, []string{"f, document 1 (line 1): n1"}},
		"what kubectl get writes": {
			"apiVersion: v1\nkind: List\nmetadata: {resourceVersion: \"\"}\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n- {apiVersion: v1, kind: Node, metadata: {name: n2}}\n",
			[]string{"f, document 1 (line 1), item 1: n1", "f, document 1 (line 1), item 2: n2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := scenario.Read("f", []byte(tc.file))
			check(t, err)
			if diff := cmp.Diff(tc.want, describe(objects)); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestMistakesAreReportedWithTheirPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want []string
	}{
		"a syntax error has its line in the file": {
			aNode + "---\n" + aQueue + "spec: {weight: 1\n",
			[]string{"f, document 2 (line 4)", "line 8"},
		},
		"a key that is there twice": {
			aNode + "spec: {}\nspec: {}\n",
			[]string{"f, document 1 (line 1)", `key "spec" already set`},
		},
		"a field that does not exist": {
			aNode + "---\n" + aQueue + "spec: {wieght: 1}\n",
			[]string{"f, document 2 (line 4): decoding a Queue", `unknown field "spec.wieght"`},
		},
		"a value of another type": {
			aQueue + "spec: {weight: heavy}\n",
			[]string{"f, document 1 (line 1): decoding a Queue", "weight"},
		},
		"a kind that a simulation does not hold, with those it does": {
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n",
			[]string{"f, document 1 (line 1): Deployment (apps/v1) is not a kind", "Pod (v1)", "PodGroup (scheduling.volcano.sh/v1beta1)", "List (v1)"},
		},
		"a known kind of another version": {
			"apiVersion: scheduling.volcano.sh/v1alpha1\nkind: Queue\nmetadata: {name: q}\n",
			[]string{"Queue (scheduling.volcano.sh/v1alpha1) is not a kind"},
		},
		"no kind": {
			"metadata: {name: x}\n",
			[]string{`f, document 1 (line 1): apiVersion "" and kind ""`},
		},
		"not an object": {
			"- 1\n- 2\n",
			[]string{"f, document 1 (line 1): not an object"},
		},
		"an item of a list": {
			"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: n1}}\n- {apiVersion: v1, kind: Secret, metadata: {name: s}}\n",
			[]string{"f, document 1 (line 1), item 2: Secret (v1) is not a kind"},
		},
		"several mistakes at once": {
			"apiVersion: v1\nkind: Secret\n---\n" + aNode + "---\napiVersion: v1\nkind: ConfigMap\n",
			[]string{"document 1 (line 1): Secret", "document 3 (line 7): ConfigMap"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.Read("f", []byte(tc.file))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestAWordIsAStringWhereAStringIsWanted(t *testing.T) {
	objects, err := scenario.Read("f", []byte(aNode+"spec: {taints: [{key: x, value: y, effect: NoSchedule}], unschedulable: false}\n"))
	check(t, err)
	if taint := objects[0].Object.(*corev1.Node).Spec.Taints[0]; taint.Value != "y" {
		t.Errorf("the taint's value is %q, want y", taint.Value)
	}
}

func TestADirectoryIsReadByTheNamesOfItsFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"b.yaml": aPod, "a.yml": aNode, "c.yaml": aQueue, "volcano-scheduler.conf": "actions: allocate", "expected.json": "{}", "README.md": "no",
	} {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	check(t, os.Mkdir(filepath.Join(dir, "d.yaml"), 0o700))
	objects, err := scenario.Load(dir)
	check(t, err)
	var names []string
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	if diff := cmp.Diff([]string{"n1", "p", "q"}, names); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
	objects, err = scenario.Load(filepath.Join(dir, "b.yaml"))
	check(t, err)
	if diff := cmp.Diff([]string{filepath.Join(dir, "b.yaml") + ", document 1 (line 1): p"}, describe(objects)); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
}

func TestWhatIsNotThereCannotBeRead(t *testing.T) {
	empty := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(empty, "nobody.yaml"): "no such file",
		empty:                               "has no *.yaml file",
	} {
		if _, err := scenario.Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("loading %s: %v, want %q", path, err, want)
		}
	}
}
