// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Figures are what one run showed.
type Figures struct {
	// Created and Bound are the numbers of pods in the namespace that is measured.
	Created, Bound int
	// Rate is in pods/s, from the creation of the first pod to the bind of the last one.
	Rate float64
	// CPU is what API server, scheduler and harness used meanwhile, in seconds a pod.
	CPU float64
	// FirstBind is in seconds, from the creation of the first pod to the first bind.
	FirstBind float64
	// Throughput is upstream's figure, in pods/s: the average of its samples, one a second; 0 if it had no time for any.
	Throughput float64
}

// items is what the harness writes.
type items struct {
	DataItems []struct {
		Data   map[string]float64 `json:"data"`
		Labels map[string]string  `json:"labels"`
	} `json:"dataItems"`
}

// Binds are the pods of a namespace as the scheduler saw them. The harness counts once a second, which is too coarse for a
// workload of a few seconds, and does not say when the first pod was bound.
type Binds struct {
	Created int `json:"created"`
	Bound   int `json:"bound"`
	// FirstBind and LastBind are in seconds since the first pod was created.
	FirstBind float64 `json:"firstBind"`
	LastBind  float64 `json:"lastBind"`
	// CPU is what the process used between the creation of the first pod and the last bind, in seconds.
	CPU float64 `json:"cpu"`
}

// read puts together what the process left in a directory.
func read(dir string) (Figures, error) {
	files, err := filepath.Glob(filepath.Join(dir, "Benchmark*.json"))
	if err != nil {
		return Figures{}, err
	}
	if len(files) != 1 {
		return Figures{}, fmt.Errorf("the harness wrote %d files of results, want 1 in %s", len(files), dir)
	}
	var harness items
	if err := readJSON(files[0], &harness); err != nil {
		return Figures{}, err
	}
	namespaces := map[string]Binds{}
	if err := readJSON(filepath.Join(dir, bindsFile), &namespaces); err != nil {
		return Figures{}, err
	}
	var f Figures
	namespace := ""
	for _, item := range harness.DataItems {
		// The name of what is measured ends in the namespace in which it was.
		name := item.Labels["Name"]
		measured := name[strings.LastIndex(name, "/")+1:]
		if namespace != "" && namespace != measured {
			return Figures{}, fmt.Errorf("it measures in the namespaces %s and %s, want one", namespace, measured)
		}
		namespace = measured
		if item.Labels["Metric"] == "SchedulingThroughput" {
			f.Throughput = item.Data["Average"]
		}
	}
	seen := namespaces[namespace]
	if seen.Bound == 0 {
		return Figures{}, errors.New("no pod was bound while it was measured")
	}
	bound := float64(seen.Bound)
	f.Created, f.Bound, f.FirstBind, f.Rate, f.CPU = seen.Created, seen.Bound, seen.FirstBind, bound/seen.LastBind, seen.CPU/bound
	return f, nil
}

func readJSON(name string, into any) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return nil
}
