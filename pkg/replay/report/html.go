// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.gohtml
var pageText string

var page = template.Must(template.New("page").Parse(pageText))

// line is a figure in all runs.
type line struct {
	Name   string
	Values []string
}

// block is figures under a title.
type block struct {
	Title string
	Lines []line
}

// HTML writes a report as one page that needs nothing else: the figures, and plots of what was so over time.
func HTML(out io.Writer, r *Report) error {
	content := struct {
		*Report
		Blocks []block
		Plots  []drawing
	}{Report: r}
	for _, s := range r.sections() {
		b := block{Title: s.title}
		for _, figure := range s.rows {
			l := line{Name: figure.name}
			for _, run := range r.Runs {
				l.Values = append(l.Values, figure.value(run.Figures))
			}
			b.Lines = append(b.Lines, l)
		}
		content.Blocks = append(content.Blocks, b)
	}
	var err error
	if content.Plots, err = r.plots(); err != nil {
		return fmt.Errorf("drawing a report: %w", err)
	}
	var b bytes.Buffer
	if err := page.Execute(&b, content); err != nil {
		return fmt.Errorf("writing a report: %w", err)
	}
	_, err = b.WriteTo(out)
	return err
}
