// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"encoding/json"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The tests in test/integration/monitoring run every query and every rule. Those here compare the files with the documentation.

// rule is an alert.
type rule struct {
	Alert, Expr         string
	For                 string
	Labels, Annotations map[string]string
}

func loadRules(t *testing.T, name string) (rules []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string
			Rules []rule
		}
	}
	if err := yaml.UnmarshalStrict(read(t, name), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		rules = append(rules, g.Rules...)
	}
	if len(rules) == 0 {
		t.Error("it has no rules")
	}
	return rules
}

// dashboard is the part of Grafana's model of a dashboard that matters here.
type dashboard struct {
	UID, Title string
	Tags       []string
	Panels     []struct {
		ID          int
		Title, Type string
		Datasource  struct{ UID string }
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct {
			RefID, Expr string
			Datasource  struct{ UID string }
		}
	}
}

func loadDashboard(t *testing.T, name string) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal(read(t, name), &d); err != nil {
		t.Fatal(err)
	}
	if want := "caldera-" + strings.TrimSuffix(path.Base(name), ".json"); d.UID != want || d.Title == "" {
		t.Errorf("its uid is %q, want %q; title %q", d.UID, want, d.Title)
	}
	const datasource = "${datasource}"
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if p.Title == "" || p.Datasource.UID != datasource || len(p.Targets) == 0 || ids[p.ID] {
			t.Errorf("panel %d, %q: no title, no target, another datasource than %s, or an ID that another one has", p.ID, p.Title, datasource)
		}
		ids[p.ID] = true
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if target.Expr == "" || target.Datasource.UID != datasource || refs[target.RefID] {
				t.Errorf("panel %q: target %q has no query, another datasource, or a name that another one has", p.Title, target.RefID)
			}
			refs[target.RefID] = true
		}
		at := p.GridPos
		if at.X < 0 || at.W <= 0 || at.H <= 0 || at.X+at.W > 24 {
			t.Errorf("panel %q is outside of the grid: %+v", p.Title, at)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q overlap", other, p.Title)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	return d
}

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAlertsAreExplained: each says in its annotations which section of the page has more, and the page has no other alert.
func TestAlertsAreExplained(t *testing.T) {
	text, known := page(t, "monitoring.md"), map[string]bool{}
	for _, r := range loadRules(t, "monitoring/rules.yaml") {
		known[r.Alert] = true
		if severity := r.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s has the severity %q", r.Alert, severity)
		}
		if section := "docs/monitoring.md#" + strings.ToLower(r.Alert); r.Annotations["summary"] == "" || !strings.HasSuffix(r.Annotations["description"], section+".") {
			t.Errorf("%s has no summary, or its description does not end with %s", r.Alert, section)
		}
		if !strings.Contains(text, "\n### "+r.Alert+"\n") {
			t.Errorf("docs/monitoring.md has no section for %s", r.Alert)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^### (Caldera\w+)$`).FindAllStringSubmatch(text, -1) {
		if !known[m[1]] {
			t.Errorf("docs/monitoring.md has a section for %s, which no alert is called", m[1])
		}
	}
}

// TestQueriesAreOfNamesThatStay: metrics of ours in dashboards and alerts are those on which others may rely.
func TestQueriesAreOfNamesThatStay(t *testing.T) {
	names := page(t, "reference/metrics.md")
	check := func(where, query string) {
		for _, name := range regexp.MustCompile(`\bcaldera_\w+`).FindAllString(query, -1) {
			for _, suffix := range []string{"_bucket", "_count", "_sum"} {
				name = strings.TrimSuffix(name, suffix)
			}
			if !strings.Contains(names, "`"+name+"`") {
				t.Errorf("%s asks for %s, which docs/reference/metrics.md does not have", where, name)
			}
		}
	}
	for _, r := range loadRules(t, "monitoring/rules.yaml") {
		check(r.Alert, r.Expr)
	}
	for _, name := range files(t, "monitoring/dashboards") {
		if !strings.Contains(page(t, "monitoring.md"), "`"+path.Base(name)+"`") {
			t.Errorf("docs/monitoring.md does not name %s", name)
		}
		for _, p := range loadDashboard(t, name).Panels {
			for _, target := range p.Targets {
				check(name+", "+p.Title, target.Expr)
			}
		}
	}
}
