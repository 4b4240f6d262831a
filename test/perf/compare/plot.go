// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/caldera-scheduler/caldera/test/perf/median"
)

// plotAll draws the throughput by gang size for each number of nodes, and by number of nodes for each shape of gangs, where more than
// one was measured.
func plotAll(dir string, contenders []contender, records []record) error {
	size := axis{label: "pods in a gang", of: func(s scenario) int { return s.Size }}
	nodes := axis{label: "nodes", of: func(s scenario) int { return s.Nodes }}
	by := map[string][]record{}
	for _, r := range records {
		key := fmt.Sprintf("gang-size-%d-nodes", r.Scenario.Nodes)
		by[key] = append(by[key], r)
		key = fmt.Sprintf("nodes-%dx%d", r.Scenario.Gangs, r.Scenario.Size)
		by[key] = append(by[key], r)
	}
	for key, group := range by {
		a, title := nodes, fmt.Sprintf("%d gangs of %d", group[0].Scenario.Gangs, group[0].Scenario.Size)
		if key[0] == 'g' {
			a, title = size, fmt.Sprintf("%d nodes", group[0].Scenario.Nodes)
		}
		if len(a.values(group)) < 2 {
			continue
		}
		if err := a.draw(filepath.Join(dir, "throughput-by-"+key+".svg"), title, contenders, group); err != nil {
			return err
		}
	}
	return nil
}

// axis is what a plot has from left to right.
type axis struct {
	label string
	of    func(scenario) int
}

// values are the different positions on the axis, in order.
func (a axis) values(records []record) []int {
	var list []int
	for _, r := range records {
		list = append(list, a.of(r.Scenario))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// draw writes one plot: a line for each contender, through the medians of its runs.
func (a axis) draw(file, title string, contenders []contender, records []record) error {
	p := plot.New()
	p.Title.Text = title
	p.X.Label.Text, p.Y.Label.Text = a.label, "pods bound a second"
	p.X.Scale, p.Y.Min = plot.LogScale{}, 0
	ticks := plot.ConstantTicks{}
	for _, v := range a.values(records) {
		ticks = append(ticks, plot.Tick{Value: float64(v), Label: strconv.Itoa(v)})
	}
	p.X.Tick.Marker = ticks
	p.Legend.Top = true
	var lines []any
	for _, c := range contenders {
		var points plotter.XYs
		for _, v := range a.values(records) {
			at := slices.DeleteFunc(slices.Clone(records), func(r record) bool { return a.of(r.Scenario) != v })
			if rs := of(at, c.name); len(rs) > 0 {
				points = append(points, plotter.XY{X: float64(v), Y: median.Of(values(rs, func(r result) float64 { return r.Rate }))})
			}
		}
		lines = append(lines, c.name, points)
	}
	if err := plotutil.AddLinePoints(p, lines...); err != nil {
		return fmt.Errorf("drawing %s: %w", file, err)
	}
	if err := p.Save(16*vg.Centimeter, 10*vg.Centimeter, file); err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	return nil
}
