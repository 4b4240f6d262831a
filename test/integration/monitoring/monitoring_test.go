// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring_test runs the queries of all dashboards, and all alerts, on a real Prometheus that scrapes real schedulers while these
// place, evict and refuse.
package monitoring_test

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/integration/env"
	"github.com/caldera-scheduler/caldera/test/integration/prometheus"
)

// scraping is Prometheus' configuration: the alerts, and two schedulers by their ports.
const scraping = `
global: {scrape_interval: 1s, scrape_timeout: 900ms, evaluation_interval: 1s}
rule_files: [%s]
scrape_configs:
- job_name: caldera
  scheme: https
  tls_config: {insecure_skip_verify: true}
  static_configs: [{targets: ["127.0.0.1:%d", "127.0.0.1:%d"]}]
`

// conf has queues evict from each other. Broken is refused.
const (
	conf = `
actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
`
	broken = "actions: alocate\n"
)

// patience is within what time anything has to have happened.
const patience = 2 * time.Minute

const gpu corev1.ResourceName = "nvidia.com/gpu"

// stage is a cluster with two schedulers, of which one leads, and a Prometheus.
type stage struct {
	*env.Env
	t    *testing.T
	file string
}

func newStage(t *testing.T) (*stage, *asker) {
	t.Helper()
	e := env.New(t, localcluster.Options{Nodes: 4, Shapes: []string{"cpu=16,memory=64Gi,nvidia.com/gpu=8"}})
	s := &stage{Env: e, t: t, file: filepath.Join(t.TempDir(), "volcano-scheduler.conf")}
	s.configure(conf)
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "caldera-system"}}
	if _, err := e.Kube.CoreV1().Namespaces().Create(t.Context(), space, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	first, second := s.start(), s.start()
	return s, &asker{Prometheus: prometheus.Start(t, fmt.Sprintf(scraping, rules, first, second)), t: t, since: time.Now()}
}

// start runs a scheduler that competes for the lead, and returns its port.
func (s *stage) start() int {
	s.t.Helper()
	binary, err := schedulerprocess.Build(s.t.Context(), s.t.TempDir())
	if err != nil {
		s.t.Fatal(err)
	}
	config, err := manifests.All.ReadFile("config/scheduler-config.yaml")
	if err != nil {
		s.t.Fatal(err)
	}
	port, err := schedulerprocess.FreePort()
	if err != nil {
		s.t.Fatal(err)
	}
	p, err := schedulerprocess.Start(schedulerprocess.Options{
		Binary: binary, Dir: s.t.TempDir(), Config: config, Kubeconfig: s.Kubeconfig, LeaderElection: true, Port: port,
		Args: []string{"--volcano-conf=" + s.file, "--authorization-always-allow-paths=/metrics"},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if _, err := p.Stop(); err != nil {
			s.t.Error(err)
		}
		if log, err := os.ReadFile(p.LogFile); err == nil && s.t.Failed() {
			s.t.Logf("the end of the scheduler's log:\n%s", log[max(0, len(log)-4000):])
		}
	})
	return port
}

// configure puts something into the file of the schedulers' configuration.
func (s *stage) configure(content string) {
	s.t.Helper()
	if err := os.WriteFile(s.file, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) queue(name string, spec volcano.QueueSpec) {
	s.t.Helper()
	spec.Weight = 1
	q := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if _, err := s.Volcano.SchedulingV1beta1().Queues().Create(s.t.Context(), q, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func devices(n int64) corev1.ResourceList {
	return corev1.ResourceList{gpu: *resource.NewQuantity(n, resource.DecimalSI), corev1.ResourceCPU: *resource.NewQuantity(2*n, resource.DecimalSI)}
}

// jobs is a gang whose pods ask for a core and a device each, of which a single one has to start.
func jobs(name, queue string, size int) env.Gang {
	return env.Gang{Name: name, Queue: queue, Min: 1, Size: size, CPU: "1", Pod: func(_ int, p *corev1.Pod) {
		requests := p.Spec.Containers[0].Resources.Requests
		requests[gpu] = resource.MustParse("1")
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{gpu: requests[gpu]}
	}}
}

// gang is one all of whose pods have to start.
func gang(name, queue string, size int) env.Gang {
	g := jobs(name, queue, size)
	g.Min = size
	return g
}

// round has one queue take all devices, and the other one take some of them back.
func (s *stage) round(i int) {
	s.t.Helper()
	borrower, owner := fmt.Sprintf("borrower-%d", i), fmt.Sprintf("owner-%d", i)
	s.Create(s.t, jobs(borrower, "prod", 32))
	env.Eventually(s.t, patience, s.AllBound(s.t, borrower, 32))
	s.Create(s.t, gang(owner, "research", 8))
	env.Eventually(s.t, patience, s.AllBound(s.t, owner, 8))
	s.Delete(s.t, borrower)
	s.Delete(s.t, owner)
	env.Eventually(s.t, patience, func() string {
		if left := len(s.Members(s.t, borrower)) + len(s.Members(s.t, owner)); left > 0 {
			return fmt.Sprintf("%d pods are left", left)
		}
		return ""
	})
}

func TestEveryQueryHasData(t *testing.T) {
	t.Parallel()
	s, a := newStage(t)
	s.queue("research", volcano.QueueSpec{Deserved: devices(16), Capability: devices(24)})
	s.queue("prod", volcano.QueueSpec{Deserved: devices(16)})
	s.queue("wrong", volcano.QueueSpec{Guarantee: volcano.Guarantee{Resource: devices(8)}, Capability: devices(4)})
	s.Create(t, gang("large", "research", 40))
	s.Create(t, gang("lost", "wrong", 2))
	for i := range 3 {
		s.round(i)
	}
	s.configure(broken)
	all := dashboards(t)
	// Whoever looks at a dashboard sees it while something happens.
	i := 3
	env.Eventually(t, patience, func() string {
		s.round(i)
		i++
		var lacking []string
		for k := range all {
			lacking = append(lacking, a.unanswered(&all[k])...)
		}
		return strings.Join(lacking, "\n")
	})
	for _, r := range alerts(t) {
		query, err := a.compared(r.Expr)
		if err != nil {
			t.Error(err)
			continue
		}
		if lacking := a.lacks(query, true); lacking != "" {
			t.Errorf("%s: %s: %s", r.Alert, query, lacking)
		}
	}
	a.wantActive("CalderaConfigurationRefused", "CalderaConfigurationRefused", "CalderaQueueLeftOut")
	s.configure(conf)
	a.wantActive("CalderaQueueLeftOut")
}

// wantActive waits until what exactly these alerts look for is there, once for each instance that shows it, whether it has lasted for long enough or
// not. It is Prometheus that says so, which has loaded the file, and is able to judge all of them.
func (a *asker) wantActive(want ...string) {
	a.t.Helper()
	env.Eventually(a.t, patience, func() string {
		var data struct {
			Groups []struct {
				Rules []struct {
					Name, Health, LastError string
					Alerts                  []any
				}
			}
		}
		if err := a.Get(a.t.Context(), "rules", url.Values{}, &data); err != nil {
			return err.Error()
		}
		var got []string
		judged := 0
		for _, g := range data.Groups {
			for _, r := range g.Rules {
				if judged++; r.Health != "ok" {
					return fmt.Sprintf("%s is %s: %s", r.Name, r.Health, r.LastError)
				}
				for range r.Alerts {
					got = append(got, r.Name)
				}
			}
		}
		if judged != len(alerts(a.t)) || !slices.Equal(got, want) {
			return fmt.Sprintf("of %d alerts %q are active, want %q", judged, got, want)
		}
		return ""
	})
}
