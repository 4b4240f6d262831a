// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// TestPipeline follows a decision to evict: the victim leaves at once as far as queues are concerned, and its room is kept
// for the nominated task through whatever the API server says of either until that is settled.
func TestPipeline(t *testing.T) {
	s := watching()
	s.UpsertNode(newNode("node-0"))
	victim := newPod("victim", running)
	victim.Spec.NodeName = "node-0"
	waiting := newPod("waiting")
	s.UpsertPod(victim)
	s.UpsertPod(waiting)
	s.Pipeline([]model.Nomination{{UID: "waiting", Node: "node-0"}, {UID: "unknown", Node: "node-0"}}, []types.UID{"victim", "unknown"})

	check := func(when string, status model.Status, nominated string) {
		t.Helper()
		if v := s.Task("victim"); v.Status != status {
			t.Errorf("%s: the victim is %s, want %s", when, v.Status, status)
		}
		w := s.Task("waiting")
		if w.Nominated != nominated || w.Status != model.Pending {
			t.Errorf("%s: the waiting task is %s with room on %q, want it on %q", when, w.Status, w.Nominated, nominated)
		}
		job, lost := s.Job(w.Job), s.Job(s.Task("victim").Job)
		if kept := !job.Usage.Reserved.IsZero(); kept != (nominated != "") || !job.Usage.Allocated.Equal(job.Usage.Reserved) {
			t.Errorf("%s: the job holds %s, %s of it kept", when, job.Usage.Allocated, job.Usage.Reserved)
		}
		if holds := !lost.Usage.Allocated.IsZero(); holds != (status == model.Running) {
			t.Errorf("%s: the victim's job holds %s", when, lost.Usage.Allocated)
		}
		if leaving := s.Leaving(); (len(leaving) == 1) != (status == model.Releasing) {
			t.Errorf("%s: leaving are %v", when, leaving)
		}
		if len(s.Nominated()) == 1 != (nominated != "") {
			t.Errorf("%s: nominated are %v", when, s.Nominated())
		}
	}
	check("decided", model.Releasing, "node-0")
	// News from before the API server heard of it.
	s.UpsertPod(victim.DeepCopy())
	s.UpsertPod(waiting.DeepCopy())
	check("older news", model.Releasing, "node-0")
	gone := victim.DeepCopy()
	gone.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
	if c := s.UpsertPod(gone); c.Events&model.EvictionAnswered == 0 || len(s.Evicting()) != 0 {
		t.Errorf("nobody hears that it leaves: %b", c.Events)
	}
	check("terminating", model.Releasing, "node-0")
	if until := s.Leaving()[0].Until; until != time.Unix(1000, 0) {
		t.Errorf("it should be gone by %s", until)
	}
	s.Spare("victim")
	check("too late to spare", model.Releasing, "node-0")
	s.ClearNominations("waiting", "unknown")
	check("given up", model.Releasing, "")
}

func TestSpare(t *testing.T) {
	s := watching()
	victim := newPod("victim", running)
	victim.Spec.NodeName = "node-0"
	s.UpsertPod(victim)
	s.Pipeline(nil, []types.UID{"victim"})
	if list := s.Evicting(); len(list) != 1 || list[0].UID != "victim" {
		t.Errorf("to be evicted: %v", list)
	}
	if c := s.Spare("victim"); c.Events&model.EvictionAnswered == 0 {
		t.Errorf("nobody hears that it stays: %b", c.Events)
	}
	if v := s.Task("victim"); v.Status != model.Running || v.Evicting || len(s.Leaving()) != 0 || len(s.Evicting()) != 0 {
		t.Errorf("it is %s, leaving %v, after it was spared", v.Status, s.Leaving())
	}
}

