// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package usage_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node/load"
	"github.com/caldera-scheduler/caldera/pkg/plugins/usage"
)

// changing is a source whose answers a test changes.
type changing struct {
	mu sync.Mutex
	told
	asked int
	// hangs: it answers when the context ends.
	hangs bool
}

func (s *changing) Loads(ctx context.Context) (map[string]load.Load, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.loads, s.err
}

// tell gives a node a load of now, with both parts alike.
func (s *changing) tell(name string, percent float64, age time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sample := load.Sample{Percent: percent, Time: clock.RealClock{}.Now().Add(-age)}
	s.loads, s.err = map[string]load.Load{name: {CPU: sample, Memory: sample}}, err
}

func (s *changing) tellNothing(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loads, s.err = nil, err
}

// follow runs a plugin in the bubble that asks a source every 30 s.
func follow(t *testing.T, s load.Source) (*usage.Usage, ktesting.Buffer) {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(2)))
	pl := usage.Build(argsWith(nil), s, clock.RealClock{})
	go pl.Follow(klog.NewContext(t.Context(), logger))
	synctest.Wait()
	return pl, logger.GetSink().(ktesting.Underlier).GetBuffer()
}

func named(name string) *framework.NodeInfo {
	info := framework.NewNodeInfo()
	info.SetNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return info
}

// takes reports whether a node takes pods.
func takes(t *testing.T, pl *usage.Usage, name string) bool {
	t.Helper()
	return pl.Filter(t.Context(), nil, &corev1.Pod{}, named(name)).IsSuccess()
}

// TestANodeThatCoolsDownIsAnOccasion: jobs that wait are looked at again when a node is not too loaded any more, or when nobody knows
// any more that it is, and at no other time.
func TestANodeThatCoolsDownIsAnOccasion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &changing{}
		s.tell("a", 90, 0, nil)
		pl, _ := follow(t, s)
		raised := 0
		pl.State().Observe(func(c model.Change) {
			if c.Events == model.JudgedAnew {
				raised++
			}
		})
		want := func(when string, n int) {
			t.Helper()
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if raised != n {
				t.Errorf("%s: jobs were told %d times, want %d", when, raised, n)
			}
		}
		want("it is hot", 0)
		s.tell("a", 70, 0, nil)
		want("it has cooled down", 1)
		want("it is cool", 1)
		s.tell("a", 95, 0, nil)
		want("it is hot again", 1)
		s.tellNothing(nil)
		time.Sleep(5 * time.Minute)
		want("its load is not known any more", 2)
	})
}

func TestOldLoadsStayUntilTheyAreStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &changing{}
		s.tell("a", 90, 0, nil)
		pl, _ := follow(t, s)
		got := []bool{takes(t, pl, "a")}
		s.tellNothing(errors.New("down"))
		time.Sleep(5 * time.Minute)
		got = append(got, takes(t, pl, "a"))
		time.Sleep(time.Second)
		got = append(got, takes(t, pl, "a"))
		if diff := cmp.Diff([]bool{false, false, true}, got); diff != "" {
			t.Errorf("takes pods at first, after 5m and after 5m1s (-want,+got)\n%s", diff)
		}
	})
}

func TestASampleCountsByItsOwnTimeAndNotByThatOfTheRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &changing{}
		s.tell("a", 90, 6*time.Minute, nil)
		pl, _ := follow(t, s)
		if !takes(t, pl, "a") {
			t.Error("the node takes no pod because of a load of 6 minutes ago")
		}
		s.tell("a", 90, -time.Hour, nil)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if takes(t, pl, "a") {
			t.Error("the node takes pods because the source's clock is fast")
		}
	})
}

func TestAnOlderSampleDoesNotReplaceANewerOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &changing{}
		s.tell("a", 90, 0, nil)
		pl, _ := follow(t, s)
		s.tell("a", 10, time.Minute, nil)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if takes(t, pl, "a") {
			t.Error("the node takes pods because of an older load")
		}
	})
}

func TestOneRoundEveryIntervalUntilTheContextEnds(t *testing.T) {
	s := &changing{}
	synctest.Test(t, func(t *testing.T) {
		s.tell("a", 10, 0, nil)
		follow(t, s)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
	})
	if s.asked != 21 {
		t.Errorf("asked %d times in 10 minutes, want 21", s.asked)
	}
}

func TestARoundThatTakesTooLongEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &changing{hangs: true}
		_, logs := follow(t, s)
		time.Sleep(61 * time.Second)
		synctest.Wait()
		if text := logs.String(); strings.Count(text, "deadline exceeded") != 1 {
			t.Errorf("logged %q, want one line about the deadline", text)
		}
	})
}

func TestAnErrorIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &changing{}
		step := func(err error) {
			s.tellNothing(err)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
		}
		s.tellNothing(errors.New("one"))
		_, logs := follow(t, s)
		step(errors.New("one"))
		step(errors.New("two"))
		step(nil)
		step(errors.New("two"))
		const wrong, again = "Loads of nodes cannot be read, those read before count for 5 minutes", "All loads of nodes can be read again"
		type line struct {
			Message string
			Values  []any
		}
		var got []line
		for _, entry := range logs.Data() {
			got = append(got, line{entry.Message, entry.ParameterKVList})
		}
		want := []line{{wrong, []any{"err", "one"}}, {wrong, []any{"err", "two"}}, {again, nil}, {wrong, []any{"err", "two"}}}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("logged (-want,+got)\n%s", diff)
		}
	})
}

func TestHints(t *testing.T) {
	s := &changing{}
	s.loads = map[string]load.Load{
		"hot":  {CPU: load.Sample{Percent: 90, Time: clock.RealClock{}.Now()}},
		"cool": {CPU: load.Sample{Percent: 10, Time: clock.RealClock{}.Now()}},
	}
	pl := usage.Build(argsWith(nil), s, clock.RealClock{})
	if err := pl.Ask(t.Context()); err != nil {
		t.Fatal(err)
	}
	events, err := pl.EventsToRegister(t.Context())
	if err != nil || len(events) != 1 {
		t.Fatalf("events are %v, %v", events, err)
	}
	for name, tc := range map[string]struct {
		oldObj, newObj any
		want           fwk.QueueingHint
		fails          bool
	}{
		"a new node of which nothing is known": {nil, named("new").Node(), fwk.Queue, false},
		"a node that is still hot":             {named("hot").Node(), named("hot").Node(), fwk.QueueSkip, false},
		"a node that is not":                   {named("cool").Node(), named("cool").Node(), fwk.Queue, false},
		"no node":                              {nil, &corev1.Pod{}, fwk.Queue, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := events[0].QueueingHintFn(klog.FromContext(t.Context()), &corev1.Pod{}, tc.oldObj, tc.newObj)
			if got != tc.want || (err != nil) != tc.fails {
				t.Errorf("hint is %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

func TestWhatTheFactoryRefuses(t *testing.T) {
	valid := argsWith(func(a *v1.UsageArgs) { a.Metrics.Type, a.Metrics.Address = "prometheus", "http://127.0.0.1:1" })
	invalid, api := valid.DeepCopy(), valid.DeepCopy()
	invalid.CPUThreshold, api.Metrics.Type = 101, config.MetricsCustomAPI
	if _, err := usage.New(model.NewState())(t.Context(), valid, nil); err != nil {
		t.Error(err)
	}
	for want, obj := range map[string]*config.UsageArgs{
		"cpuThreshold: Invalid value: 101: must be from 0 to 100": invalid,
		"there is no API server":                                  api,
	} {
		if _, err := usage.New(model.NewState())(t.Context(), obj, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want one that says %q", err, want)
		}
	}
	if _, err := usage.New(model.NewState())(t.Context(), &config.BinpackArgs{}, nil); err == nil || err.Error() != "want args to be of type UsageArgs, got *config.BinpackArgs" {
		t.Errorf("error is %v", err)
	}
}

func TestThePlannerIsToldOfEveryRound(t *testing.T) {
	pl := usage.Build(argsWith(nil), &changing{}, clock.RealClock{})
	told := map[int64]bool{}
	for range 3 {
		state := framework.NewCycleState()
		if _, status := pl.PreFilter(t.Context(), state, &corev1.Pod{}, nil); !status.IsSuccess() {
			t.Fatal(status)
		}
		told[gang.Seen(state)] = true
		if err := pl.Ask(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(told) != 3 {
		t.Errorf("three rounds are told as %v", told)
	}
}

func TestAllPodsAreAlike(t *testing.T) {
	pl := usage.Build(argsWith(nil), &changing{}, clock.RealClock{})
	if fragments, status := pl.SignPod(t.Context(), &corev1.Pod{}); len(fragments) != 0 || !status.IsSuccess() {
		t.Errorf("signed %v, %v", fragments, status)
	}
}
