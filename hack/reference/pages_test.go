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
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fence   = regexp.MustCompile("(?ms)^```.*?^```$") //nolint:gocritic // With (?m) each line begins with ^.
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	ours    = regexp.MustCompile("`(caldera_[a-z_]+[a-z])\\b")
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

// anchors are the places in a page that a link may name.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(text, -1) {
		all[strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return all
}

// TestLinksLeadSomewhere: pages link to files and sections that there are.
func TestLinksLeadSomewhere(t *testing.T) {
	all := pages(t)
	for name, text := range all {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			to := name
			if file != "" {
				to = filepath.Join(filepath.Dir(name), file)
			}
			if _, err := os.Stat(filepath.Join(root, to)); err != nil {
				t.Errorf("%s links to %s, which is not there", name, m[1])
				continue
			}
			if anchor != "" && !anchors(all[to])[anchor] {
				t.Errorf("%s links to %s, and %s has no such section", name, m[1], to)
			}
		}
	}
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
