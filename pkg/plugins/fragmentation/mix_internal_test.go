// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/caldera-scheduler/caldera/pkg/node/fragment"
)

var (
	start = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	one   = fragment.Demand{GPUs: 1, Milli: fragment.Whole}
	eight = fragment.Demand{GPUs: 8, Milli: fragment.Whole}
)

// learner learns with a cluster of its own.
type learner struct {
	*mix
	clock *testingclock.FakePassiveClock
	pods  int
	nodes int
	bound []arrival
	// surveys is how often kinds were worked out.
	surveys int
}

func newLearner() *learner {
	c := testingclock.NewFakePassiveClock(start)
	return &learner{mix: newMix(c, time.Hour), clock: c, nodes: 1}
}

// arrives makes a pod of so long ago.
func (l *learner) arrives(d fragment.Demand, ago time.Duration) arrival {
	l.pods++
	return arrival{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		UID: types.UID(fmt.Sprint(l.pods)), CreationTimestamp: metav1.NewTime(l.clock.Now().Add(-ago)),
	}}, d}
}

func (l *learner) learns(a arrival) *outlook {
	return l.learn(a, l.nodes, func() []arrival { return l.bound }, func() cluster {
		l.surveys++
		return cluster{nodes: l.nodes, gpus: map[string]int{"T4": 10, "A100": 30}, milliCPU: 64000, each: 8000}
	}, func(models, model string) bool { return strings.Contains(models, model) })
}

// now is what each demand counts at this time.
func (l *learner) now() map[fragment.Demand]float64 {
	l.rebase(l.mix.clock.Now())
	return l.counts
}

func TestAPodCountsOnceAndHalfAfterAHalfLife(t *testing.T) {
	l := newLearner()
	first := l.arrives(one, 0)
	l.learns(first)
	l.learns(first)
	l.learns(l.arrives(eight, time.Hour))
	if got := l.now(); math.Abs(got[one]-1) > 1e-9 || math.Abs(got[eight]-0.5) > 1e-9 {
		t.Errorf("counts are %v, want 1 for the one that came now and 0.5 for the other, which came an hour ago", got)
	}
	l.clock.SetTime(start.Add(2 * time.Hour))
	if got := l.now(); math.Abs(got[one]-0.25) > 1e-9 || math.Abs(got[eight]-0.125) > 1e-9 {
		t.Errorf("two hours later counts are %v, want a quarter", got)
	}
	l.clock.SetTime(start.Add(6 * time.Hour))
	if got := l.now(); len(got) != 0 {
		t.Errorf("after six half-lives counts are %v, want none", got)
	}
}

// TestNumbersStaySmall: nothing overflows where no kinds are worked out for years, or a clock or a creation time is wrong by years.
func TestNumbersStaySmall(t *testing.T) {
	l := newLearner()
	for _, years := range []int{0, 5, 50} {
		l.clock.SetTime(start.AddDate(years, 0, 0))
		for _, ago := range []time.Duration{0, -1e6 * time.Hour, 1e6 * time.Hour} {
			l.learns(l.arrives(one, ago))
		}
	}
	l.learns(arrival{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "never created"}}, one})
	if got := l.now()[one]; math.Abs(got-3) > 1e-9 {
		t.Errorf("pods count %v, want 3: those of now, and those of the future as if they were", got)
	}
}

// TestWhatIsRememberedOverARestart: pods on nodes count from the beginning, by their age; those of a DaemonSet say nothing about what will come.
func TestWhatIsRememberedOverARestart(t *testing.T) {
	l := newLearner()
	everywhere := l.arrives(fragment.Demand{MilliCPU: 100}, 0)
	everywhere.pod.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}}
	l.bound = []arrival{l.arrives(eight, 0), l.arrives(eight, time.Hour), everywhere}
	l.learns(l.bound[0])
	if got := l.now(); len(got) != 1 || math.Abs(got[eight]-1.5) > 1e-9 {
		t.Errorf("counts are %v, want 1.5 of those with eight GPUs alone", got)
	}
}

func TestKindsAreWorkedOutAnewNowAndThen(t *testing.T) {
	l := newLearner()
	for range 1000 {
		l.learns(l.arrives(one, 0))
	}
	before := l.learns(l.arrives(one, 0))
	if l.surveys < 20 || l.surveys > 150 {
		t.Errorf("kinds were worked out %d times for 1000 pods, want about one in 20 pods where there are 20 and fewer then", l.surveys)
	}
	if again := l.learns(l.arrives(one, 0)); again != before {
		t.Error("one pod in a thousand is a reason to score all nodes again")
	}
	l.nodes++
	if again := l.learns(l.arrives(one, 0)); again.version != before.version+1 || again.cluster.nodes != 2 {
		t.Errorf("a node has joined, and kinds are those of before: version %d of %d nodes", again.version, again.cluster.nodes)
	}
}

func TestModelsAreThoseThatThereAre(t *testing.T) {
	gpus := map[string]int{"T4": 1, "A100": 1, "A100-80G": 1}
	takes := func(models, model string) bool {
		return slices.ContainsFunc(strings.Split(models, ","), func(m string) bool { return strings.HasPrefix(model, m) })
	}
	for models, want := range map[string]string{"T4": "T4", "A100": "A100|A100-80G", "T4,A": "", "H100": nowhere, "H100,T4": "T4"} {
		if got := among(models, gpus, takes); got != want {
			t.Errorf("%s: got %q, want %q", models, got, want)
		}
	}
}

// TestHopelessPodsAreNoKind: 500 pods that fit no node, by CPU, by GPUs or by model, do not change what nodes are good for.
func TestHopelessPodsAreNoKind(t *testing.T) {
	l := newLearner()
	l.learns(l.arrives(one, 0))
	for range 500 {
		for _, hopeless := range []fragment.Demand{
			{MilliCPU: 64001}, {GPUs: 9, Milli: fragment.Whole}, {GPUs: 1, Milli: fragment.Whole, Models: "H100"},
		} {
			l.learns(l.arrives(hopeless, 0))
		}
	}
	k := l.learns(l.arrives(one, 0)).kinds
	if lost := k.Lost(fragment.Left{MilliCPU: 1000, GPUs: []int{1000, 1000}}); k.Len() != 1 || lost != 0 {
		t.Errorf("of two free GPUs %g thousandths are lost to %d kinds, want none: those who want one can have them", lost, k.Len())
	}
}

// TestAClockThatIsSetBack: what was counted counts no more than before.
func TestAClockThatIsSetBack(t *testing.T) {
	l := newLearner()
	l.clock.SetTime(start.AddDate(1, 0, 0))
	l.learns(l.arrives(one, 0))
	l.now()
	l.clock.SetTime(start)
	l.learns(l.arrives(one, 0))
	if got := l.now()[one]; got < 1 || got > 2 {
		t.Errorf("two pods count %g", got)
	}
}

func TestWhatIsGoneIsForgotten(t *testing.T) {
	l := newLearner()
	a := l.arrives(one, 0)
	l.learns(a)
	l.forget(a.pod.UID)
	if len(l.seen) != 0 {
		t.Errorf("%v are remembered", l.seen)
	}
	if got := l.now()[one]; got != 1 {
		t.Errorf("a pod that is gone counts %g, want 1: more like it will come", got)
	}
}
