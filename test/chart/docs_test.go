// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package chart_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestTheTableOfValuesIsTrue compares the table in docs/install.md with values.yaml and its schema; with -rewrite it writes it.
func TestTheTableOfValuesIsTrue(t *testing.T) {
	const page, begin, end = "../../docs/install.md", "| value | default | |\n|---|---|---|\n", "\n\n"
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	got, after, more := strings.Cut(rest, end)
	if !ok || !more {
		t.Fatalf("%s has no table that begins with %q and ends before an empty line", page, begin)
	}
	want := strings.TrimSuffix(table(t), "\n")
	if rewrite := flag.Lookup("rewrite"); rewrite != nil && rewrite.Value.String() == "true" {
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s is not true any more; -rewrite writes it (-values +page):\n%s", page, diff)
	}
}

// table has a row for each value.
func table(t *testing.T) string {
	t.Helper()
	var rows strings.Builder
	defaults := load(t).Values
	readSchema(t).leaves("", func(path string, leaf *valueSchema) {
		if path == "global" {
			return
		}
		value, _, _ := unstructured.NestedFieldNoCopy(defaults, strings.Split(path, ".")...)
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		const shown = 60
		is := "`" + strings.Trim(string(text), `"`) + "`"
		switch {
		case value == "":
			is = ""
		case len(text) > shown:
			is = "as in `manifests/deploy`"
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", path, is, leaf.Description)
	})
	return rows.String()
}
