// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report writes what replays came to: as a table, JSON, CSV, or a page with plots. Several replays of one trace are laid side by side.
package report

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/caldera-scheduler/caldera/pkg/replay/figures"
	"github.com/caldera-scheduler/caldera/pkg/replay/history"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
)

// Run is one replay of a trace.
type Run struct {
	// Name says by what it was decided.
	Name string
	// Figures are those of the history.
	Figures figures.Figures
	History *history.History
	// trace is what was played.
	trace *trace.Trace
}

// Report is several replays of one trace.
type Report struct {
	// Scenario names what was played, About is what it is for.
	Scenario string
	About    string
	// Nodes, GPUs and Jobs are how many there are.
	Nodes, GPUs, Jobs int
	Runs              []Run
	// once: jobs come once.
	once bool
}

// New returns a report without replays.
func New(scenario, about string, t *trace.Trace) *Report {
	return &Report{Scenario: scenario, About: about, Nodes: len(t.Nodes), GPUs: t.GPUs(), Jobs: len(t.Jobs), once: t.Once}
}

// Played is a trace and what happened when it was played.
type Played struct {
	Trace   *trace.Trace
	History *history.History
}

// Add adds a replay. Of several, of traces that differ by chance, the parts that are allocated are means over all of them, and all else is of the first.
func (r *Report) Add(name string, first Played, others ...Played) {
	f := figures.Of(first.Trace, first.History)
	arrived := [][]figures.Arrived{f.Arrived}
	for _, p := range others {
		arrived = append(arrived, figures.Of(p.Trace, p.History).Arrived)
	}
	f.Arrived = figures.Mean(arrived)
	r.Runs = append(r.Runs, Run{Name: name, Figures: f, History: first.History, trace: first.Trace})
}

// formats are the ways to write a report.
var formats = []struct {
	name  string
	write func(io.Writer, *Report) error
}{
	{"table", Table},
	{"json", JSON},
	{"html", HTML},
	{"csv", Series},
	{"jobs", Jobs},
}

// Formats are the names of the ways to write a report; the first is the default.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// Write writes a report in the format of a name.
func Write(out io.Writer, format string, r *Report) error {
	for _, f := range formats {
		if f.name == format {
			return f.write(out, r)
		}
	}
	return fmt.Errorf("output %q is not known: use one of %s", format, strings.Join(Formats(), ", "))
}

// document is a report in JSON.
type document struct {
	Scenario string        `json:"scenario"`
	About    string        `json:"about,omitempty"`
	Nodes    int           `json:"nodes"`
	GPUs     int           `json:"gpus"`
	Jobs     int           `json:"jobs"`
	Runs     []documentRun `json:"runs"`
}

// documentRun is a replay in JSON.
type documentRun struct {
	Name    string          `json:"name"`
	Figures figures.Figures `json:"figures"`
	// Queues are the names of the queues of each hour.
	Queues []string       `json:"queues"`
	Hours  []history.Hour `json:"hours"`
}

// JSON writes the figures and the series, but not what became of each job. Times are in seconds.
func JSON(out io.Writer, r *Report) error {
	d := document{Scenario: r.Scenario, About: r.About, Nodes: r.Nodes, GPUs: r.GPUs, Jobs: r.Jobs, Runs: []documentRun{}}
	for _, run := range r.Runs {
		d.Runs = append(d.Runs, documentRun{Name: run.Name, Figures: run.Figures, Queues: run.History.Queues, Hours: run.History.Hours})
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return fmt.Errorf("writing a report: %w", err)
	}
	return nil
}

// lines writes a CSV file.
func lines(out io.Writer, header []string, each func(line func(...any))) error {
	w := csv.NewWriter(out)
	errs := []error{w.Write(header)}
	each(func(values ...any) {
		record := make([]string, len(values))
		for i, v := range values {
			switch v := v.(type) {
			case float64:
				record[i] = strconv.FormatFloat(v, 'f', -1, 64)
			default:
				record[i] = fmt.Sprint(v)
			}
		}
		errs = append(errs, w.Write(record))
	})
	w.Flush()
	if err := errors.Join(append(errs, w.Error())...); err != nil {
		return fmt.Errorf("writing a report: %w", err)
	}
	return nil
}

// Series writes what was so in each hour, one value a line.
func Series(out io.Writer, r *Report) error {
	return lines(out, []string{"run", "hour", "series", "queue", "value"}, func(line func(...any)) {
		for _, run := range r.Runs {
			for i, h := range run.History.Hours {
				line(run.Name, i, "held", "", h.Held)
				line(run.Name, i, "waiting", "", h.Waiting)
				line(run.Name, i, "stranded", "", h.Stranded)
				line(run.Name, i, "fragmented", "", h.Fragmented)
				line(run.Name, i, "jobs waiting", "", h.Jobs)
				line(run.Name, i, "evictions", "", h.Evictions)
				line(run.Name, i, "jain", "", run.Figures.Fairness.Index[i])
				for q, part := range h.Queues {
					line(run.Name, i, "held", run.History.Queues[q], part.Held)
					line(run.Name, i, "entitled", run.History.Queues[q], part.Entitled)
				}
			}
		}
	})
}

// Jobs writes what became of each job, one a line. Times are in seconds from the beginning; empty: never.
func Jobs(out io.Writer, r *Report) error {
	return lines(out, []string{"run", "job", "queue", "gpus", "workers", "submit_s", "start_s", "end_s", "duration_s", "evictions", "lost_gpu_s"}, func(line func(...any)) {
		for _, run := range r.Runs {
			for i, o := range run.History.Jobs {
				j := run.trace.Jobs[i]
				var start, end any = "", ""
				if o.Started() {
					start = o.Start.Seconds()
				}
				if o.Ended() {
					end = o.End.Seconds()
				}
				line(run.Name, j.ID, j.Queue, j.AllGPUs(), j.Workers, o.Submit.Seconds(), start, end, j.Duration.Seconds(), o.Evictions, o.Lost)
			}
		}
	})
}
