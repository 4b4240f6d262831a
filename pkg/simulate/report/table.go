// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/simulate"
)

// namesShown is how many pods a line of a table names.
const namesShown = 6

// Table writes a result for people: what was bound where, what waits and why, the jobs and the queues.
func Table(out io.Writer, r *simulate.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", summary(r))
	for _, section := range []struct {
		title string
		table table.Writer
	}{
		{"BOUND", boundTable(r)},
		{"EVICTED", evictedTable(r)},
		{"WAITING", waitingTable(r)},
		{"JOBS", jobTable(r)},
		{"QUEUES", queueTable(r)},
	} {
		if section.table.Length() > 0 {
			fmt.Fprintf(&b, "\n%s\n%s\n", section.title, render(section.table))
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// summary is the first line.
func summary(r *simulate.Result) string {
	var bound, before, waiting int
	for _, p := range r.Pods {
		switch {
		case p.Round > 0:
			bound++
		case p.Placed():
			before++
		case p.State == simulate.PodPending:
			waiting++
		}
	}
	evicted := 0
	for _, j := range r.Jobs {
		evicted += j.Evicted
	}
	end := "Nothing more happens after"
	if !r.Settled {
		end = "Stopped after"
	}
	return fmt.Sprintf("%s %s: %s bound, %d evicted, %d waiting; %d ran from the start.",
		end, count(r.Rounds, "round"), count(bound, "pod"), evicted, waiting, before)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// newTable returns a table that looks like kubectl's.
func newTable(header ...any) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Box = table.BoxStyle{PaddingRight: "   "}
	style.Options = table.OptionsNoBordersAndSeparators
	t.SetStyle(style)
	t.AppendHeader(header)
	return t
}

// render draws a table without blanks at the ends of lines.
func render(t table.Writer) string {
	lines := strings.Split(t.Render(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// boundTable says where the simulation placed what, a line for each job, round and node.
func boundTable(r *simulate.Result) table.Writer {
	type place struct {
		job   string
		round int
		node  string
	}
	pods := map[place][]string{}
	for _, p := range r.Pods {
		if p.Round > 0 {
			at := place{job: p.Namespace + "/" + cmp.Or(p.Job, p.Name), round: p.Round, node: p.Node}
			pods[at] = append(pods[at], p.Name)
		}
	}
	places := slices.SortedFunc(maps.Keys(pods), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.job, b.job), cmp.Compare(a.node, b.node))
	})
	t := newTable("ROUND", "JOB", "NODE", "COUNT", "PODS")
	for _, at := range places {
		t.AppendRow(table.Row{at.round, at.job, at.node, len(pods[at]), list(pods[at])})
	}
	return t
}

// list names some pods and counts the rest.
func list(names []string) string {
	if len(names) <= namesShown {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namesShown], ", "), len(names)-namesShown)
}

// evictedTable lists the jobs that lost pods.
func evictedTable(r *simulate.Result) table.Writer {
	t := newTable("JOB", "QUEUE", "EVICTED", "LEFT")
	for _, j := range r.Jobs {
		if j.Evicted > 0 {
			t.AppendRow(table.Row{j.String(), j.Queue, j.Evicted, j.Placed})
		}
	}
	return t
}

// waitingTable says why jobs, and pods of other profiles, wait.
func waitingTable(r *simulate.Result) table.Writer {
	t := newTable("JOB", "QUEUE", "REASON", "MESSAGE")
	jobs := map[string]bool{}
	for _, j := range r.Jobs {
		jobs[j.String()] = true
		if j.Waits != nil {
			t.AppendRow(table.Row{j.String(), j.Queue, j.Waits.Kind, j.Waits.Message})
		}
	}
	for _, p := range r.Pods {
		if p.State == simulate.PodPending && !jobs[p.Namespace+"/"+cmp.Or(p.Job, p.Name)] {
			t.AppendRow(table.Row{p.Namespace + "/" + p.Name, none, corev1.PodReasonUnschedulable, cmp.Or(p.Message, none)})
		}
	}
	return t
}

// none stands for a value that there is not.
const none = "-"

// jobTable lists all jobs.
func jobTable(r *simulate.Result) table.Writer {
	t := newTable("JOB", "QUEUE", "PHASE", "MIN", "PODS", "PLACED", "SHARE")
	for _, j := range r.Jobs {
		share := none
		if s, ok := r.Final.JobShares[j.String()]; ok {
			share = decimal(s)
		}
		t.AppendRow(table.Row{j.String(), j.Queue, cmp.Or(string(j.Phase), none), j.MinMember, j.Pods, j.Placed, share})
	}
	return t
}

// queueTable lists all queues with their figures at the end.
func queueTable(r *simulate.Result) table.Writer {
	t := newTable("QUEUE", "PARENT", "STATE", "SHARE", "ALLOCATED", "DESERVED", "LIMIT")
	for _, q := range r.Queues {
		f := r.Final.Queues[q.Name]
		share := none
		if f.Share != nil {
			share = decimal(*f.Share)
		}
		t.AppendRow(table.Row{
			q.Name, cmp.Or(q.Parent, none), cmp.Or(string(q.State), none), share,
			amounts(f.Allocated), amounts(f.Deserved), amounts(f.RealCapability),
		})
	}
	return t
}

func decimal(f float64) string { return strconv.FormatFloat(math.Round(f*1000)/1000, 'f', -1, 64) }

// amounts writes amounts as users write quantities; those without a limit are left out.
func amounts(a simulate.Amounts) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if value := a[name]; value != 0 && !math.IsInf(value, 1) {
			parts = append(parts, fmt.Sprintf("%s=%s", name, resource.Quantity[float64]{Name: name, Value: value}.Format()))
		}
	}
	return cmp.Or(strings.Join(parts, " "), none)
}
