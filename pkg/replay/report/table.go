// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/caldera-scheduler/caldera/pkg/replay/figures"
)

// row is a figure: what it is called, and what it is in a run.
type row struct {
	name  string
	value func(figures.Figures) string
}

// section is rows under a title.
type section struct {
	title string
	rows  []row
}

// fairness is the title of the section about queues.
const fairness = "FAIRNESS (Jain)"

// sections are the figures in the order in which people read them. Classes are added for what a trace has.
func (r *Report) sections() []section {
	all := []section{
		{"CLUSTER", []row{
			{"load", func(f figures.Figures) string { return percent(f.Load) }},
			{"utilisation", func(f figures.Figures) string { return percent(f.Utilisation) }},
			{"stranded", func(f figures.Figures) string { return percent(f.Stranded) }},
			{"fragmented", func(f figures.Figures) string { return percent(f.Fragmented) }},
			{"makespan", func(f figures.Figures) string { return span(f.Makespan) }},
		}},
		{"WAIT", append(spread(func(f figures.Figures) figures.Distribution { return f.Wait }),
			row{"never started", func(f figures.Figures) string { return fmt.Sprint(f.Unstarted) }},
			row{"overtaken jobs", func(f figures.Figures) string { return fmt.Sprint(f.Overtook.Jobs) }},
			row{"overtaken by, at most", func(f figures.Figures) string { return span(f.Overtook.Most) }},
		)},
		{"SLOWDOWN", []row{
			{"mean", func(f figures.Figures) string { return ratio(f.Slowdown.Mean) }},
			{"p50", func(f figures.Figures) string { return ratio(f.Slowdown.P50) }},
			{"p95", func(f figures.Figures) string { return ratio(f.Slowdown.P95) }},
			{"p99", func(f figures.Figures) string { return ratio(f.Slowdown.P99) }},
		}},
		{fairness, []row{
			{"mean by hour", func(f figures.Figures) string { return index(f.Fairness.Mean) }},
			{"least by hour", func(f figures.Figures) string { return index(f.Fairness.Least) }},
			{"hours below 0.9", func(f figures.Figures) string { return fmt.Sprintf("%d of %d", f.Fairness.Unfair, f.Fairness.Hours) }},
			{"least by week", func(f figures.Figures) string { return weekly(f.Fairness.Weeks) }},
			{"longest below half of due", func(f figures.Figures) string { return span(f.Fairness.Starved) }},
		}},
		{"EVICTIONS", []row{
			{"jobs evicted", func(f figures.Figures) string { return fmt.Sprint(f.Evicted.Evictions) }},
			{"an hour", func(f figures.Figures) string { return fmt.Sprintf("%.2f", f.Evicted.PerHour) }},
			{"jobs hit twice or more", func(f figures.Figures) string { return fmt.Sprint(f.Evicted.Twice) }},
			{"GPU hours lost", func(f figures.Figures) string { return fmt.Sprintf("%.0f", f.Evicted.LostGPUHours) }},
		}},
	}
	if !slices.ContainsFunc(r.Runs, func(run Run) bool { return run.Figures.Fairness.Hours > 0 }) {
		// There was never more than one queue.
		all = slices.DeleteFunc(all, func(s section) bool { return s.title == fairness })
	}
	all = append(all, r.told("TOLD A BOUND", func(f figures.Figures) figures.Promised { return f.Promises.Bounds })...)
	all = append(all, r.told("TOLD AN ESTIMATE", func(f figures.Figures) figures.Promised { return f.Promises.Estimates })...)
	if slices.ContainsFunc(r.Runs, func(run Run) bool { return run.Figures.Switches.Max > 0 }) {
		all = append(all, section{"SWITCHES A GANG", []row{
			{"mean", func(f figures.Figures) string { return known(f.Switches.Mean) }},
			{"p95", func(f figures.Figures) string { return known(f.Switches.P95) }},
			{"most", func(f figures.Figures) string { return known(f.Switches.Max) }},
		}})
	}
	if r.once {
		all = r.inflated()
	}
	for _, name := range r.classes() {
		if r.once {
			break
		}
		all = append(all, section{"WAIT, " + strings.ToUpper(name[:1]) + name[1:], append([]row{{"jobs", func(f figures.Figures) string {
			return fmt.Sprint(classOf(f, name).Jobs)
		}}}, spread(func(f figures.Figures) figures.Distribution { return classOf(f, name).Wait })...)})
	}
	return all
}

