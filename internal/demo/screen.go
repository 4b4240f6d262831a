// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/caldera-scheduler/caldera/internal/demo/history"
)

// screen shows the workloads as they are.
type screen interface {
	draw(at time.Duration, title string, rows []history.Row)
}

// newScreen redraws a table in place on a terminal and appends lines elsewhere.
func newScreen(out *os.File) screen {
	if term.IsTerminal(int(out.Fd())) {
		size := func() (int, int) {
			width, height, err := term.GetSize(int(out.Fd()))
			if err != nil {
				return 80, 24
			}
			return width, height
		}
		return &live{out: out, size: size}
	}
	return &lines{out: out, shown: map[string]history.Row{}}
}

// live redraws a table over itself.
type live struct {
	out  io.Writer
	size func() (width, height int)
	// drawn is how many lines of the terminal the last drawing takes.
	drawn int
}

// Terminal sequences: cursor up, and erase to the end of the screen.
const (
	cursorUp   = "\x1b[%dA"
	eraseBelow = "\x1b[J"
)

func (l *live) draw(at time.Duration, title string, rows []history.Row) {
	width, height := l.size()
	drawing := fmt.Sprintf("\n%.0f s, %s\n%s", at.Seconds(), title, rowTable(rows, width))
	var frame strings.Builder
	if l.drawn > 0 {
		fmt.Fprintf(&frame, cursorUp, l.drawn)
	}
	frame.WriteString("\r" + eraseBelow + drawing)
	fmt.Fprint(l.out, frame.String())
	// What has scrolled away cannot be drawn over.
	l.drawn = min(strings.Count(drawing, "\n"), height-1)
}

// rowTable renders the workloads as a table and, below it, a line for each that waits. No line is wider than width.
func rowTable(rows []history.Row, width int) string {
	t := newTable(table.Row{"Job", "Queue", "Min", "Pending", "Bound", "Running", "Done", "Phase"})
	t.Style().Size.WidthMax = width
	var columns []table.ColumnConfig
	for number := 3; number <= 7; number++ {
		columns = append(columns, table.ColumnConfig{Number: number, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	var waits strings.Builder
	for _, r := range rows {
		t.AppendRow(table.Row{
			r.Name, orDash(r.Queue), orDash(zeroEmpty(r.Min)), r.Pending, r.Bound, r.Running, r.Done, orDash(r.Phase),
		})
		if r.Reason != "" {
			waits.WriteString(text.Snip(fmt.Sprintf(" %s waits: %s", r.Name, r.Reason), width, "...") + "\n")
		}
	}
	return t.Render() + "\n\n" + waits.String()
}

// newTable returns a table in the demo's style.
func newTable(header table.Row) table.Writer {
	t := table.NewWriter()
	style := table.StyleLight
	style.Options = table.OptionsNoBordersAndSeparators
	style.Options.SeparateHeader = true
	style.Format.Header = text.FormatDefault
	t.SetStyle(style)
	t.AppendHeader(header)
	return t
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func zeroEmpty(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// lines appends a line whenever a workload has changed.
type lines struct {
	out   io.Writer
	shown map[string]history.Row
}

func (l *lines) draw(at time.Duration, title string, rows []history.Row) {
	for _, r := range rows {
		if l.shown[r.Name] == r {
			continue
		}
		l.shown[r.Name] = r
		line := fmt.Sprintf("%6.1fs  %-10s  %2d pending  %2d bound  %2d running  %2d done  min %-2s  %-9s  %s",
			at.Seconds(), r.Name, r.Pending, r.Bound, r.Running, r.Done, orDash(zeroEmpty(r.Min)), orDash(r.Phase), r.Reason)
		fmt.Fprintln(l.out, strings.TrimRight(line, " "))
	}
}

// summary renders what the demo has shown.
func summary(starts []history.Start, v history.Verdict) string {
	t := newTable(table.Row{"Job", "Started", "Pods", "Bound within", "Nodes"})
	var b strings.Builder
	for _, s := range starts {
		if !s.Started {
			t.AppendRow(table.Row{s.Name, "never", 0, "", ""})
			continue
		}
		pods := fmt.Sprintf("%d together", s.Pods)
		if !s.Gang {
			pods = fmt.Sprintf("%d one by one", s.Pods)
		}
		t.AppendRow(table.Row{s.Name, fmt.Sprintf("%.1f s", s.At.Seconds()), pods, s.Spread.Round(time.Millisecond), s.Nodes})
	}
	b.WriteString("\n")
	for line := range strings.Lines(t.Render() + "\n\n") {
		b.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	for _, s := range starts {
		if !s.Started && s.Reason != "" {
			fmt.Fprintf(&b, "%s waits: %s\n", s.Name, s.Reason)
		}
	}
	if len(v.Broken)+len(v.Missing) == 0 {
		b.WriteString("No gang was ever started in part.\n")
	}
	return b.String()
}
