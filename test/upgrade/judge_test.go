// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// trial has a judge see pods, a second after each other.
type trial struct {
	t     *testing.T
	judge *judge
	now   time.Time
}

func newTrial(t *testing.T) *trial {
	return &trial{t: t, judge: newJudge(10*time.Second, map[string]int64{"a": 2000, "b": 8000}), now: time.Unix(0, 0)}
}

// pod shows the judge a pod of a gang, of a core.
func (r *trial) pod(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := worker(name, "1")
	gang, _, _ := strings.Cut(name, "-")
	p.UID, p.Labels, p.Spec.NodeName = types.UID(name), map[string]string{gangLabel: gang}, node
	for _, c := range change {
		c(p)
	}
	r.now = r.now.Add(time.Second)
	r.judge.see(p, r.now)
	return p
}

func leaves(p *corev1.Pod)   { p.DeletionTimestamp = new(metav1.Now()) }
func succeeds(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }

// after has time pass.
func (r *trial) after(d time.Duration) {
	r.now = r.now.Add(d)
	r.judge.tick(r.now)
}

// want compares the faults with what each has to say.
func (r *trial) want(faults ...string) {
	r.t.Helper()
	found, _ := r.judge.verdict()
	if !slices.EqualFunc(found, faults, strings.Contains) {
		r.t.Errorf("faults: %q, want %q", found, faults)
	}
}

func TestAPodThatIsBoundTwiceIsAFault(t *testing.T) {
	r := newTrial(t)
	r.judge.expect("g", 1)
	for _, node := range []string{"", "a", "a"} {
		r.pod("g-0", node)
	}
	r.want()
	r.pod("g-0", "b")
	r.want(`pod g-0 was bound to node a, and then to "b"`)
}

func TestANodeWithMoreThanItHasIsAFault(t *testing.T) {
	r := newTrial(t)
	r.judge.expect("g", 1)
	r.pod("g-0", "a")
	last := r.pod("g-1", "a")
	r.pod("g-0", "a", succeeds)
	r.pod("g-2", "a")
	r.judge.gone(last, r.now)
	r.pod("g-3", "a", leaves)
	r.want() // Who has succeeded or is gone takes nothing.
	r.pod("g-4", "a")
	r.want("node a has 2000m, and with pod g-4 its pods ask for 3000m: g-2 (1000m since ")
}

func TestAGangBelowItsMinimumForLongIsAFault(t *testing.T) {
	r := newTrial(t)
	r.judge.expect("g", 2)
	r.judge.expect("fine", 2)
	r.pod("fine-0", "b")
	r.pod("fine-1", "b")
	r.pod("g-0", "b")
	r.pod("g-1", "")
	r.after(9 * time.Second) // One second is that of g-1.
	r.want()
	if n := r.judge.halves(); n != 1 {
		t.Errorf("%d gangs are half bound, want 1", n)
	}
	r.after(time.Second)
	r.after(time.Second)
	r.want("gang g has held nodes for 1 pods")
	r.pod("g-1", "b")
	if _, counts := r.judge.verdict(); counts.Longest != 13*time.Second || counts.Bound != 4 {
		t.Errorf("the counts are %+v, want 14 s and 4 pods", counts)
	}
}

func TestWhoHasSucceededCountsTowardsTheMinimum(t *testing.T) {
	r := newTrial(t)
	r.judge.expect("g", 2)
	r.pod("g-0", "b")
	r.pod("g-1", "b")
	r.judge.gone(r.pod("g-0", "b", succeeds), r.now)
	r.pod("g-1", "b", succeeds)
	r.judge.end("g")
	r.after(time.Minute)
	r.want()
	if never := r.judge.unstarted(); len(never) > 0 {
		t.Errorf("%v are said never to have started", never)
	}
}

func TestAnEvictionBelowTheMinimumIsAFault(t *testing.T) {
	r := newTrial(t)
	r.judge.expect("g", 2)
	for _, name := range []string{"g-0", "g-1", "g-2"} {
		r.pod(name, "b")
	}
	r.pod("g-2", "b", leaves)
	r.want() // It was to spare.
	r.judge.gone(r.pod("g-1", "b"), r.now)
	r.want("pod g-1 was evicted, and left its gang with 1 of 2")
	if _, counts := r.judge.verdict(); counts.Evicted != 2 {
		t.Errorf("%d were evicted, want 2", counts.Evicted)
	}
}

func TestAGangThatItsLoadEndsIsNotEvicted(t *testing.T) {
	r := newTrial(t)
	r.judge.expect("g", 2)
	r.pod("g-0", "b")
	r.pod("g-1", "b")
	r.judge.end("g")
	r.judge.gone(r.pod("g-0", "b", leaves), r.now)
	r.after(time.Minute)
	r.want()
}

func TestAGangThatNeverStartsIsNamed(t *testing.T) {
	r := newTrial(t)
	r.judge.expect("g", 2)
	r.judge.expect("none", 1)
	r.pod("g-0", "b")
	if never := r.judge.unstarted(); !slices.Equal(never, []string{"g", "none"}) {
		t.Errorf("%v never started, want g and none", never)
	}
}

func TestARunFailsForWhatIsFound(t *testing.T) {
	var out strings.Builder
	o := options{out: "text", Ways: wayNames()}
	r := &result{Changes: []change{
		{Way: "kill", Halves: 1, Resumed: 3 * time.Second}, {Way: "kill", Resumed: 2 * time.Second}, {Way: "stop", Halves: 2, Resumed: time.Second},
	}}
	if err := r.print(&out, o); err != nil {
		t.Error(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{"all 3 2 1.00 s 2.00 s 3.00 s", "kill 2 1 2.00 s 3.00 s 3.00 s", "stop 1 1 1.00 s 1.00 s 1.00 s"} {
		if got := strings.Join(strings.Fields(lines[i+1]), " "); got != want {
			t.Errorf("the table says %q, want %q", got, want)
		}
	}
	r.Faults = []string{"pod x was bound twice"}
	for _, form := range []string{"text", "json"} {
		o.out = form
		if err := r.print(&out, o); err == nil || !strings.Contains(err.Error(), "pod x was bound twice") {
			t.Errorf("as %s the error is %v", form, err)
		}
	}
}

func TestWrongFlagsSaySo(t *testing.T) {
	for flags, want := range map[string]string{
		"--switches 0":    "--switches is 0",
		"--nodes 3":       "--nodes is 3",
		"--lease 1s":      "--lease is 1s",
		"--lease 2500ms":  "--lease is 2.5s",
		"--between=-1s":   "--between is -1s",
		"--rate 0":        "--rate is 0",
		"--ways stop,hit": `--ways has "hit"`,
		"--ways=":         "--ways is empty",
		"--output yaml":   `--output is "yaml"`,
	} {
		cmd := newCommand()
		cmd.SetArgs(strings.Fields(flags))
		cmd.SetErr(t.Output())
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want one that says %q", flags, err, want)
		}
	}
}

func TestWhatIsNotThereIsNamed(t *testing.T) {
	if _, err := earlier(t.Context(), "no-such-version"); err == nil || !strings.Contains(err.Error(), `"no-such-version"`) {
		t.Errorf("the error is %v, want one that names the version", err)
	}
}
