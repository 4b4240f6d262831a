// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/internal/testing/reference"
	"github.com/caldera-scheduler/caldera/pkg/metrics"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// metric is a metric that is registered.
type metric struct {
	name, help string
	labels     []string
	kind       dto.MetricType
}

// registered is the page of the metrics that the scheduler registers.
func registered() (*reference.Page, error) {
	state := model.NewState()
	metrics.Register(everything{})
	metrics.RegisterStarts(state, clock.RealClock{})
	metrics.RegisterEvictions(someEvictions())
	always, err := describe()
	if err != nil {
		return nil, err
	}
	metrics.RegisterLatencies(state, clock.RealClock{})
	all, err := describe()
	if err != nil {
		return nil, err
	}
	happen(state)
	if err := kinds(all); err != nil {
		return nil, err
	}
	p := reference.New("metrics.md", "Metrics", "what is registered by pkg/metrics")
	p.Say("At `/metrics` of the scheduler's secure port, besides upstream's. How they belong together is in [queues.md](../queues.md#what-can-be-seen), " +
		"[waiting.md](../waiting.md#what-can-be-seen), [evictions.md](../evictions.md#broken-gangs) and [evictions-operations.md](../evictions-operations.md#metrics); dashboards and alerts are in " +
		"[monitoring.md](../monitoring.md). Values of `reason` are in [reasons-and-events.md](reasons-and-events.md#why-a-job-waits).")
	ours := func(m metric) bool { return strings.HasPrefix(m.name, "caldera_") }
	early := func(m metric) bool {
		return slices.ContainsFunc(always, func(a metric) bool { return a.name == m.name })
	}
	for _, section := range []struct {
		title, text string
		has         func(metric) bool
	}{
		{"Caldera's", "Others may rely on these names: [names.md](../names.md).", ours},
		{"Volcano's", "They have Volcano's names and meanings; [volcano-compat.md](../volcano-compat.md#metrics) says where these differ.", func(m metric) bool { return !ours(m) && early(m) }},
		{"Volcano's latencies", "With the flag `--volcano-metrics`.", func(m metric) bool { return !ours(m) && !early(m) }},
	} {
		p.Section(2, section.title)
		p.Say(section.text)
		var rows [][]string
		for _, m := range all {
			if section.has(m) {
				rows = append(rows, []string{reference.Quote(m.name), strings.ToLower(m.kind.String()), reference.Quotes(m.labels), reference.Sentence(m.help)})
			}
		}
		p.Table([]string{"metric", "type", "labels", "what it is"}, rows)
	}
	return p, nil
}

// form is how Prometheus's library writes a description.
var form = regexp.MustCompile(`^Desc\{fqName: ("[^"]*"), help: ("(?:[^"\\]|\\.)*"), .*variableLabels: \{(.*)\}\}$`)

// describe lists the metrics of ours that are registered, sorted.
func describe() ([]metric, error) {
	registry, ok := legacyregistry.Registerer().(prometheus.Collector)
	if !ok {
		return nil, errors.New("the registry does not describe its metrics any more")
	}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descriptions)
		close(descriptions)
	}()
	var all []metric
	var bad error
	for d := range descriptions {
		parts := form.FindStringSubmatch(d.String())
		if parts == nil {
			bad = fmt.Errorf("the description of a metric has another form than %v: %s", form, d)
			continue
		}
		name, _ := strconv.Unquote(parts[1]) // As the library has quoted it.
		help, _ := strconv.Unquote(parts[2])
		if !strings.HasPrefix(name, "caldera_") && !strings.HasPrefix(name, "volcano_") {
			continue
		}
		m := metric{name: name, help: strings.TrimPrefix(help, "[ALPHA] ")}
		if parts[3] != "" {
			m.labels = strings.Split(parts[3], ",")
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b metric) int { return strings.Compare(a.name, b.name) })
	return all, bad
}

