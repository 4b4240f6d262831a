// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"testing"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/caldera-scheduler/caldera/internal/demo/history"
)

var rewrite = flag.Bool("rewrite", false, "draw docs/images/demo.svg again")

// TestThePictureShowsTheRun draws the picture of the README from what a run of the demo recorded: demo --record testdata/run.json.
func TestThePictureShowsTheRun(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var run history.Record
	if err := json.Unmarshal(text, &run); err != nil {
		t.Fatal(err)
	}
	list, err := Scenes()
	if err != nil {
		t.Fatal(err)
	}
	checkRun(t, list, run)
	drawn, err := draw(run)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("..", "..", "docs", "images", "demo.svg")
	if *rewrite {
		if err := os.WriteFile(file, drawn, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	shown, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(drawn, shown) {
		t.Errorf("%s does not show the run of testdata: go test ./internal/demo -rewrite draws it again", file)
	}
}

// checkRun reports workloads of the demo that the run does not have as they are today.
func checkRun(t *testing.T, list []Scene, run history.Record) {
	t.Helper()
	var want, got []string
	for _, s := range list {
		for _, w := range s.Workloads {
			least := 0
			if w.Gang {
				least = w.Min
			}
			want = append(want, fmt.Sprintf("%s: %d pods, %d together", w.Name, w.Pods, least))
		}
	}
	for _, w := range run.Workloads {
		got = append(got, fmt.Sprintf("%s: %d pods, %d together", w.Name, len(w.Pods), w.Min))
	}
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Errorf("the demo has\n%v\nand the run had\n%v\ndemo --record internal/demo/testdata/run.json records another", want, got)
	}
}

// The picture: a line for each pod, and a gap between workloads.
const (
	lineWidth = 4 * vg.Length(1)
	gap       = 1.5
)

var waiting = color.Gray{Y: 215}

// draw renders a run as SVG: each pod is a line from when it was created, grey as long as it waits, in the color of its workload while it
// has a node.
func draw(run history.Record) ([]byte, error) {
	p := plot.New()
	for _, style := range []*font.Font{&p.X.Label.TextStyle.Font, &p.X.Tick.Label.Font, &p.Y.Tick.Label.Font} {
		style.Variant = "Sans"
	}
	p.X.Label.Text = "seconds"
	p.X.Min, p.X.Max = 0, seconds(run.Until)
	p.Y.LineStyle.Width, p.Y.Tick.LineStyle.Width = 0, 0
	height := 0.0
	var labels plot.ConstantTicks
	for i, w := range run.Workloads {
		top := height
		for _, pod := range w.Pods {
			end := run.Until
			if pod.Ended > 0 {
				end = pod.Ended
			}
			begin := end
			if pod.Bound > 0 {
				begin = pod.Bound
			}
			if err := addLine(p, waiting, height, pod.Created, begin); err != nil {
				return nil, err
			}
			if err := addLine(p, plotutil.SoftColors[i%len(plotutil.SoftColors)], height, begin, end); err != nil {
				return nil, err
			}
			height--
		}
		labels = append(labels, plot.Tick{Value: (top + height + 1) / 2, Label: "  " + label(w)})
		height -= gap
	}
	p.Y.Tick.Marker = labels
	p.Y.Min, p.Y.Max = height+gap, 1
	canvas, err := p.WriterTo(18*vg.Centimeter, vg.Length(-height)*(lineWidth+2)+2*vg.Centimeter, "svg")
	if err != nil {
		return nil, fmt.Errorf("drawing: %w", err)
	}
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("drawing: %w", err)
	}
	return out.Bytes(), nil
}

// addLine draws one pod's line from one time to another.
func addLine(p *plot.Plot, c color.Color, height float64, from, to int64) error {
	if from >= to {
		return nil
	}
	line, err := plotter.NewLine(plotter.XYs{{X: seconds(from), Y: height}, {X: seconds(to), Y: height}})
	if err != nil {
		return fmt.Errorf("drawing a line: %w", err)
	}
	line.Color, line.Width = c, lineWidth
	p.Add(line)
	return nil
}

func label(w history.Lives) string {
	switch {
	case w.Min == 0:
		return fmt.Sprintf("%s: %d pods", w.Name, len(w.Pods))
	case w.Min == len(w.Pods):
		return fmt.Sprintf("%s: gang of %d", w.Name, w.Min)
	}
	return fmt.Sprintf("%s: gang of %d to %d", w.Name, w.Min, len(w.Pods))
}

func seconds(ms int64) float64 { return float64(ms) / 1000 }
