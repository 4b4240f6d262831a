// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
)

// TestAFewRounds does what a whole run does, a few times, with binds that are slow enough for a busy machine.
func TestAFewRounds(t *testing.T) {
	t.Parallel()
	binary, err := schedulerprocess.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := options{Troubles: []string{"all"}, Gangs: 2, Size: 6, Rate: 40, Blocked: 2, HalfTimeout: 2 * time.Second, Patience: 2 * time.Minute, logs: t.TempDir()}
	chosen, err := o.chosen()
	if err != nil {
		t.Fatal(err)
	}
	for _, trouble := range chosen {
		t.Run(trouble.name, func(t *testing.T) {
			t.Parallel()
			o := o
			o.Rounds = map[string]int{"kill": 4, "takeover": 3}[trouble.name]
			o.Rounds = max(o.Rounds, 1)
			rounds, err := meet(t.Context(), o, trouble, binary, t.Output())
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range rounds {
				if r.Failure != "" {
					t.Errorf("round %d, after %d: %s", i+1, r.After, r.Failure)
				}
			}
			if all := add(rounds); trouble.name == "kill" && (all.Halves < 2 || all.Released < 1) {
				t.Errorf("%d gangs were half placed and %d released: too few to judge by", all.Halves, all.Released)
			}
		})
	}
}

// on is a member of a gang on a node.
func on(gang, uid, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: uid, UID: types.UID(uid), Labels: map[string]string{gangLabel: gang}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
}

func TestAMemberThatMovesIsNoticed(t *testing.T) {
	w := &watcher{pods: map[types.UID]*corev1.Pod{}}
	for _, node := range []string{"", "a", "a"} {
		w.see(on("gang", "x", node))
	}
	if moved := w.moves(); moved != "" {
		t.Errorf("before the pod moved: %s", moved)
	}
	w.see(on("gang", "x", "b"))
	if moved, want := w.moves(), `pod x was on node a, and is on "b"`; moved != want {
		t.Errorf("it says %q, want %q", moved, want)
	}
}

func TestBindsAreCountedOnce(t *testing.T) {
	w := &watcher{pods: map[types.UID]*corev1.Pod{}}
	w.see(on("gang", "before", "a"))
	reached := w.after(2, bound)
	for _, p := range []*corev1.Pod{on("gang", "before", "a"), on("gang", "x", "a"), on("gang", "x", "a"), on("gang", "y", "")} {
		w.see(p)
	}
	select {
	case <-reached:
		t.Fatal("one pod was bound, and two are said to be")
	default:
	}
	w.see(on("gang", "y", "a"))
	<-reached
}

func TestHalfGangsAreFollowedUntilTheyAreWholeOrHoldNothing(t *testing.T) {
	w := &watcher{pods: map[types.UID]*corev1.Pod{}}
	names := []string{"completed", "released", "whole", "none"}
	for _, p := range []*corev1.Pod{on("completed", "c0", "a"), on("released", "r0", "a"), on("whole", "w0", "a"), on("whole", "w1", "a")} {
		w.see(p)
	}
	began := time.Unix(0, 0)
	h := newHalves(w.gangs(names), 2, began)
	if got := h.count(w.gangs(names)); got != 2 {
		t.Fatalf("%d gangs are half placed, want 2", got)
	}
	h.see(w.gangs(names), began.Add(time.Second))
	w.see(on("completed", "c1", "b"))
	h.see(w.gangs(names), began.Add(2*time.Second))
	delete(w.pods, "r0")
	h.see(w.gangs(names), began.Add(3*time.Second))
	h.see(w.gangs(names), began.Add(time.Minute))
	// Both held a core for the first second, one of them for another.
	if h.released != 1 || h.longest != 3*time.Second || h.held != 3 {
		t.Errorf("%d are released, the longest was half placed for %s, %g core seconds were held; want 1, 3s, 3", h.released, h.longest, h.held)
	}
}

func TestWrongFlagsSaySo(t *testing.T) {
	for flags, want := range map[string]string{
		"--rounds 0":          "--rounds is 0",
		"--gangs 0":           "--gangs 0",
		"--size 1":            "--size is 1",
		"--rate 0":            "--rate is 0",
		"--blocked -1":        "--blocked is -1",
		"--half-timeout 10ms": "--half-timeout is 10ms",
		"--output yaml":       `--output is "yaml"`,
		"--troubles kil":      `--troubles has "kil"`,
		"--troubles=":         "--troubles is empty",
	} {
		cmd := newCommand()
		cmd.SetArgs(strings.Fields(flags))
		cmd.SetErr(t.Output())
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want one that says %q", flags, err, want)
		}
	}
}

// TestEvictionsAreCounted: those of others, each once, and anew in each round.
func TestEvictionsAreCounted(t *testing.T) {
	w := &watcher{pods: map[types.UID]*corev1.Pod{}, victims: map[types.UID]*corev1.Pod{}}
	other := func(uid string, ends bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Labels: map[string]string{othersLabel: "true"}}}
		if ends {
			p.DeletionTimestamp = new(metav1.Now())
		}
		return p
	}
	w.see(other("before", true))
	reached := w.after(1, evicted)
	for _, p := range []*corev1.Pod{other("x", false), other("x", true), other("x", true), other("before", true), on("gang", "g", "a")} {
		w.see(p)
	}
	<-reached
	if diff := cmp.Diff(map[string]int{" nobody evicted it": 1}, w.evictions()); diff != "" {
		t.Errorf("evictions (-want +got):\n%s", diff)
	}
}

func TestARunFailsIfARoundDoes(t *testing.T) {
	var text strings.Builder
	rounds := []round{
		{Halves: 1, Released: 1, Longest: 3 * time.Second, Held: 4, Others: time.Second, Evicted: 2},
		{Halves: 1, Longest: time.Second, Others: 2 * time.Second, Evicted: 3, Failure: "moved"},
	}
	if err := report(&text, options{out: "text"}, []result{{Trouble: "kill", Sum: add(rounds)}}); err == nil || err.Error() != "1 of 2 rounds failed" {
		t.Errorf("the error is %v", err)
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	if got, want := strings.Join(strings.Fields(lines[1]), " "), "kill 2 1 2 1 3.0 4 2.0 5"; got != want {
		t.Errorf("the table says %s, want %s", got, want)
	}
	if err := report(&text, options{out: "json"}, []result{{Trouble: "kill", Rounds: rounds[:1], Sum: add(rounds[:1])}}); err != nil {
		t.Error(err)
	}
}
