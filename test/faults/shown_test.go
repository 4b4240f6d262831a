// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// clusters is how many are drawn of each kind.
var clusters = flag.Int("clusters", 1, "how many clusters of each kind TestConditionsStayTrue draws")

const (
	// restless is how long a cluster does not come to rest in which conditions are judged.
	restless = 30 * time.Minute
	// oldest is how old a number may be on a condition, and misleads how long it may be wrong by more than half.
	oldest, misleads = 10 * time.Minute, 3 * time.Minute
	// beginning is how long the scheduler has to say anything.
	beginning = time.Minute
)

// figure is a number that conditions show, and what it is in truth.
type figure struct {
	job string
	// shows finds it in a condition of the job or of its pods. Sometimes: there are conditions that say something else.
	shows     *regexp.Regexp
	sometimes bool
	// is what is so now.
	is func(w *world) int
	// was is what was so, and when it was looked at.
	was []sample
}

type sample struct {
	at    time.Time
	value int
}

// look takes down what is so now.
func (f *figure) look(w *world) {
	f.was = append(f.was, sample{time.Now(), f.is(w)})
	for len(f.was) > 0 && time.Since(f.was[0].at) > oldest {
		f.was = f.was[1:]
	}
}

// judge says what is wrong with what a condition shows; empty if nothing.
func (f *figure) judge(message string) string {
	found := f.shows.FindStringSubmatch(message)
	switch {
	case found == nil && f.sometimes:
		return ""
	case found == nil:
		return fmt.Sprintf("%q does not show %s", message, f.shows)
	}
	shown, err := strconv.Atoi(found[1])
	if err != nil {
		return err.Error()
	}
	within := func(last time.Duration, like func(value int) bool) bool {
		return slices.ContainsFunc(f.was, func(s sample) bool { return time.Since(s.at) <= last && like(s.value) })
	}
	switch {
	case !within(oldest, func(value int) bool { return value == shown }):
		return fmt.Sprintf("%q was not so in %s: %v", message, oldest, f.was[len(f.was)-1])
	case !within(misleads, func(value int) bool { return 2*max(shown-value, value-shown) <= max(shown, value) }):
		return fmt.Sprintf("%q was wrong by more than half for %s: %v", message, misleads, f.was[len(f.was)-1])
	}
	return ""
}

// messages are what the PodGroup and the pods of a job say of why they wait.
func (w *world) messages(job string) (all []string) {
	if o, err := w.api.Get(groups, namespace, job); err == nil {
		for _, c := range o.(*volcano.PodGroup).Status.Conditions {
			if c.Type == volcano.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue {
				all = append(all, c.Message)
			}
		}
	}
	for _, p := range w.pods() {
		if p.Labels[jobLabel] == job && time.Since(p.CreationTimestamp.Time) > beginning {
			for _, c := range p.Status.Conditions {
				if c.Type == corev1.PodScheduled {
					all = append(all, c.Message)
				}
			}
		}
	}
	return all
}

// restlessScenario has jobs of a queue that may hold six of 24 cores come and go, and nodes be cordoned and uncordoned, for as long as it lasts. One
// gang is larger than the cluster, one larger than the queue.
func restlessScenario(seed uint64, conf string) *scenario {
	r := rand.New(rand.NewPCG(seed, 0x5))
	s := &scenario{Seed: seed, Conf: conf, Capability: 6}
	for i := range 4 {
		s.Nodes = append(s.Nodes, node{Name: fmt.Sprintf("node-%d", i), Cores: 6})
	}
	gang := func(name, queue string, size int) job {
		return job{Name: name, Size: size, Min: size, Cores: 1, Queue: queue, Class: "low", Grace: duration(time.Second)}
	}
	s.Jobs = append(s.Jobs, gang("large", "default", 40), gang("over", cappedQueue, 7))
	minutes := int(restless / time.Minute)
	for i := range minutes / 3 {
		j := gang(fmt.Sprintf("short-%d", i), cappedQueue, 1+r.IntN(3))
		j.At, j.Lasts = secondsBetween(r, i*180, i*180+170), secondsBetween(r, 60, 900)
		s.Jobs = append(s.Jobs, j)
	}
	for at := 2; at < minutes; at += 2 + r.IntN(6) {
		s.Events = append(s.Events, event{
			At: duration(time.Duration(at) * time.Minute), Kind: nodeCordoned, Target: s.Nodes[r.IntN(4)].Name, For: secondsBetween(r, 20, 700),
		})
	}
	return s
}

