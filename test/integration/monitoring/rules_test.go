// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"os"
	"os/exec"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/test/integration/prometheus"
)

// rulesFile is the file of alerts, as users load it, and cases what each is to fire for and what not.
const (
	rulesFile = "../../../manifests/monitoring/rules.yaml"
	cases     = "testdata/rules.test.yaml"
)

// alert is a rule.
type alert struct{ Alert, Expr string }

func alerts(t *testing.T) (list []alert) {
	t.Helper()
	data, err := manifests.Monitoring.ReadFile("monitoring/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		list = append(list, g.Rules...)
	}
	return list
}

// TestAlertsFireWhenTheyShould and not when they should not, by Prometheus' own tool.
func TestAlertsFireWhenTheyShould(t *testing.T) {
	t.Parallel()
	tool := prometheus.Binary(t, prometheus.Tool)
	for _, args := range [][]string{{"check", "rules", "--lint=all", "--lint-fatal", rulesFile}, {"test", "rules", cases}} {
		if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
}

// TestEachAlertHasCases: one in which it fires, and one in which it does not.
func TestEachAlertHasCases(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(cases)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Tests []struct {
			Rules []struct {
				Name  string `json:"alertname"`
				Fired []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, c := range file.Tests {
		for _, r := range c.Rules {
			if len(r.Fired) > 0 {
				fires[r.Name] = true
			} else {
				quiet[r.Name] = true
			}
		}
	}
	for _, a := range alerts(t) {
		if !fires[a.Alert] || !quiet[a.Alert] {
			t.Errorf("%s has a case in which it fires: %v; and one in which it does not: %v", a.Alert, fires[a.Alert], quiet[a.Alert])
		}
	}
}
