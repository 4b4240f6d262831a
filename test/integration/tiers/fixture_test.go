// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tiers_test runs the program by the files of manifests/volcano, on a real control plane: each plugin that a file
// names decides something that can be seen.
package tiers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/volcano/schedulerconf"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

const (
	// patience is how long anything that must happen may take.
	patience = 20 * time.Second
	// urgent is the priority class of jobs that go before others.
	urgent = "urgent"
)

// decision is what one plugin decides.
type decision struct {
	plugin string
	// seen is what can be seen of it, and without what would be seen if the plugin were not in the file.
	seen, without string
	play          func(*fixture)
}

// fixture is a cluster on which the decisions of one file are played one after another.
type fixture struct {
	*env.Env
	t *testing.T
}

// open starts a cluster. The test runs beside those of other files.
func open(t *testing.T, o localcluster.Options) *fixture {
	t.Helper()
	t.Parallel()
	s := &fixture{Env: env.New(t, o), t: t}
	s.PriorityClass(t, urgent, 1000)
	return s
}

// run runs the program by a file, in which each of the replaced texts stands once, and plays what its plugins decide.
func (s *fixture) run(name string, decisions []decision, replaced ...string) {
	s.t.Helper()
	data, err := manifests.All.ReadFile("volcano/" + name)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(replaced); i += 2 {
		if n := strings.Count(string(data), replaced[i]); n != 1 {
			s.t.Fatalf("%s has %q %d times, want it once", name, replaced[i], n)
		}
	}
	conf := strings.NewReplacer(replaced...).Replace(string(data))
	s.complete(conf, decisions)
	s.start(conf)
	for _, d := range decisions {
		s.t.Run(d.plugin, func(t *testing.T) {
			t.Logf("%s\nwithout it: %s", d.seen, d.without)
			of := &fixture{Env: s.Env, t: t}
			defer of.clear()
			d.play(of)
		})
	}
}

// complete checks that there is a decision of each plugin that a file names, in the order of the file.
func (s *fixture) complete(conf string, decisions []decision) {
	s.t.Helper()
	args, err := schedulerconf.Parse([]byte(conf))
	if err != nil {
		s.t.Fatal(err)
	}
	var named, played []string
	for _, tier := range args.Tiers {
		for _, p := range tier.Plugins {
			named = append(named, p.Name)
		}
	}
	for _, d := range decisions {
		played = append(played, d.plugin)
	}
	if !slices.Equal(named, played) {
		s.t.Errorf("the file names %q, and there are decisions of %q", named, played)
	}
}

// start runs the program with the shipped configuration and a volcano-scheduler.conf.
func (s *fixture) start(conf string) {
	s.t.Helper()
	binary, err := schedulerprocess.Build(s.t.Context(), s.t.TempDir())
	if err != nil {
		s.t.Fatal(err)
	}
	shipped, err := manifests.All.ReadFile("config/scheduler-config.yaml")
	if err != nil {
		s.t.Fatal(err)
	}
	dir := s.t.TempDir()
	file := filepath.Join(dir, "volcano-scheduler.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		s.t.Fatal(err)
	}
	p, err := schedulerprocess.Start(schedulerprocess.Options{
		Binary: binary, Kubeconfig: s.Kubeconfig, Config: shipped, Args: []string{"--volcano-conf=" + file}, Dir: dir,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if _, err := p.Stop(); err != nil {
			s.t.Error(err)
		}
	})
}

// clear removes what a decision has left.
func (s *fixture) clear() {
	ctx, all := s.t.Context(), metav1.ListOptions{}
	queues := s.Volcano.SchedulingV1beta1().Queues()
	if s.t.Failed() {
		s.t.Log(s.reasons())
	}
	s.must(s.Volcano.SchedulingV1beta1().PodGroups(env.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
	s.must(s.Kube.PolicyV1().PodDisruptionBudgets(env.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, all))
	s.must(s.Kube.CoreV1().Pods(env.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, all))
	list, err := queues.List(ctx, all)
	s.must(err)
	for i := range list.Items {
		if name := list.Items[i].Name; name != model.RootQueue && name != model.DefaultQueue {
			s.must(queues.Delete(ctx, name, metav1.DeleteOptions{}))
		}
	}
	s.gone(labels.Everything())
}

func (s *fixture) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// reasons tells where pods are and why PodGroups wait, for whoever reads a failure.
func (s *fixture) reasons() string {
	var b strings.Builder
	groups, err := s.Volcano.SchedulingV1beta1().PodGroups(env.Namespace).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	for i := range groups.Items {
		g := &groups.Items[i]
		fmt.Fprintf(&b, "%s is %s\n", g.Name, g.Status.Phase)
		for _, c := range g.Status.Conditions {
			fmt.Fprintf(&b, "  %s %s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	pods, err := s.Pods.List(labels.Everything())
	s.must(err)
	for _, p := range pods {
		fmt.Fprintf(&b, "%s on %q\n", p.Name, p.Spec.NodeName)
	}
	return b.String()
}
