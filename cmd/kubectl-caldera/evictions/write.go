// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
)

// write writes the decisions; with all details in the table if that is wanted.
func write(out io.Writer, format string, doc *eviction.Document, details bool, now time.Time) error {
	switch format {
	case "json":
		text, err := json.MarshalIndent(doc, "", "  ")
		if err != nil {
			return fmt.Errorf("writing JSON: %w", err)
		}
		_, err = fmt.Fprintln(out, string(text))
		return err
	case "yaml":
		text, err := yaml.Marshal(doc)
		if err != nil {
			return fmt.Errorf("writing YAML: %w", err)
		}
		_, err = out.Write(text)
		return err
	}
	if len(doc.Decisions) == 0 {
		_, err := fmt.Fprintln(out, "No such evictions are remembered; a scheduler that does not lead remembers none.")
		return err
	}
	if details || format == "wide" {
		return writeDetails(out, doc.Decisions, now)
	}
	return writeTable(out, doc.Decisions, now)
}

// columns writes rows with aligned columns, after an indent.
func columns(out io.Writer, indent string, rows [][]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = cmp.Or(row[i], "-")
		}
		fmt.Fprintln(w, indent+strings.Join(row, "\t"))
	}
	return w.Flush()
}

// writeTable writes one line a decision.
func writeTable(out io.Writer, decisions []eviction.DecisionRecord, now time.Time) error {
	rows := [][]string{{"AGE", "ACTION", "JOB", "QUEUE", "FROM", "VICTIMS", "OUTCOME"}}
	for _, d := range decisions {
		rows = append(rows, []string{
			age(now.Sub(d.Time.Time)), d.Action, name(d.Job), d.Job.Queue, strings.Join(victimQueues(d), ","), victims(d), string(d.Outcome),
		})
	}
	return columns(out, "", rows)
}

// writeDetails writes one paragraph a decision.
func writeDetails(out io.Writer, decisions []eviction.DecisionRecord, now time.Time) error {
	for i, d := range decisions {
		if i > 0 {
			fmt.Fprintln(out)
		}
		outcome := string(d.Outcome)
		if d.Ended != nil {
			outcome += " after " + age(d.Ended.Sub(d.Time.Time))
		}
		fmt.Fprintf(out, "%s ago: %s%s; %s evicted: %s\n", age(now.Sub(d.Time.Time)), d.Action, purpose(d), victims(d), outcome)
		if d.Problem != "" {
			fmt.Fprintf(out, "  %s\n", d.Problem)
		}
		rows := [][]string{{"VICTIM", "JOB", "QUEUE", "NODE", "STATE", "RULE"}}
		for _, v := range d.Victims {
			rows = append(rows, []string{v.Namespace + "/" + v.Name, name(v.Job), v.Job.Queue, where(v), string(v.State), v.Rule})
		}
		if err := columns(out, "  ", rows); err != nil {
			return err
		}
		for _, k := range d.Kept {
			fmt.Fprintf(out, "  %s kept: %s\n", pods(k.Pods), k.Reason)
		}
	}
	return nil
}

// where is the node that a victim is on, and to which one it is moved if it is.
func where(v eviction.VictimRecord) string {
	if v.MovesTo == "" {
		return v.Node
	}
	return v.Node + " to " + v.MovesTo
}

// purpose is for whom a decision was made; empty when it was for nobody.
func purpose(d eviction.DecisionRecord) string {
	if d.Job == (eviction.JobRecord{}) {
		return ""
	}
	return fmt.Sprintf(" for %s in queue %s, to start %s", name(d.Job), d.Job.Queue, pods(len(d.Members)))
}

// victimQueues are the queues of a decision's victims.
func victimQueues(d eviction.DecisionRecord) []string {
	queues := map[string]bool{}
	for _, v := range d.Victims {
		queues[v.Job.Queue] = true
	}
	return slices.Sorted(maps.Keys(queues))
}

// victims are the pods that were evicted, of those that were chosen.
func victims(d eviction.DecisionRecord) string {
	evicted := 0
	for _, v := range d.Victims {
		if v.Evicted {
			evicted++
		}
	}
	return fmt.Sprintf("%d/%d", evicted, len(d.Victims))
}

func name(j eviction.JobRecord) string {
	if j == (eviction.JobRecord{}) {
		return ""
	}
	return j.Namespace + "/" + j.Name
}

// age is a time that has passed, as kubectl writes it. Clocks may differ.
func age(d time.Duration) string { return duration.HumanDuration(max(0, d)) }

func pods(n int) string {
	if n == 1 {
		return "1 pod"
	}
	return fmt.Sprintf("%d pods", n)
}
