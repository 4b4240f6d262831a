// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNamesAreWrittenDown: docs/names.md has all metrics on which others may rely, and no metric that does not exist.
func TestNamesAreWrittenDown(t *testing.T) {
	page, err := os.ReadFile("../../docs/names.md")
	if err != nil {
		t.Fatal(err)
	}
	written, _, _ := strings.Cut(string(page), "## What was renamed")
	known := map[string]bool{}
	for files, name := range map[string]string{
		"*.go":            `Subsystem: "caldera", Name: "(\w+)"`,
		"../metrics/*.go": `"caldera_(\w+)"`,
	} {
		found := namesIn(t, files, name)
		if len(found) == 0 {
			t.Errorf("%s has no name of the form %s", files, name)
		}
		for _, n := range found {
			if strings.Contains(name, "caldera") {
				n = "caldera_" + n
			}
			known[n] = true
			if !strings.Contains(written, "`"+n+"`") {
				t.Errorf("docs/names.md does not have %s, which is in %s", n, files)
			}
		}
	}
	for _, m := range regexp.MustCompile("`(caldera_\\w+)`").FindAllStringSubmatch(written, -1) {
		if !known[m[1]] {
			t.Errorf("docs/names.md has %s, which no metric is called", m[1])
		}
	}
}

// namesIn returns what a pattern captures in files that are no tests.
func namesIn(t *testing.T, files, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(files)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(source), -1) {
			names = append(names, m[1])
		}
	}
	return names
}