// kinds finds out the types of metrics, which only those that have a series tell.
func kinds(all []metric) error {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return fmt.Errorf("gathering metrics: %w", err)
	}
	for i := range all {
		at := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == all[i].name })
		if at < 0 {
			return fmt.Errorf("the metric %s has no series, and so no type: hack/reference/metrics.go has to let happen what it shows", all[i].name)
		}
		all[i].kind = families[at].GetType()
	}
	return nil
}

const (
	aQueue = "q"
	aPod   = "p"
)

// everything is a scheduler of which each metric has something to show.
type everything struct{}

var one = resource.Vector{{Name: corev1.ResourceCPU, Value: 1}, {Name: corev1.ResourceMemory, Value: 1}, {Name: "nvidia.com/gpu", Value: 1}}

// train is a job.
var train = model.JobKey{Source: model.FromVolcano, Namespace: "ml", Name: "train"}

// Figures implements metrics.Source.
func (everything) Figures() []dispatch.QueueFigures {
	limit := resource.Limit{Amounts: one.Portion(), Unnamed: resource.Unlimited}
	used := account.Usage{Allocated: one, Requested: one, Inqueue: one}
	return []dispatch.QueueFigures{{
		Name: aQueue, Spec: &model.Queue{}, Usage: used, Total: used, Deserved: one.Portion(), Capability: limit, Real: limit,
	}}
}

// Shares implements metrics.Source.
func (everything) Shares() map[model.JobKey]float64 { return map[model.JobKey]float64{train: 1} }

// Waiting implements metrics.Source.
func (everything) Waiting() []dispatch.Waiting {
	return []dispatch.Waiting{{Job: train, Queue: aQueue, Tasks: 1}}
}

// Broken implements metrics.Source.
func (everything) Broken() map[dispatch.Break]int { return map[dispatch.Break]int{dispatch.Half: 1} }

// BrokenTotals implements metrics.Source.
func (everything) BrokenTotals() dispatch.BrokenTotals {
	return dispatch.BrokenTotals{Seconds: map[dispatch.Break]float64{dispatch.Half: 1}, Held: map[corev1.ResourceName]float64{corev1.ResourceCPU: 1}}
}

// Usable implements metrics.Source.
func (everything) Usable() resource.Vector { return one }

// Slots implements metrics.Source.
func (everything) Slots(...int64) map[corev1.ResourceName][]int64 {
	return map[corev1.ResourceName][]int64{"nvidia.com/gpu": {1}}
}

// someEvictions are a decision to evict.
func someEvictions() *eviction.Ledger {
	ledger := eviction.NewLedger(1, time.Minute)
	victim := &eviction.Victim{UID: aPod, Pod: &corev1.Pod{}, Queue: aQueue, Request: one}
	now := time.Unix(1, 0)
	d := ledger.Begin(now, eviction.Decision{
		Action: eviction.Reclaim, Beneficiary: train, Queue: aQueue, Victims: []*eviction.Victim{victim}, Members: []eviction.Member{{Request: one}},
	})
	ledger.Sent(d.ID, victim.UID)
	ledger.Leaving(victim.UID, now.Add(time.Minute))
	return ledger
}

// happen lets a job be placed, and the dispatcher do what it may.
func happen(state *model.State) {
	r := metrics.Recorder{}
	r.Turn(dispatch.Placing, dispatch.TurnPlaced, time.Second)
	r.Parked(model.NotEnoughResources)
	r.Admitted(aQueue, time.Second)
	metrics.Planned(1, nil, time.Second)
	state.AddScheduler("volcano")
	state.Lead()
	now := time.Unix(1, 0)
	state.UpsertGroup(train, &model.Group{Queue: aQueue, MinMember: 1, Created: now})
	pod := builders.Pod(train.Namespace, aPod).Annotation("scheduling.k8s.io/group-name", train.Name).CreationTimestamp(metav1.NewTime(now)).Obj()
	state.UpsertPod(pod)
	state.Assume(aPod, "n")
	pod = pod.DeepCopy()
	pod.Spec.NodeName = "n"
	state.UpsertPod(pod)
}
