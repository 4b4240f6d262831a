// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/test/soak/monitor"
)

// asker asks the scheduler itself: for its metrics and its ledger of evictions.
type asker struct {
	client *http.Client
	base   string
	// decisions are all that were seen, by number.
	decisions map[uint64]eviction.DecisionRecord
	samples   []own
}

// own is what the scheduler says of itself at one time.
type own struct {
	at time.Time
	// cpu is in seconds, memory and heap are in bytes.
	cpu, memory, heap float64
	wasted, cycles    float64
	totals            eviction.TotalsRecord
}

func newAsker(port int, config *rest.Config) (*asker, error) {
	client, base, err := schedulerprocess.Endpoints(port, config)
	if err != nil {
		return nil, err
	}
	return &asker{client: client, base: base, decisions: map[uint64]eviction.DecisionRecord{}}, nil
}

func (a *asker) get(ctx context.Context, path string, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return fmt.Errorf("asking the scheduler: %w", err)
	}
	defer response.Body.Close() //nolint:errcheck // It was only read.
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking the scheduler for %s: %s", path, response.Status)
	}
	return read(response.Body)
}

// ask takes a sample and tells the monitor for whom pods are evicted.
func (a *asker) ask(ctx context.Context, m *monitor.Monitor) (own, error) {
	s := own{at: time.Now()}
	err := a.get(ctx, "/metrics", func(r io.Reader) error {
		sums, err := readMetrics(r)
		s.cpu, s.memory, s.heap = sums["process_cpu_seconds_total"], sums["process_resident_memory_bytes"], sums["go_memstats_heap_inuse_bytes"]
		s.wasted, s.cycles = sums["caldera_evictions_wasted_total"], sums["caldera_eviction_cycles_total"]
		return err
	})
	if err != nil {
		return s, err
	}
	document := map[string]json.RawMessage{}
	if err := a.get(ctx, eviction.Endpoint, func(r io.Reader) error { return json.NewDecoder(r).Decode(&document) }); err != nil {
		return s, err
	}
	var ledger eviction.Document
	if err := json.Unmarshal(document[eviction.Entry], &ledger); err != nil {
		return s, fmt.Errorf("reading the ledger: %w", err)
	}
	s.totals = ledger.Totals
	for _, d := range ledger.Decisions {
		a.decisions[d.ID] = d
		for _, v := range d.Victims {
			m.Decided(v.UID, d.Job.Namespace+"/"+d.Job.Name, d.Job.Queue, d.Action)
		}
	}
	a.samples = append(a.samples, s)
	return s, nil
}

// readMetrics reads the text form of metrics: the sum of each name over its labels.
func readMetrics(r io.Reader) (map[string]float64, error) {
	sums := map[string]float64{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		name, _, _ := strings.Cut(line, " ")
		name, _, _ = strings.Cut(name, "{")
		value, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err == nil && name != "#" {
			sums[name] += value
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return sums, nil
}

func (a *asker) last() own {
	if len(a.samples) == 0 {
		return own{}
	}
	return a.samples[len(a.samples)-1]
}

// entries are the decisions of the ledger around a time that concern one of some objects, as text.
func (a *asker) entries(objects []string, from, to time.Time) string {
	var list []eviction.DecisionRecord
	for _, d := range a.decisions {
		concerns := func(j eviction.JobRecord) bool {
			return slices.Contains(objects, j.Namespace+"/"+j.Name)
		}
		if d.Time.Time.Before(from) || d.Time.After(to) {
			continue
		}
		if concerns(d.Job) || slices.ContainsFunc(d.Victims, func(v eviction.VictimRecord) bool { return concerns(v.Job) }) {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(x, y eviction.DecisionRecord) int { return x.Time.Compare(y.Time.Time) })
	var b strings.Builder
	for _, d := range list {
		fmt.Fprintf(&b, "  decision %d at %s: %s for %s/%s of queue %s, %d pods: %s %s\n", d.ID, d.Time.Format(time.TimeOnly),
			d.Action, d.Job.Namespace, d.Job.Name, d.Job.Queue, len(d.Members), d.Outcome, d.Problem)
		for _, v := range d.Victims {
			fmt.Fprintf(&b, "    %s/%s of %s in queue %s on %s: %s %s\n", v.Namespace, v.Name, v.Job.Name, v.Job.Queue, v.Node, v.State, v.Problem)
		}
	}
	return b.String()
}
