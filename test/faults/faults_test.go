// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
)

func TestMain(m *testing.M) {
	// What starts once a process must not start within a bubble: upstream listens for a signal, and klog writes what it has from time to time.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR2)
	klog.StartFlushDaemon(time.Hour)
	if level := os.Getenv(logVariable); level == "" {
		klog.SetLogger(logr.Discard())
	} else {
		flags := flag.NewFlagSet("klog", flag.PanicOnError)
		klog.InitFlags(flags)
		if err := flags.Set("v", level); err != nil {
			panic(err)
		}
	}
	prepare()
	os.Exit(m.Run())
}

// TestPlay plays the scenarios it reads, for the parent process, and tells what became of each.
func TestPlay(t *testing.T) {
	if os.Getenv(childVariable) == "" {
		t.Skip("it plays what another process sends")
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	var before outcome
	scenarioBefore := ""
	for lines.Scan() {
		s := &scenario{}
		if err := json.Unmarshal(lines.Bytes(), s); err != nil {
			t.Fatal(err)
		}
		o := play(t, s)
		if lines.Text() == scenarioBefore {
			o.Differs = o.trace.differs(before.trace)
		}
		before, scenarioBefore = o, lines.Text()
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s\n", text)
	}
}

// TestSeeds is what CI plays.
func TestSeeds(t *testing.T) {
	program, remove, err := build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	o := options{Seeds: 1000, First: 1, Parallel: runtime.NumCPU(), Repeat: repeat, dir: t.ArtifactDir(), out: "text"}
	found, err := run(t.Context(), program, o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if err := found.report(t.Output(), o); err != nil {
		t.Error(err)
	}
	if found.Same*10 < found.Repeated*9 {
		t.Errorf("%d of %d scenarios came out the same when they were played again: %v", found.Same, found.Repeated, found.Differing)
	}
	if len(found.Seen) < 60 || len(found.During) < 100 || found.Bound < 5000 || found.Evicted < 300 {
		t.Errorf("%d kinds of faults and events, %d of them by moments, %d pods bound, %d evicted: too little happened to judge by",
			len(found.Seen), len(found.During), found.Bound, found.Evicted)
	}
}

func TestAScenarioComesFromItsSeed(t *testing.T) {
	for seed := range uint64(200) {
		a, b := draw(seed), draw(seed)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("seed %d gives two scenarios (-one,+other)\n%s", seed, diff)
		}
		if err := a.check(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		read := &scenario{}
		if err := json.Unmarshal(text, read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a, read, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("seed %d is read as another scenario than was written (-written,+read)\n%s", seed, diff)
		}
	}
}

// TestShrinkLeavesWhatItTakes: a scenario fails if the scheduler crashes while a bind of the second job is refused.
func TestShrinkLeavesWhatItTakes(t *testing.T) {
	s := draw(7)
	s.Slow, s.Drowsy = true, true
	s.Jobs = []job{{Name: "a", Size: 1, Cores: 1}, {Name: "b", Size: 1, Cores: 1}, {Name: "c", Size: 1, Cores: 1}}
	for i := range 20 {
		s.Events = append(s.Events, event{Kind: podDeleted, Target: "a", N: i}, event{Kind: nodeLost, Target: s.Nodes[0].Name})
	}
	s.Events = append(s.Events, event{Kind: crash}, event{Kind: bindsRefused, Target: "b"})
	has := func(s *scenario, kind, target string) bool {
		return slices.ContainsFunc(s.Events, func(e event) bool { return e.Kind == kind && e.Target == target })
	}
	fails := func(s *scenario) bool { return has(s, crash, "") && has(s, bindsRefused, "b") && len(s.Jobs) > 0 }
	small := shrink(s, fails)
	if small == nil || len(small.Events) != 2 || len(small.Jobs) != 1 || small.Jobs[0].Name != "b" || len(small.Nodes) != 1 || len(small.Faults) != 0 || small.Slow || small.Drowsy {
		t.Errorf("what is left is %+v", small)
	}
	times := 0
	if small := shrink(s, func(*scenario) bool { times++; return times == 1 }); small != nil {
		t.Errorf("one that does not fail again is cut down to %+v", small)
	}
}

func TestTracesPartAtTheFirstDifference(t *testing.T) {
	one := trace{{1, "p: get a", nil}, {2, "p: create b", []byte("x")}, {2, "p: create a", nil}}
	swapped := trace{one[0], one[2], one[1]}
	if differs := one.sorted().differs(swapped.sorted()); differs != "" || one.sorted().hash() != swapped.sorted().hash() {
		t.Errorf("the order of what is sent at the same moment makes a difference: %s", differs)
	}
	for want, other := range map[string]trace{
		"2ns p: create b x, not 2ns p: create b y": {one[0], one[2], {2, "p: create b", []byte("y")}},
		"2ns p: create b x, not 3ns p: create b x": {one[0], one[2], {3, "p: create b", []byte("x")}},
		"it goes on with 2ns p: create b x":        {one[0], one[2]},
		"it ends before 4ns p: get a ":             append(swapped, sending{4, "p: get a", nil}),
	} {
		if got := one.sorted().differs(other.sorted()); got != want || one.sorted().hash() == other.sorted().hash() {
			t.Errorf("the difference is %q, want %q", got, want)
		}
	}
}

// TestPlayTellsWhatBecameOfAScenario: one that cannot be played fails, and one in which all faults end in time does not.
func TestPlayTellsWhatBecameOfAScenario(t *testing.T) {
	for name, tc := range map[string]struct {
		s    scenario
		want string
	}{
		"a wrong configuration": {scenario{Conf: "none"}, "there is no such configuration"},
		"news that would come too late comes when all faults end": {scenario{
			Conf: "plain", Nodes: []node{{"n", 4}}, Jobs: []job{{Name: "j", Size: 2, Min: 2, Cores: 1, Queue: "a", Class: "low"}},
			Events: []event{{Kind: watchDelayed, Target: "podgroups", For: duration(time.Hour)}},
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if o := play(t, &tc.s); !strings.Contains(o.Failure, tc.want) || tc.want == "" && o.Failure != "" {
				t.Errorf("it fails with %q, want %q", o.Failure, tc.want)
			}
		})
	}
}

// TestComplaints checks the judge: on clusters without a scheduler.
func TestComplaints(t *testing.T) {
	gang := job{Name: "j", Size: 3, Min: 3, Cores: 2, Queue: "a", Class: "low"}
	for name, tc := range map[string]struct {
		conf   string
		nodes  []node
		events []event
		// bound is how many pods are put on the node, and then what happens at once.
		bound int
		want  string
		then  []event
	}{
		"it fits and waits":                {"plain", []node{{"n", 6}}, nil, 0, "waits though 3 more pods of 2 cores fit", nil},
		"it does not fit":                  {"plain", []node{{"n", 5}}, nil, 0, "", nil},
		"half of it is there":              {"plain", []node{{"n", 5}}, nil, 2, "has 2 pods on nodes, needs 3, and was never whole", nil},
		"all of it is there, and not told": {"plain", []node{{"n", 6}}, nil, 3, "has its minimum of 3 pods on nodes, and its PodGroup is Pending", nil},
		"it can never run":                 {"plain", []node{{"n", 6}}, []event{{Kind: jobDeleted, Target: "j"}}, 0, "", nil},
		"it may never be bound":            {"plain", []node{{"n", 6}}, []event{{Kind: bindsRefused, Target: "j", N: -1}}, 0, "", nil},
		"everybody fits, and it waits":     {"queues", []node{{"n", 6}}, nil, 0, "waits though there is room for everybody", nil},
		"some fit, and it is in its share": {"queues", []node{{"n", 5}}, nil, 0, "", nil},
		"more than fits is there":          {"plain", []node{{"n", 5}}, nil, 3, "has 5 cores, and pods for 6 of them", nil},
		"it was whole for a moment":        {"plain", []node{{"n", 6}}, nil, 3, "", []event{{Kind: podFailed, Target: "j"}, {Kind: nodeShrunk, Target: "n", N: 2, For: duration(time.Hour)}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scenario{Conf: tc.conf, Nodes: tc.nodes, Jobs: []job{gang}}
				p, err := newPlay(s, nil)
				if err != nil {
					t.Fatal(err)
				}
				p.world.work()
				for _, e := range tc.events {
					p.world.happen(e)
				}
				for i, pod := range p.world.pods() {
					if i < tc.bound {
						p.world.update(pod, func(pod *corev1.Pod) { pod.Spec.NodeName = "n" })
					}
				}
				for _, e := range tc.then {
					p.world.happen(e)
				}
				p.world.work()
				got := p.world.overcommitted(p.placed)
				if got == "" {
					got = p.world.complaint()
				}
				if !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
					t.Errorf("the complaint is %q, want %q", got, tc.want)
				}
			})
		})
	}
}

