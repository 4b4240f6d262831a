// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// fit finds out what the samples come to. Caches fill in the first half.
func (r *result) fit() {
	half := len(r.Samples) / 2
	var jobs, heap []float64
	for i, s := range r.Samples {
		if i < half {
			r.FirstGoroutines = max(r.FirstGoroutines, s.Goroutines)
			continue
		}
		r.LastGoroutines = max(r.LastGoroutines, s.Goroutines)
		jobs, heap = append(jobs, float64(s.Jobs)), append(heap, float64(s.Heap))
	}
	_, r.Growth = stat.LinearRegression(jobs, heap, nil, false)
}

// judge says what of a result is too much.
func (o *options) judge(r *result) error {
	var errs []error
	if r.Growth > o.Growth {
		errs = append(errs, fmt.Errorf("each job leaves %.2f bytes of live heap behind; %v are allowed", r.Growth, o.Growth))
	}
	if more := r.LastGoroutines - r.FirstGoroutines; more > int64(o.Goroutines) {
		errs = append(errs, fmt.Errorf("there were %d goroutines in the first half and %d in the second; %d more are allowed",
			r.FirstGoroutines, r.LastGoroutines, o.Goroutines))
	}
	return errors.Join(errs...)
}

// tabulate writes the result for people.
func tabulate(out io.Writer, r *result) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(what, format string, values ...any) {
		fmt.Fprintf(table, "%s\t%s\n", what, fmt.Sprintf(format, values...))
	}
	first, last := r.Samples[0], r.Samples[len(r.Samples)-1]
	row("jobs that came and went", "%d in %s", last.Jobs, seconds(r.Took))
	row("live heap", "%.1f MB at first, %.1f MB in the end", megabytes(first.Heap), megabytes(last.Heap))
	row("left behind by a job", "%.2f bytes", r.Growth)
	row("resident", "%.1f MB at first, %.1f MB in the end", megabytes(first.Memory), megabytes(last.Memory))
	row("goroutines", "%d at most in the first half, %d in the second", r.FirstGoroutines, r.LastGoroutines)
	row("took over, and placed a gang, after", "%s", seconds(r.TakeOver))
	return table.Flush()
}

// draw writes a plot of the samples: memory above, goroutines on the same axis, since both are to be level.
func draw(file string, samples []sample) error {
	p := plot.New()
	p.Title.Text = "a scheduler that waits to lead, while jobs come and go"
	p.X.Label.Text, p.Y.Label.Text = "thousands of jobs that came and went", "MB, or goroutines"
	p.Y.Min = 0
	line := func(of func(sample) float64) plotter.XYs {
		points := make(plotter.XYs, len(samples))
		for i, s := range samples {
			points[i] = plotter.XY{X: float64(s.Jobs) / 1000, Y: of(s)}
		}
		return points
	}
	err := plotutil.AddLines(p,
		"resident memory, MB", line(func(s sample) float64 { return megabytes(s.Memory) }),
		"live heap, MB", line(func(s sample) float64 { return megabytes(s.Heap) }),
		"goroutines", line(func(s sample) float64 { return float64(s.Goroutines) }),
	)
	if err != nil {
		return fmt.Errorf("drawing %s: %w", file, err)
	}
	p.Legend.Top = true
	if err := p.Save(16*vg.Centimeter, 10*vg.Centimeter, file); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}
