// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// axe fetches axe-core by npm, at the version and with the checksum that are written down, and returns its source.
func axe(t *testing.T) string {
	t.Helper()
	npm := needed(t, "npm", "npm")
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json"} {
		data, err := os.ReadFile(filepath.Join("axe", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(t.Context(), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit-lockfile-registry-resolved")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("fetching axe-core: %v\n%s", err, out)
	}
	source, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// accessible looks for what is wrong with what is shown now, by all rules of WCAG 2 up to AA and axe-core's own advice. It returns how many rules passed.
func (b *browser) accessible(t *testing.T, source, what string) int {
	t.Helper()
	if !value[bool](t, b, `typeof axe === "object"`) {
		b.do(t, script(source))
	}
	type report struct {
		Passed     int
		Violations []struct {
			ID, Help string
			Nodes    []string
		}
	}
	const run = `axe.run(document, { resultTypes: ["violations"] }).then((r) => ({
		Passed: r.passes.length,
		Violations: r.violations.map((v) => ({ ID: v.id, Help: v.help, Nodes: v.nodes.slice(0, 5).map((n) => n.html + " " + n.failureSummary) })),
	}))`
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[report](run, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found.Violations {
		t.Errorf("%s: axe-core finds %s: %s\n%s", what, v.ID, v.Help, strings.Join(v.Nodes, "\n"))
	}
	if found.Passed == 0 {
		t.Errorf("%s: no rule of axe-core has passed: it has looked at nothing (%+v)", what, found)
	}
	return found.Passed
}