func TestWrongFlagsSaySo(t *testing.T) {
	for flags, want := range map[string]string{
		"--seeds 0":              "--seeds is 0",
		"--parallel 0":           "--parallel 0",
		"--output yaml":          `--output is "yaml"`,
		"-v":                     "--verbose goes with",
		"--replay /nowhere.json": "no such file",
	} {
		cmd := newCommand()
		cmd.SetArgs(strings.Fields(flags))
		cmd.SetErr(t.Output())
		cmd.SetOut(t.Output())
		if flags == "--replay /nowhere.json" {
			if err := again(t.Context(), "", options{replay: "/nowhere.json"}, t.Output(), t.Output()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the error is %v, want one that says %q", flags, err, want)
			}
			continue
		}
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want one that says %q", flags, err, want)
		}
	}
}

func TestAScenarioThatCannotBePlayedSaysWhy(t *testing.T) {
	for want, s := range map[string]scenario{
		`conf is "x"`:               {Conf: "x"},
		"jobs[0] has size 0":        {Conf: "plain", Jobs: []job{{Name: "j"}}},
		`events[0].kind is "x"`:     {Conf: "plain", Events: []event{{Kind: "x"}}},
		`events[0].target is "x"`:   {Conf: "plain", Events: []event{{Kind: nodeLost, Target: "x"}}},
		`faults[0].in is "x"`:       {Conf: "plain", Faults: []outage{{In: "x", Kind: refused}}},
		`events[0].in is "x"`:       {Conf: "plain", Events: []event{{Kind: crash, In: "x"}}},
		`events[0].in is "placing"`: {Conf: "plain", Events: []event{{Kind: crash, In: "placing"}}},
		`faults[0].in is "placing"`: {Conf: "plain", Faults: []outage{{In: "placing", Kind: refused}}},
		`faults[0] is "x" at "y"`:   {Conf: "plain", Faults: []outage{{Request: "y", Kind: "x"}}},
	} {
		if err := s.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one that says %q", err, want)
		}
	}
}

