// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
)

// TestAFewJobs does what a whole run does, for so few jobs that the heap says nothing.
func TestAFewJobs(t *testing.T) {
	binary, err := schedulerprocess.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "standby.svg")
	o := options{Jobs: 400, Clients: 8, Samples: 10, Growth: 1e6, Goroutines: 20, binary: binary, logs: t.TempDir(), plot: file, out: "text"}
	r, err := wait(t.Context(), o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := finish(&out, o, r); err != nil {
		t.Error(err)
	}
	t.Log(out.String())
	if len(r.Samples) != 10 || r.Samples[9].Jobs != 400 || r.Samples[9].Heap < 1<<20 || r.Samples[9].Goroutines < 10 {
		t.Errorf("the samples are %+v", r.Samples)
	}
	if drawn, err := os.ReadFile(file); err != nil || !strings.Contains(string(drawn), "<svg") {
		t.Errorf("the plot is no SVG file: %v", err)
	}
}

// level are samples that grow by so many bytes, and goroutines, a job.
func level(bytes, goroutines float64) *result {
	r := &result{}
	for i := range 20 {
		jobs := float64(i+1) * 1000
		r.Samples = append(r.Samples, sample{Jobs: int64(jobs), Heap: 50e6 + int64(bytes*jobs), Goroutines: 300 + int64(goroutines*jobs)})
	}
	r.fit()
	return r
}

func TestGrowthIsTold(t *testing.T) {
	o := options{Growth: 4, Goroutines: 10}
	for name, tc := range map[string]struct {
		bytes, goroutines float64
		want              string
	}{
		"level":                  {1, 0, ""},
		"shrinking":              {-100, -0.01, ""},
		"a word for each job":    {8, 0, "8.00 bytes"},
		"goroutines that remain": {0, 0.01, "goroutines"},
	} {
		t.Run(name, func(t *testing.T) {
			err := o.judge(level(tc.bytes, tc.goroutines))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("judged as %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestFlagsThatMakeNoSenseAreRefused(t *testing.T) {
	good := options{Jobs: 100, Clients: 1, Samples: 10, Growth: 1, out: "text"}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*options){
		"few samples": func(o *options) { o.Samples = 3 },
		"few jobs":    func(o *options) { o.Jobs = 5 },
		"no clients":  func(o *options) { o.Clients = 0 },
		"no growth":   func(o *options) { o.Growth = 0 },
		"output":      func(o *options) { o.out = "yaml" },
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			spoil(&o)
			if o.check() == nil {
				t.Errorf("%+v is accepted", o)
			}
		})
	}
}
