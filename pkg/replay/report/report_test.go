// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/pkg/replay"
	"github.com/caldera-scheduler/caldera/pkg/replay/report"
	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
	"github.com/caldera-scheduler/caldera/pkg/replay/yardstick"
)

var rewrite = flag.Bool("rewrite", false, "write the files that output is compared with")

// small is two queues on three nodes, played by two rules: a job of two nodes waits for one that holds one, and smaller ones pass it, or do not.
func small(t *testing.T) *report.Report {
	t.Helper()
	tr := &trace.Trace{Queues: []trace.Queue{{Name: "<a>", Nodes: 1}, {Name: "b", Nodes: 2}}}
	for _, name := range []string{"n0", "n1", "n2"} {
		tr.Nodes = append(tr.Nodes, trace.Node{Name: name, GPUs: 8})
	}
	add := func(submit, duration time.Duration, queue string, workers, gpus int) {
		tr.Jobs = append(tr.Jobs, trace.Job{ID: len(tr.Jobs), Submit: submit, Duration: duration, Queue: queue, Workers: workers, GPUs: gpus, MilliGPU: 1000})
	}
	add(0, 10*time.Hour, "<a>", 1, 8)
	add(time.Hour, 10*time.Hour, "b", 1, 8)
	add(90*time.Minute, 2*time.Hour, "<a>", 2, 8)
	add(2*time.Hour, 3*time.Hour, "b", 1, 4)
	add(3*time.Hour, 30*time.Hour, "b", 1, 4)
	r := report.New("small", "Five jobs.", tr)
	for _, rule := range []string{"fifo", "easy"} {
		result, err := replay.Run(t.Context(), tr, replay.Options{Rule: yardstick.Named(rule)})
		if err != nil {
			t.Fatal(err)
		}
		r.Add(rule, report.Played{Trace: tr, History: result.History})
	}
	return r
}

func written(t *testing.T, format string) string {
	t.Helper()
	var b strings.Builder
	if err := report.Write(&b, format, small(t)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReportsLookAsTheyDid(t *testing.T) {
	for _, format := range []string{"table", "csv", "jobs"} {
		t.Run(format, func(t *testing.T) {
			file := filepath.Join("testdata", "small."+format)
			got := written(t, format)
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want,+got)\n%s", file, diff)
			}
		})
	}
}

// TestAPageNeedsNothingElse: it is one file, with a plot of each kind, and names are escaped.
func TestAPageNeedsNothingElse(t *testing.T) {
	page := written(t, "html")
	if n := strings.Count(page, "<svg"); n != 10 {
		t.Errorf("the page has %d plots, want 8 and one of each run's queues", n)
	}
	for _, reference := range []string{"<script", "<link", "src=", "url(", "@import", "<a>"} {
		if strings.Contains(page, reference) {
			t.Errorf("the page has %q: it is to load nothing, and to escape names", reference)
		}
	}
	for _, name := range []string{"Five jobs.", "fifo", "easy", "&lt;a&gt;"} {
		if !strings.Contains(page, name) {
			t.Errorf("the page does not say %q", name)
		}
	}
	for i, plot := range strings.Split(page, "<svg")[1:] {
		plot, _, _ = strings.Cut("<svg"+plot, "</svg>")
		decoder := xml.NewDecoder(strings.NewReader(plot + "</svg>"))
		for {
			if _, err := decoder.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("plot %d: %v", i, err)
			}
		}
		if !strings.Contains(plot, "<path") {
			t.Errorf("plot %d has no line", i)
		}
	}
}

func TestJSONHasFiguresAndHours(t *testing.T) {
	var r struct {
		Scenario string
		Jobs     int
		Runs     []struct {
			Name    string
			Figures struct{ Wait struct{ Max float64 } }
			Queues  []string
			Hours   []struct {
				Held   float64
				Queues []struct{ Entitled float64 }
			}
		}
	}
	if err := json.Unmarshal([]byte(written(t, "json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Scenario != "small" || r.Jobs != 5 || len(r.Runs) != 2 {
		t.Fatalf("got %+v", r)
	}
	fifo := r.Runs[0]
	if fifo.Name != "fifo" || fifo.Figures.Wait.Max != 9*3600 || len(fifo.Queues) != 2 || fifo.Hours[0].Held != 8 || fifo.Hours[0].Queues[0].Entitled != 8 {
		t.Errorf("got %+v", fifo)
	}
}

func TestAFormatThatIsNoneIsRefused(t *testing.T) {
	err := report.Write(io.Discard, "yaml", small(t))
	if err == nil || err.Error() != `output "yaml" is not known: use one of table, json, html, csv, jobs` {
		t.Errorf("got %v", err)
	}
}