// told is the section about jobs that were told by when they start; none where no run has any.
func (r *Report) told(title string, of func(figures.Figures) figures.Promised) []section {
	if !slices.ContainsFunc(r.Runs, func(run Run) bool { return of(run.Figures).Jobs > 0 }) {
		return nil
	}
	return []section{{title, []row{
		{"jobs", func(f figures.Figures) string { return fmt.Sprint(of(f).Jobs) }},
		{"started later, or never", func(f figures.Figures) string { return fmt.Sprint(of(f).Missed) }},
		{"later by, mean of all", func(f figures.Figures) string { return span(of(f).Late.Mean) }},
		{"later by, at most", func(f figures.Figures) string { return span(of(f).Late.Max) }},
		{"told ahead, mean", func(f figures.Figures) string { return span(of(f).Ahead.Mean) }},
	}}}
}

// points are the parts of the GPUs asked for, in percent, at which a table tells what is allocated.
func points() []int { return []int{50, 80, 90, 100, 110, 120, 130} }

// inflated are the sections of a trace whose jobs come once.
func (r *Report) inflated() []section {
	at := func(f figures.Figures, percent int, of func(figures.Arrived) float64) string {
		for _, a := range f.Arrived {
			if a.Percent == percent {
				return fmt.Sprintf("%.2f %%", 100*of(a))
			}
		}
		return "-"
	}
	allocated, fragmented := section{title: "ALLOCATED, of all GPUs"}, section{title: "FRAGMENTED, of all GPUs"}
	for _, percent := range points() {
		name := fmt.Sprintf("when %d %% were asked for", percent)
		allocated.rows = append(allocated.rows, row{name, func(f figures.Figures) string {
			return at(f, percent, func(a figures.Arrived) float64 { return a.Allocated })
		}})
		fragmented.rows = append(fragmented.rows, row{name, func(f figures.Figures) string {
			return at(f, percent, func(a figures.Arrived) float64 { return a.Fragmented })
		}})
	}
	refused := section{"JOBS", []row{{"refused", func(f figures.Figures) string { return fmt.Sprint(f.Unstarted) }}}}
	return []section{allocated, fragmented, refused}
}

// classes are the names of the classes of jobs that any run has, in order.
func (r *Report) classes() []string {
	var names []string
	seen := map[string]bool{}
	for _, run := range r.Runs {
		for _, c := range run.Figures.Classes {
			if !seen[c.Name] {
				seen[c.Name] = true
				names = append(names, c.Name)
			}
		}
	}
	return names
}

func classOf(f figures.Figures, name string) figures.Class {
	for _, c := range f.Classes {
		if c.Name == name {
			return c
		}
	}
	return figures.Class{}
}

// spread are the rows of a distribution of times.
func spread(of func(figures.Figures) figures.Distribution) []row {
	return []row{
		{"mean", func(f figures.Figures) string { return span(of(f).Mean) }},
		{"p50", func(f figures.Figures) string { return span(of(f).P50) }},
		{"p95", func(f figures.Figures) string { return span(of(f).P95) }},
		{"p99", func(f figures.Figures) string { return span(of(f).P99) }},
		{"most", func(f figures.Figures) string { return span(of(f).Max) }},
	}
}

// Table writes a report for people.
func Table(out io.Writer, r *Report) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d jobs on %d nodes with %d GPUs\n", r.Scenario, r.Jobs, r.Nodes, r.GPUs)
	if r.About != "" {
		fmt.Fprintln(&b, r.About)
	}
	t := table.NewWriter()
	style := table.StyleDefault
	style.Box = table.BoxStyle{PaddingRight: "   "}
	style.Options = table.OptionsNoBordersAndSeparators
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	header := table.Row{""}
	configs := []table.ColumnConfig{}
	for i, run := range r.Runs {
		header = append(header, run.Name)
		configs = append(configs, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(header)
	t.SetColumnConfigs(configs)
	for _, s := range r.sections() {
		t.AppendRow(table.Row{s.title})
		for _, line := range s.rows {
			cells := table.Row{"  " + line.name}
			for _, run := range r.Runs {
				cells = append(cells, line.value(run.Figures))
			}
			t.AppendRow(cells)
		}
	}
	for line := range strings.Lines(t.Render()) {
		fmt.Fprintln(&b, strings.TrimRight(line, " \n"))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func percent(part float64) string { return fmt.Sprintf("%.1f %%", 100*part) }

func ratio(x float64) string { return fmt.Sprintf("%.2f", x) }

// known is a number that is 0 where it is not known.
func known(x float64) string {
	if x == 0 {
		return "-"
	}
	return ratio(x)
}

func index(x float64) string { return fmt.Sprintf("%.3f", x) }

// weekly is the least index of some weeks.
func weekly(indices []float64) string {
	if len(indices) == 0 {
		return "-"
	}
	return index(slices.Min(indices))
}

// span is a time as people say it: two units at most.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second)).Round(time.Second)
	const day = 24 * time.Hour
	switch {
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}