// TestNominationsEndWithTheirUse: a task that gets a node, that one or another, or goes away, keeps no room.
func TestNominationsEndWithTheirUse(t *testing.T) {
	for name, end := range map[string]func(*model.State){
		"reserved": func(s *model.State) { s.Assume("p", "node-1") },
		"deleted":  func(s *model.State) { s.DeletePod("p") },
		"bound elsewhere": func(s *model.State) {
			p := newPod("p")
			p.Spec.NodeName = "node-1"
			s.UpsertPod(p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := watching()
			s.UpsertPod(newPod("p"))
			s.Pipeline([]model.Nomination{{UID: "p", Node: "node-0"}}, nil)
			end(s)
			if n := s.Nominated(); len(n) != 0 {
				t.Errorf("room is still kept for %v", n)
			}
		})
	}
}

// TestRoomKeptByAnotherProcess: the API server tells for whom a scheduler before this one kept room.
func TestRoomKeptByAnotherProcess(t *testing.T) {
	s := watching()
	p := newPod("p", func(p *corev1.Pod) { p.Status.NominatedNodeName = "node-0" })
	s.UpsertPod(p)
	if task := s.Task("p"); task.Nominated != "node-0" {
		t.Errorf("room is kept on %q, want node-0", task.Nominated)
	}
	// Once given up it is not taken up again from what the API server still says.
	s.Lead()
	s.ClearNominations("p")
	s.UpsertPod(p.DeepCopy())
	if task := s.Task("p"); task.Nominated != "" {
		t.Errorf("room is kept on %q again", task.Nominated)
	}
}

// TestUntilItLeadsTheAPIServerSaysForWhomRoomIsKept: the process that leads decides that while this one watches.
func TestUntilItLeadsTheAPIServerSaysForWhomRoomIsKept(t *testing.T) {
	type steps = []func(*model.State)
	pod := func(node string) func(*model.State) {
		return func(s *model.State) {
			s.UpsertPod(newPod("p", func(p *corev1.Pod) { p.Status.NominatedNodeName = node }))
		}
	}
	lead := func(s *model.State) { s.Lead() }
	for name, tc := range map[string]struct {
		steps steps
		want  string
	}{
		"written after the pod was seen":          {steps{pod(""), pod("node-0"), lead}, "node-0"},
		"moved":                                   {steps{pod("node-0"), pod("node-1"), lead}, "node-1"},
		"taken back":                              {steps{pod("node-0"), pod(""), lead}, ""},
		"delivered again after this one leads":    {steps{pod(""), pod("node-0"), lead, pod("node-0")}, "node-0"},
		"news of before the change of the leader": {steps{pod(""), pod("node-0"), lead, pod("")}, "node-0"},
		"what others write does not count then":   {steps{pod(""), lead, pod("node-0")}, ""},
		"for a pod it had not seen it does":       {steps{lead, pod("node-0")}, "node-0"},
	} {
		t.Run(name, func(t *testing.T) {
			s := watching()
			for _, step := range tc.steps {
				step(s)
			}
			if got := s.Task("p").Nominated; got != tc.want {
				t.Errorf("room is kept on %q, want %q", got, tc.want)
			}
		})
	}
}

// watching returns a state whose tasks are the pods of the batch scheduler.
func watching() *model.State {
	s := model.NewState()
	s.AddScheduler(batch)
	return s
}

func TestRoomThatIsKeptIsTakenOfItsNode(t *testing.T) {
	s := watching()
	s.UpsertNode(newNode("node-1"))
	s.UpsertNode(newNode("node-0"))
	s.UpsertPod(newPod("running", running))
	s.UpsertPod(newPod("other", running, of("other")))
	s.UpsertPod(newPod("lost", on("node-9"), phase(corev1.PodRunning)))
	s.UpsertPod(newPod("waiting"))
	s.Pipeline([]model.Nomination{{UID: "waiting", Node: "node-1"}}, nil)
	got := map[string]int64{}
	for _, n := range s.Nodes() {
		got[n.Name] = n.Used.Get(corev1.ResourceCPU)
	}
	if len(got) != 2 || got["node-0"] != 2000 || got["node-1"] != 1000 {
		t.Errorf("millicores that are taken: %v, want 2000 of node-0 and 1000 of node-1", got)
	}
	if list := s.Nodes(); list[0].Name != "node-0" {
		t.Errorf("the first node is %s, want node-0", list[0].Name)
	}
}