// placedOn is a cluster without a scheduler. It has one node, and a job of three pods of two cores each. So many of these are on the node.
func placedOn(t *testing.T, bound int) *playing {
	s := &scenario{Conf: "plain", Nodes: []node{{"n", 6}}, Jobs: []job{{Name: "j", Size: 3, Min: 3, Cores: 2, Queue: "a", Class: "low"}}}
	p, err := newPlay(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	p.world.work()
	for _, pod := range p.world.pods()[:bound] {
		p.world.update(pod, func(pod *corev1.Pod) { pod.Spec.NodeName, pod.Status.Phase = "n", corev1.PodRunning })
	}
	return p
}

// TestWhatPodGroupsHaveToSay: how many pods run, and why a job waits.
func TestWhatPodGroupsHaveToSay(t *testing.T) {
	waits := volcano.PodGroupCondition{Type: volcano.PodGroupUnschedulableType, Status: corev1.ConditionTrue, Message: "no room"}
	for name, tc := range map[string]struct {
		bound  int
		status volcano.PodGroupStatus
		want   string
	}{
		"that it waits":       {2, volcano.PodGroupStatus{Running: 2, Conditions: []volcano.PodGroupCondition{waits}}, ""},
		"that all run":        {3, volcano.PodGroupStatus{Running: 3}, ""},
		"nothing":             {2, volcano.PodGroupStatus{Running: 2}, "does not say why"},
		"that it still waits": {3, volcano.PodGroupStatus{Running: 3, Conditions: []volcano.PodGroupCondition{waits}}, "has all it needs, and its PodGroup says that it waits: no room"},
		"too few":             {3, volcano.PodGroupStatus{Running: 2}, "has 3 pods that run and 0 that have succeeded, and its PodGroup says 2 and 0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := placedOn(t, tc.bound).world
				o, err := w.api.Get(groups, namespace, "j")
				if err != nil {
					t.Fatal(err)
				}
				group := o.(*volcano.PodGroup)
				group.Status = tc.status
				w.must(w.api.Update(groups, group, namespace))
				if got := w.untold(); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
					t.Errorf("the complaint is %q, want %q", got, tc.want)
				}
			})
		})
	}
}

