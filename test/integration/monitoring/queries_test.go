// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/test/integration/prometheus"
)

// dashboard is the part of Grafana's model of a dashboard by which it asks Prometheus.
type dashboard struct {
	name       string
	Templating struct {
		List []struct {
			Name, Type string
			// Definition is label_values(METRIC, LABEL).
			Definition string
			Multi      bool
			AllValue   string
		}
	}
	Panels []struct {
		Title   string
		Targets []struct {
			RefID, Expr string
			Instant     bool
		}
	}
}

func dashboards(t *testing.T) (list []dashboard) {
	t.Helper()
	files, err := fs.Glob(manifests.Monitoring, "monitoring/dashboards/*.json")
	if err != nil || len(files) != 4 {
		t.Fatalf("there are %d dashboards, want 4; error %v", len(files), err)
	}
	for _, file := range files {
		data, err := manifests.Monitoring.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := dashboard{name: strings.TrimSuffix(path.Base(file), ".json")}
		if err := json.Unmarshal(data, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		list = append(list, d)
	}
	return list
}

// asker asks a Prometheus what Grafana would, for the time since a workload began.
type asker struct {
	*prometheus.Prometheus
	t     *testing.T
	since time.Time
}

// series is an answer to a query: one value, or several over time.
type series struct {
	Metric map[string]string
	Value  sample
	Values []sample
}

// sample is a time and a number, written as a string.
type sample [2]any

// number reports whether it is one: a quantile of nothing is not.
func (s sample) number() bool {
	text, ok := s[1].(string)
	value, err := strconv.ParseFloat(text, 64)
	return ok && err == nil && !math.IsNaN(value)
}

func seconds(at time.Time) string {
	return strconv.FormatFloat(float64(at.UnixMilli())/1000, 'f', 3, 64)
}

// lacks says what is wrong with the answer to a query: an error, or that there are no numbers in it; empty when there are some.
func (a *asker) lacks(query string, instant bool) string {
	now := time.Now()
	form, at := url.Values{"query": {query}}, "query_range"
	if instant {
		at = "query"
		form.Set("time", seconds(now))
	} else {
		form.Set("start", seconds(a.since))
		form.Set("end", seconds(now))
		form.Set("step", "2")
	}
	var data struct{ Result []series }
	if err := a.Get(a.t.Context(), at, form, &data); err != nil {
		return err.Error()
	}
	for _, s := range data.Result {
		if s.Value.number() || slices.ContainsFunc(s.Values, sample.number) {
			return ""
		}
	}
	return fmt.Sprintf("no numbers in %d series", len(data.Result))
}

// values are those that a variable of a dashboard can have, which Grafana asks for when it shows the dashboard.
func (a *asker) values(definition string) ([]string, error) {
	inner := strings.TrimSuffix(strings.TrimPrefix(definition, "label_values("), ")")
	metric, label, ok := strings.Cut(inner, ", ")
	if !ok {
		return nil, fmt.Errorf("a variable is defined by %q", definition)
	}
	var values []string
	err := a.Get(a.t.Context(), "label/"+label+"/values", url.Values{"match[]": {metric}}, &values)
	return values, err
}

// settings are all ways in which Grafana may replace the variables of a dashboard: each value of one that has a single one, and all of one
// that may have several. The others are Grafana's own.
func (a *asker) settings(d *dashboard) (all []*strings.Replacer, problem string) {
	lists := [][]string{{"$__rate_interval", "1m", "$__range", fmt.Sprintf("%ds", int(time.Since(a.since).Seconds()))}}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		values, err := a.values(v.Definition)
		switch {
		case err != nil:
			return nil, err.Error()
		case len(values) == 0:
			return nil, fmt.Sprintf("the variable %s of %s has no values", v.Name, d.name)
		case v.Multi:
			values = []string{v.AllValue, strings.Join(values, "|")}
		}
		var more [][]string
		for _, list := range lists {
			for _, value := range values {
				more = append(more, append(slices.Clone(list), "$"+v.Name, value))
			}
		}
		lists = more
	}
	for _, list := range lists {
		all = append(all, strings.NewReplacer(list...))
	}
	return all, ""
}

// unanswered are the queries of a dashboard for which Prometheus has no data, with what it says. A query with a variable has to have data for some value
// of it: not every queue is due devices.
func (a *asker) unanswered(d *dashboard) (list []string) {
	settings, problem := a.settings(d)
	if problem != "" {
		return []string{problem}
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			said := map[string]bool{}
			for _, s := range settings {
				query := s.Replace(target.Expr)
				if strings.Contains(query, "$") {
					return []string{fmt.Sprintf("%s, %s: a variable is not defined: %s", d.name, p.Title, query)}
				}
				said[a.lacks(query, target.Instant)] = true
			}
			if !said[""] {
				list = append(list, fmt.Sprintf("%s, %s: %s: %q", d.name, p.Title, target.Expr, slices.Sorted(maps.Keys(said))))
			}
		}
	}
	return list
}

// node is one of a query as Prometheus parses it.
type node struct {
	Type, Op string
	LHS      json.RawMessage
	RHS      struct{ Type string }
}

// compared cuts the comparison off an alert: what is compared with a number is there all the time, what fires is most often not. That the text is cut
// at the right place is compared with what Prometheus takes for the two sides.
func (a *asker) compared(expr string) (query string, err error) {
	const operator = " > "
	at := strings.LastIndex(expr, operator)
	if below := strings.LastIndex(expr, " < "); below > at {
		at = below
	}
	if at < 0 {
		return "", fmt.Errorf("%s compares nothing", expr)
	}
	query = expr[:at]
	var whole node
	if err := a.Get(a.t.Context(), "parse_query", url.Values{"query": {expr}}, &whole); err != nil {
		return "", err
	}
	if whole.Type != "binaryExpr" || whole.Op != strings.TrimSpace(expr[at:at+len(operator)]) || whole.RHS.Type != "numberLiteral" {
		return "", fmt.Errorf("%s is a %s with %q and a %s, want a comparison with a number", expr, whole.Type, whole.Op, whole.RHS.Type)
	}
	var part, left any
	if err := a.Get(a.t.Context(), "parse_query", url.Values{"query": {query}}, &part); err != nil {
		return "", err
	}
	if err := json.Unmarshal(whole.LHS, &left); err != nil {
		return "", err
	}
	if diff := cmp.Diff(left, part); diff != "" {
		return "", fmt.Errorf("%s: what is compared is not %s: %s", expr, query, diff)
	}
	return query, nil
}
