// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/util/workqueue"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// says fails the test unless a complaint is the one that is wanted; empty for none.
func says(t *testing.T, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) || want == "" && got != "" {
		t.Errorf("the complaint is %q, want %q", got, want)
	}
}

// capped is a cluster without a scheduler, in which two jobs of two cores each ask to be let into a queue of three cores.
func capped(t *testing.T) *world {
	t.Helper()
	asks := func(name string) job {
		return job{Name: name, Size: 2, Min: 2, Cores: 1, Queue: cappedQueue, Class: "low"}
	}
	p, err := newPlay(&scenario{Conf: "capped", Capability: 3, Nodes: []node{{"n", 8}}, Jobs: []job{asks("one"), asks("other")}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.world.work()
	return p.world
}

// let has the PodGroup of a job say that it is in a phase.
func (w *world) let(t *testing.T, job string, phase volcano.PodGroupPhase) {
	t.Helper()
	o, err := w.api.Get(groups, namespace, job)
	if err != nil {
		t.Fatal(err)
	}
	group := o.(*volcano.PodGroup)
	group.Status.Phase = phase
	w.must(w.api.Update(groups, group, namespace))
}

// TestQueuesPromiseNoMoreThanTheyMayHold: and no less.
func TestQueuesPromiseNoMoreThanTheyMayHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := capped(t)
		says(t, w.overpromised(), "")
		says(t, w.keptOut(), "one is not let in though its queue may hold 3 more cores")
		w.let(t, "one", volcano.PodGroupInqueue)
		says(t, w.overpromised(), "")
		says(t, w.keptOut(), "")
		w.let(t, "other", volcano.PodGroupInqueue)
		says(t, w.overpromised(), "other was let into a queue that may hold 3 cores, of which 4 are promised now")
		says(t, w.overpromised(), "") // it has said so
	})
}

// TestWhoFitsBesideACrowd may wait for a while only.
func TestWhoFitsBesideACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crowd := job{Name: "crowd", Size: 1, Min: 1, Cores: 1, Queue: "a", Class: "high", Stuck: unwelcome}
		fits := job{Name: "fits", Size: 2, Min: 2, Cores: 2, Queue: "a", Class: "low"}
		p, err := newPlay(&scenario{Conf: "plain", Nodes: []node{{"n", 4}}, Jobs: []job{crowd, fits}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		p.world.work()
		says(t, p.world.overlooked(), "")
		time.Sleep(overlooks)
		says(t, p.world.overlooked(), "")
		time.Sleep(time.Second)
		says(t, p.world.overlooked(), "fits fits, and was overlooked for 16s")
		for _, pod := range p.world.pods() {
			if pod.Labels[jobLabel] == "fits" {
				p.world.update(pod, func(pod *corev1.Pod) { pod.Spec.NodeName = "n" })
			}
		}
		says(t, p.world.overlooked(), "")
	})
}

// TestACensusCountsWhatGrows: maps, slices and queues, also those of parts of parts.
func TestACensusCountsWhatGrows(t *testing.T) {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[model.JobKey]())
	defer queue.ShutDown()
	before := total(take(queue))
	queue.Add(model.JobKey{Name: "j"})
	c := take(queue)
	if got := total(c) - before; got < 1 {
		t.Errorf("a queue with one more job has %d more entries: %v", got, c.entries)
	}
	var jobs []string
	for _, names := range c.jobs {
		jobs = append(jobs, names...)
	}
	if !slices.Contains(jobs, "j") {
		t.Errorf("the jobs are %v, want j among them", jobs)
	}
}

func total(c census) int {
	n := 0
	for _, entries := range c.entries {
		n += entries
	}
	return n
}

// TestRequestsNeedRights: those of the shipped roles.
func TestRequestsNeedRights(t *testing.T) {
	rules, err := granted()
	if err != nil {
		t.Fatal(err)
	}
	w := newWire(&scenario{}, nil, rules)
	pods := &request.RequestInfo{IsResourceRequest: true, Verb: "create", APIVersion: "v1", Resource: "pods", Subresource: "eviction", Namespace: namespace, Name: "p"}
	if !w.allowed(pods) || w.hits["the right to create pods/eviction"] != 1 {
		t.Errorf("evicting a pod is not allowed, or not noted: %v", w.hits)
	}
	pods.Verb, pods.Subresource = "update", ""
	if w.allowed(pods) {
		t.Error("changing a pod is allowed")
	}
	w.authorize(pods, kindOf(pods))
	says(t, w.misused(), "the scheduler has no right to update pods, and asked for that")
	rights, err := writingRights()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"the right to patch podgroups", "the right to create queues", "the right to patch podgroups/status", "the right to patch queues/status",
		"the right to create pods/eviction", "the right to patch pods",
	}
	if diff := cmp.Diff(want, rights); diff != "" {
		t.Errorf("the rights to write that our own role gives (-want,+got)\n%s", diff)
	}
}
