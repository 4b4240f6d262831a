// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/caldera-scheduler/caldera/pkg/simulate"
)

// Comparison is what happens without some changes of the objects, and with them.
type Comparison struct {
	Without *simulate.Result `json:"without"`
	With    *simulate.Result `json:"with"`
}

// Compare writes a comparison in the format of a name: a table of the jobs to which something else happens, or all of both results.
func Compare(out io.Writer, format string, c Comparison) error {
	switch format {
	case "table":
		return c.table(out)
	case "json":
		return encode(out, c)
	}
	return fmt.Errorf("output %q cannot compare: use table or json", format)
}

// fate is what happens to a job, in words, and where its pods are in the end.
type fate struct{ text, places string }

// fates are those of all jobs of a result, by name.
func fates(r *simulate.Result) map[string]fate {
	places := map[string]map[string]int{}
	for _, p := range r.Pods {
		if !p.Placed() {
			continue
		}
		job := p.Namespace + "/" + cmp.Or(p.Job, p.Name)
		if places[job] == nil {
			places[job] = map[string]int{}
		}
		places[job][p.Node]++
	}
	all := map[string]fate{}
	for _, j := range r.Jobs {
		all[j.String()] = fate{text: outcome(j), places: placesOf(places[j.String()])}
	}
	return all
}

// outcome is what happens to a job, without the places.
func outcome(j simulate.Job) string {
	text := fmt.Sprintf("%d/%d pods placed", j.Placed, max(j.Pods, j.MinMember))
	if j.Evicted > 0 {
		text += fmt.Sprintf(", %d evicted", j.Evicted)
	}
	if j.Waits != nil {
		text += ", waits: " + string(j.Waits.Kind)
	}
	return text
}

// placesOf are nodes with how many pods each has.
func placesOf(pods map[string]int) string {
	var parts []string
	for _, node := range slices.Sorted(maps.Keys(pods)) {
		parts = append(parts, fmt.Sprintf("%s (%d)", node, pods[node]))
	}
	return list(parts)
}

// table writes the jobs to which something else happens.
func (c Comparison) table(out io.Writer) error {
	without, with := fates(c.Without), fates(c.With)
	queues := map[string]string{}
	for _, r := range []*simulate.Result{c.Without, c.With} {
		for _, j := range r.Jobs {
			queues[j.String()] = j.Queue
		}
	}
	t := newTable("JOB", "QUEUE", "WITHOUT", "WITH", "NODES")
	same := 0
	for _, job := range slices.Sorted(maps.Keys(queues)) {
		before, after := without[job], with[job]
		if before == after {
			same++
			continue
		}
		t.AppendRow(table.Row{job, queues[job], cmp.Or(before.text, none), cmp.Or(after.text, "gone"), cmp.Or(after.places, none)})
	}
	var b strings.Builder
	if t.Length() == 0 {
		fmt.Fprintf(&b, "The changes change nothing for any of %s.\n", count(same, "job"))
	} else {
		fmt.Fprintf(&b, "Something else happens to %s; %d are as without the changes.\n\n%s\n", count(t.Length(), "job"), same, render(t))
	}
	for _, r := range []*simulate.Result{c.Without, c.With} {
		if !r.Settled {
			fmt.Fprintf(&b, "\nStopped after %s: more would happen.\n", count(r.Rounds, "round"))
			break
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}