// TestConditionsStayTrue: in a cluster that does not come to rest, no number on a condition of a PodGroup or a pod is older than ten minutes, and
// none is wrong by more than half for three. It counts what that takes.
func TestConditionsStayTrue(t *testing.T) {
	// A play that was before this test has UUIDs drawn from its seed, which only one goroutine may do at a time.
	uuid.SetRand(nil)
	inQueue := func(w *world) (held int) {
		for _, p := range w.pods() {
			if w.jobs[p.Labels[jobLabel]].Queue == cappedQueue && p.Spec.NodeName != "" && !finished(p) {
				held += sizeOf(p)
			}
		}
		return held
	}
	for conf, figures := range map[string][]figure{
		"limited": {
			{job: "large", shows: regexp.MustCompile(`(?:^|: )(\d+)/40 tasks in gang schedulable: `), is: func(w *world) int { return places(w.room(), 1) }},
			{job: "large", shows: regexp.MustCompile(`short by (\d+)`), sometimes: true, is: func(w *world) int { return 40 - places(w.room(), 1) }},
			{job: "over", shows: regexp.MustCompile(`cpu: (\d+) held, 7 asked for, limit 6`), is: inQueue},
		},
		"capped": {
			{job: "over", shows: regexp.MustCompile(`: (\d+) held or promised, 7 asked for, limit 6`), is: inQueue},
		},
	} {
		for seed := range *clusters {
			t.Run(fmt.Sprintf("%s-%d", conf, seed), func(t *testing.T) {
				s := restlessScenario(uint64(seed), conf)
				config, err := configOf(conf)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Test(t, func(t *testing.T) { judgeConditions(t, s, config, figures) })
			})
		}
	}
}

// judgeConditions plays a scenario, and judges at each tick what is shown.
func judgeConditions(t *testing.T, s *scenario, conf *schedulerconfig.KubeSchedulerConfiguration, figures []figure) {
	p, err := newPlay(s, conf)
	if err != nil {
		t.Fatal(err)
	}
	figures = slices.Clone(figures)
	var mu sync.Mutex
	over := make(chan struct{})
	go func() {
		// Between two ticks pods are placed, and then there is less room than when the tick began.
		for {
			select {
			case <-over:
				return
			case <-time.After(100 * time.Millisecond):
			}
			mu.Lock()
			for i := range figures {
				figures[i].look(p.world)
			}
			mu.Unlock()
		}
	}()
	began, shown := time.Now(), 0
	for time.Since(began) < restless && !t.Failed() {
		if failure := p.step(began); failure != "" {
			t.Errorf("after %s: %s", time.Since(began), failure)
		}
		if time.Since(began) < beginning {
			continue
		}
		mu.Lock()
		for i := range figures {
			messages := p.world.messages(figures[i].job)
			shown += len(messages)
			if len(messages) == 0 {
				t.Errorf("after %s: nothing of %s says why it waits", time.Since(began), figures[i].job)
			}
			for _, m := range messages {
				if wrong := figures[i].judge(m); wrong != "" {
					t.Errorf("after %s: %s: %s", time.Since(began), figures[i].job, wrong)
				}
			}
		}
		mu.Unlock()
	}
	close(over)
	for _, process := range p.processes {
		process.kill(false)
	}
	time.Sleep(time.Minute)
	group, pod := mostAMinute(p.wire.trace.sorted(), "podgroups"), mostAMinute(p.wire.trace.sorted(), "pods/status")
	t.Logf("%d messages; at most %d writes of a PodGroup and %d of a pod in a minute", shown, group, pod)
}

// mostAMinute is how many times in one minute somebody changed the same object of a resource at most.
func mostAMinute(all trace, resource string) (most int) {
	byObject := map[string][]time.Duration{}
	for _, sent := range all {
		if strings.Contains(sent.what, "patch "+resource) {
			times := byObject[sent.what]
			for len(times) > 0 && sent.at-times[0] >= time.Minute {
				times = times[1:]
			}
			times = append(times, sent.at)
			byObject[sent.what] = times
			most = max(most, len(times))
		}
	}
	return most
}
