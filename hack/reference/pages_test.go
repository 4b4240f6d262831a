// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

var (
	fence = regexp.MustCompile("(?ms)^```.*?^```$") //nolint:gocritic // With (?m) each line begins with ^.
	ours  = regexp.MustCompile("`(caldera_[a-z_]+[a-z])\\b")
)

// pages are all pages of the repository, by their way from its root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "_output" || name == ".git"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		all[name] = fence.ReplaceAllString(string(text), "")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPagesNameMetricsThatExist: what pages below docs say of metrics is of those that are registered, but for what was renamed.
func TestPagesNameMetricsThatExist(t *testing.T) {
	all := pages(t)
	metrics := all["docs/reference/metrics.md"]
	for name, text := range all {
		if !strings.HasPrefix(name, "docs/") {
			continue
		}
		text, _, _ = strings.Cut(text, "## What was renamed")
		for _, m := range ours.FindAllStringSubmatch(text, -1) {
			metric := m[1]
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				metric = strings.TrimSuffix(metric, suffix)
			}
			if !strings.Contains(metrics, "`"+metric) {
				t.Errorf("%s names the metric %s, which is none", name, m[1])
			}
		}
	}
}
