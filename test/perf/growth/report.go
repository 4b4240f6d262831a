// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// matches reports whether an operation is among those that are asked for.
func (op *operation) matches(only string) bool { return strings.Contains(op.name, only) }

// profileFile is where the profile of an operation is written.
func profileFile(dir, name string) string {
	return filepath.Join(dir, strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))+".pprof")
}

// round is a time to three digits.
func round(d time.Duration) time.Duration {
	if d <= 0 {
		return d
	}
	return d.Round(time.Duration(math.Pow10(max(0, int(math.Log10(float64(d)))-2))))
}

// exponent is by which power of the number of nodes an operation grows from the first size to the last: 0 is flat, 1 is as the nodes. Of one size it is not known, and 0.
func exponent(all []result, op int) float64 {
	first, last := all[0], all[len(all)-1]
	if first.Nodes == last.Nodes {
		return 0
	}
	return math.Log(float64(last.Operations[op].Fastest)/float64(first.Operations[op].Fastest)) / math.Log(float64(last.Nodes)/float64(first.Nodes))
}

func writeJSON(out io.Writer, all []result) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	if err := e.Encode(all); err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	return nil
}

// readJSON reads what writeJSON wrote.
func readJSON(file string) (all []result, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the figures: %w", err)
	}
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("reading the figures of %s: %w", file, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no figures: write it with --output json", file)
	}
	return all, nil
}

// writeTable prints a row for each operation, and a column for each size.
func writeTable(out io.Writer, all []result) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") }
	header := []string{"nodes"}
	for _, r := range all {
		header = append(header, strconv.Itoa(r.Nodes))
	}
	row(append(header, "limit", "exponent")...)
	for i, op := range all[0].Operations {
		cells := []string{op.Name}
		for _, r := range all {
			cells = append(cells, round(r.Operations[i].Fastest).String())
		}
		limit := ""
		if op.Limit > 0 {
			limit = op.Limit.String()
		}
		row(append(cells, limit, fmt.Sprintf("%.2f", exponent(all, i)))...)
	}
	for _, line := range memoryLines(all) {
		cells := []string{line.name}
		for _, r := range all {
			cells = append(cells, line.of(r))
		}
		row(append(cells, "", "")...)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	_, err := fmt.Fprintln(out, "The fastest of some times. Bytes are those of the object, of kube-scheduler's cache and snapshot, and of Caldera's model.")
	if err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

// line is a row of the table besides those of operations.
type line struct {
	name string
	of   func(result) string
}

// memoryLines are about what the clusters take; none where no cluster was built to be scheduled on.
func memoryLines(all []result) []line {
	if all[0].Memory.Live == 0 {
		return nil
	}
	return []line{
		{"start: all is taken in", func(r result) string { return fmt.Sprintf("%.1fs", r.Start) }},
		{"live heap, MB", func(r result) string { return fmt.Sprintf("%.0f", r.Memory.Live/1e6) }},
		{"a node, bytes", func(r result) string { return r.Memory.Node.String() }},
		{"a bound pod, bytes", func(r result) string { return r.Memory.Bound.String() }},
		{"a waiting pod, bytes", func(r result) string { return r.Memory.Waiting.String() }},
		{"a queue, bytes", func(r result) string { return r.Memory.Queue.String() }},
	}
}

// String is the bytes of the object, of kube-scheduler and of Caldera.
func (c cost) String() string { return fmt.Sprintf("%.0f+%.0f+%.0f", c.Object, c.Upstream, c.Caldera) }

// draw writes a plot of how long each operation takes by the number of nodes, both axes logarithmic.
func draw(file string, all []result) error {
	p := plot.New()
	p.Title.Text = "Time of each operation by the number of nodes, with ten pods each"
	p.X.Label.Text, p.Y.Label.Text = "nodes", "milliseconds"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	ticks := plot.ConstantTicks{}
	for _, r := range all {
		ticks = append(ticks, plot.Tick{Value: float64(r.Nodes), Label: strconv.Itoa(r.Nodes)})
	}
	p.X.Tick.Marker = ticks
	// Beside the lines.
	p.Legend.Top, p.Legend.XOffs = true, vg.Length(0)
	var lines []any
	for i, op := range all[0].Operations {
		var points plotter.XYs
		for _, r := range all {
			points = append(points, plotter.XY{X: float64(r.Nodes), Y: float64(r.Operations[i].Fastest) / float64(time.Millisecond)})
		}
		lines = append(lines, fmt.Sprintf("%s (%.2f)", op.Name, exponent(all, i)), points)
	}
	if err := plotutil.AddLinePoints(p, lines...); err != nil {
		return fmt.Errorf("drawing %s: %w", file, err)
	}
	// Room for the legend above the lines, and for the last label beside the axis.
	n := len(all[0].Operations)
	p.Y.Max *= math.Pow(10, 0.29*float64(n))
	p.X.Max *= 1.3
	if err := p.Save(22*vg.Centimeter, vg.Length(max(n, 6))*1.5*vg.Centimeter, file); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}
