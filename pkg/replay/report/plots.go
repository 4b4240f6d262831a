// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"html/template"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/caldera-scheduler/caldera/pkg/replay/history"
)

// drawing is a plot as part of a page.
type drawing struct {
	Title string
	SVG   template.HTML
}

// The size of a plot. A page scales it to its width.
const (
	plotWidth  = 24 * vg.Centimeter
	plotHeight = 8 * vg.Centimeter
)

// curve is one line of a plot.
type curve struct {
	name   string
	points plotter.XYs
}

// plots are those of a report.
func (r *Report) plots() ([]drawing, error) {
	gpus := max(1, float64(r.GPUs))
	series := func(of func(run Run, hour int, h history.Hour) float64) []curve {
		var curves []curve
		for _, run := range r.Runs {
			c := curve{name: run.Name}
			for i, h := range run.shown() {
				c.points = append(c.points, plotter.XY{X: float64(i) / 24, Y: of(run, i, h)})
			}
			curves = append(curves, c)
		}
		return curves
	}
	all := []struct {
		title, x, y string
		curves      []curve
	}{
		{"Utilisation: GPUs held, in percent", "day", "%", series(func(_ Run, _ int, h history.Hour) float64 { return 100 * h.Held / gpus })},
		{"Jobs that wait", "day", "jobs", series(func(_ Run, _ int, h history.Hour) float64 { return float64(h.Jobs) })},
		{"Jobs of up to 8 GPUs that waited longer, in percent", hoursAxis, "%", r.waits(func(gpus float64) bool { return gpus <= large })},
		{"Jobs of more than 8 GPUs that waited longer, in percent", hoursAxis, "%", r.waits(func(gpus float64) bool { return gpus > large })},
		{"Fairness: Jain's index of what queues hold by what they are due", "day", "", series(func(run Run, i int, _ history.Hour) float64 { return run.Figures.Fairness.Index[i] })},
		{"GPUs that nobody holds though a job waits that asks for no more, in percent", "day", "%", series(func(_ Run, _ int, h history.Hour) float64 { return 100 * h.Stranded / gpus })},
		{"Fragmentation: GPUs that the average pod could not use, in percent", "day", "%", series(func(_ Run, _ int, h history.Hour) float64 { return 100 * h.Fragmented / gpus })},
		{"Evictions of jobs, by hour", "day", "jobs", series(func(_ Run, _ int, h history.Hour) float64 { return float64(h.Evictions) })},
	}
	var drawings []drawing
	for _, p := range all {
		d, err := drawn(p.title, p.x, p.y, p.curves)
		if err != nil {
			return nil, err
		}
		drawings = append(drawings, d)
	}
	for _, run := range r.Runs {
		d, err := drawn("Shares of queues in "+run.Name+": GPUs held, the eight queues that hold most", "day", "GPUs", shares(run))
		if err != nil {
			return nil, err
		}
		drawings = append(drawings, d)
	}
	return drawings, nil
}

const (
	// large is from how many GPUs on a job is larger than a usual node.
	large = 8
	// hoursAxis is the axis of waits: from a minute to a thousand hours.
	hoursAxis = "hours, as powers of ten"
)

// waits are the parts of jobs of some sizes that waited longer than a time, which is given as the power of ten of hours.
func (r *Report) waits(sized func(gpus float64) bool) []curve {
	var curves []curve
	for _, run := range r.Runs {
		var waits []float64
		jobs := 0.0
		for i, o := range run.History.Jobs {
			if !sized(run.trace.Jobs[i].AllGPUs()) {
				continue
			}
			jobs++
			if !o.Started() {
				waits = append(waits, math.Inf(1))
			} else if wait := (o.Start - o.Submit).Hours(); wait > 0 {
				waits = append(waits, wait)
			}
		}
		slices.Sort(waits)
		c := curve{name: run.Name}
		for x := math.Log10(1.0 / 60); x <= 3 && jobs > 0; x += 0.05 {
			at, _ := slices.BinarySearch(waits, math.Pow(10, x))
			c.points = append(c.points, plotter.XY{X: x, Y: 100 * float64(len(waits)-at) / jobs})
		}
		curves = append(curves, c)
	}
	return curves
}

// shown are the hours until the last job comes. After that the last long jobs may run for weeks, and nothing else is to be seen.
func (r Run) shown() []history.Hour {
	last := int(r.trace.Last()/history.Bucket) + 1
	return r.History.Hours[:min(last, len(r.History.Hours))]
}

// mostQueues is how many queues a plot shows.
const mostQueues = 8

// shares are what the queues hold that hold most.
func shares(run Run) []curve {
	sums := make([]float64, len(run.History.Queues))
	order := make([]int, len(sums))
	for i := range order {
		order[i] = i
	}
	for _, h := range run.History.Hours {
		for q, part := range h.Queues {
			sums[q] += part.Held
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case sums[a] > sums[b]:
			return -1
		case sums[a] < sums[b]:
			return 1
		}
		return 0
	})
	var curves []curve
	for _, q := range order[:min(mostQueues, len(order))] {
		c := curve{name: run.History.Queues[q]}
		for i, h := range run.shown() {
			c.points = append(c.points, plotter.XY{X: float64(i) / 24, Y: h.Queues[q].Held})
		}
		curves = append(curves, c)
	}
	return curves
}

// drawn draws a plot.
func drawn(title, x, y string, curves []curve) (drawing, error) {
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = x, y
	p.Legend.Top = true
	p.Legend.Padding = vg.Points(3)
	for _, style := range []*text.Style{
		&p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Label.TextStyle, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		// Machines without this font have one whose letters are as wide; the page names it.
		style.Font.Variant = "Sans"
	}
	p.Y.Min = 0
	p.Add(plotter.NewGrid())
	for i, c := range curves {
		if len(c.points) == 0 {
			continue
		}
		l, err := plotter.NewLine(thinned(c.points))
		if err != nil {
			return drawing{}, err
		}
		l.Color, l.Width = plotutil.Color(i), vg.Points(1)
		p.Add(l)
		p.Legend.Add(c.name, l)
	}
	// The legend is above the lines.
	if p.Y.Max *= 1.2; p.Y.Max <= 0 {
		p.Y.Max = 1
	}
	canvas := vgsvg.New(plotWidth, plotHeight)
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return drawing{}, fmt.Errorf("drawing %s: %w", title, err)
	}
	svg := b.Bytes()
	// In a page there is no prologue.
	if i := bytes.Index(svg, []byte("<svg")); i > 0 {
		svg = svg[i:]
	}
	return drawing{Title: title, SVG: template.HTML(svg)}, nil //nolint:gosec // names are escaped by the canvas
}

// mostPoints is how many points a line has: more are not to be seen.
const mostPoints = 1000

// thinned leaves of a long line the means of neighbours.
func thinned(points plotter.XYs) plotter.XYs {
	each := (len(points) + mostPoints - 1) / mostPoints
	if each <= 1 {
		return points
	}
	var thin plotter.XYs
	for some := range slices.Chunk(points, each) {
		sum := 0.0
		for _, p := range some {
			sum += p.Y
		}
		thin = append(thin, plotter.XY{X: some[0].X, Y: sum / float64(len(some))})
	}
	return thin
}
