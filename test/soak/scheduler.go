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

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/soak/monitor"
)

// asker asks the scheduler itself: for its metrics and its ledger of evictions.
type asker struct {
	client *http.Client
	base   string
	// cluster passes on what is asked of the API of views.
	cluster rest.Interface
	// decisions are all that were seen, by number.
	decisions map[string]v1alpha1.EvictionDecision
	samples   []own
}

// own is what the scheduler says of itself at one time.
type own struct {
	at time.Time
	// cpu is in seconds, memory and heap are in bytes.
	cpu, memory, heap float64
	wasted, cycles    float64
	totals            v1alpha1.EvictionTotals
}

func newAsker(port int, config *rest.Config) (*asker, error) {
	client, base, err := schedulerprocess.Endpoints(port, config)
	if err != nil {
		return nil, err
	}
	cluster, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &asker{client: client, base: base, cluster: cluster.CoreV1().RESTClient(), decisions: map[string]v1alpha1.EvictionDecision{}}, nil
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
	var cluster v1alpha1.ClusterView
	if err := a.view(ctx, v1alpha1.ClusterViews+"/"+v1alpha1.ClusterName, &cluster); err != nil {
		return s, err
	}
	s.totals = cluster.Status.Evictions
	var ledger v1alpha1.EvictionDecisionList
	if err := a.view(ctx, v1alpha1.EvictionDecisions, &ledger); err != nil {
		return s, err
	}
	for _, d := range ledger.Items {
		a.decisions[d.Name] = d
		beneficiary := d.Status.Job
		if beneficiary == nil {
			beneficiary = &v1alpha1.JobReference{}
		}
		for _, v := range d.Status.Victims {
			m.Decided(v.UID, beneficiary.Namespace+"/"+beneficiary.Name, beneficiary.Queue, d.Status.Action)
		}
	}
	a.samples = append(a.samples, s)
	return s, nil
}

// view reads one view, or a list of them.
func (a *asker) view(ctx context.Context, path string, into any) error {
	raw, err := a.cluster.Get().AbsPath("apis", v1alpha1.SchemeGroupVersion.String(), path).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("asking the scheduler for %s: %w", path, err)
	}
	return json.Unmarshal(raw, into)
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
	var list []v1alpha1.EvictionDecision
	for _, d := range a.decisions {
		concerns := func(j *v1alpha1.JobReference) bool {
			return j != nil && slices.Contains(objects, j.Namespace+"/"+j.Name)
		}
		if d.CreationTimestamp.Time.Before(from) || d.CreationTimestamp.After(to) {
			continue
		}
		if concerns(d.Status.Job) || slices.ContainsFunc(d.Status.Victims, func(v v1alpha1.EvictionVictim) bool { return concerns(&v.Job) }) {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(x, y v1alpha1.EvictionDecision) int { return x.CreationTimestamp.Compare(y.CreationTimestamp.Time) })
	var b strings.Builder
	for _, d := range list {
		job := v1alpha1.JobReference{}
		if d.Status.Job != nil {
			job = *d.Status.Job
		}
		fmt.Fprintf(&b, "  decision %s at %s: %s for %s/%s of queue %s, %d pods: %s %s\n", d.Name, d.CreationTimestamp.Format(time.TimeOnly),
			d.Status.Action, job.Namespace, job.Name, job.Queue, d.Status.Pods, d.Status.Outcome, d.Status.Problem)
		for _, v := range d.Status.Victims {
			fmt.Fprintf(&b, "    %s/%s of %s in queue %s on %s: %s %s\n", v.Namespace, v.Name, v.Job.Name, v.Job.Queue, v.Node, v.State, v.Problem)
		}
	}
	return b.String()
}