// TestEvictionsAreJudged: what was not decided, what was not needed, what was too much, and what came to nothing.
func TestEvictionsAreJudged(t *testing.T) {
	decided := func(action string, pods ...string) plans {
		d := eviction.Decision{Action: action, Beneficiary: model.JobKey{Namespace: namespace, Name: "j"}}
		for _, pod := range pods {
			d.Victims = append(d.Victims, &eviction.Victim{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod}}, State: eviction.Sent})
		}
		return plans{decisions: []eviction.Decision{d}}
	}
	for name, tc := range map[string]struct {
		bound   int
		happen  func(p *playing)
		want    string
		useless bool
	}{
		"nobody decided it": {3, func(p *playing) { p.world.docket.enter("x", 1, plans{}) }, "nobody had decided that", false},
		"there is no room":  {1, func(p *playing) { p.world.docket.enter("x", 1, decided(eviction.Reclaim, "x")) }, "", true},
		"there is room": {0, func(p *playing) {
			p.world.docket.judge()
			time.Sleep(time.Minute)
			p.world.docket.enter("x", 1, decided(eviction.Reclaim, "x"))
		}, "there has been room since", false},
		"there is room, and it is kept for others": {0, func(p *playing) {
			p.world.docket.judge()
			time.Sleep(time.Minute)
			of := decided(eviction.Reclaim, "x")
			of.kept = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "y", Labels: map[string]string{jobLabel: "other"}}}}
			p.world.docket.enter("x", 1, of)
		}, "", true},
		"it is too much": {1, func(p *playing) {
			for range 5 {
				p.world.docket.enter("x", 1, decided(eviction.Reclaim, "x"))
			}
		}, "5 cores were taken from others for j, which has got nothing by it and needs 2 pods of 2 cores", true},
		"something else happened": {1, func(p *playing) {
			p.world.docket.pardon(0)
			p.world.docket.enter("x", 1, decided(eviction.Reclaim, "x"))
		}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := placedOn(t, tc.bound)
				tc.happen(p)
				d := p.world.docket
				if got := d.judge(); !strings.Contains(got, tc.want) || tc.want == "" && got != "" {
					t.Errorf("it says %q, want %q", got, tc.want)
				}
				if got := d.inVain(); (got != "") != tc.useless {
					t.Errorf("of what came to nothing it says %q, want something: %t", got, tc.useless)
				}
			})
		})
	}
}

// TestWhoComesFirst: by priority, then who is yet to start, then who is older.
func TestWhoComesFirst(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	waiting := func(class string, least, placed, age int) *examinee {
		return &examinee{life: &life{job: job{Class: class}, min: least}, created: at(-age), standing: standing{placed: placed}}
	}
	order := []*examinee{waiting("high", 2, 2, 1), waiting("low", 2, 0, 9), waiting("low", 2, 1, 5), waiting("low", 1, 1, 10)}
	for i, a := range order {
		for j, b := range order {
			if got := a.before(b); got != (i < j) {
				t.Errorf("the %dth comes before the %dth: %t", i+1, j+1, got)
			}
		}
	}
}
