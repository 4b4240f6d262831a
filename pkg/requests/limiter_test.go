// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package requests_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/requests"
)

const (
	// quickly is what a request takes that is answered in time, slowly what one takes that is not.
	quickly, slowly = 100 * time.Millisecond, 30 * time.Second
	// order is of requests for whom it does not matter.
	order = 1
)

// stage has requests made, and sees how many are.
type stage struct {
	*requests.Limiter
	t *testing.T
	// queued, underway and most count requests: that wait in line, that are under way, and the most of those at a time.
	queued, underway, most atomic.Int32
	// aside counts those that wait because their namespace is slow.
	aside atomic.Int32
	all   sync.WaitGroup
}

// play runs a test with a limiter, at the end of which nothing may wait.
func play(t *testing.T, seats int, test func(s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t}
		s.Limiter = requests.NewLimiter(seats, clock.RealClock{}, requests.Told{
			InLine: func(more int) { s.queued.Add(int32(more)) }, Aside: func(_ string, more int) { s.aside.Add(int32(more)) },
		})
		func() {
			defer s.all.Wait()
			test(s)
		}()
		if n := s.queued.Load(); n != 0 {
			t.Errorf("%d requests wait in the end", n)
		}
		if n := s.aside.Load(); n != 0 {
			t.Errorf("%d requests of slow namespaces wait in the end", n)
		}
		if n := s.Namespaces(); n != 0 {
			t.Errorf("%d namespaces are known in the end", n)
		}
	})
}

// note is called by a request when it begins, and takes as long as it does.
func (s *stage) note(takes time.Duration) {
	s.most.Store(max(s.most.Load(), s.underway.Add(1)))
	time.Sleep(takes)
	s.underway.Add(-1)
}

// bind makes a request in a goroutine of its own, and calls a function when it begins.
func (s *stage) bind(namespace string, turn uint64, takes time.Duration, begins func()) {
	s.all.Go(func() {
		seat, err := s.Acquire(s.t.Context(), namespace, turn)
		if err != nil {
			s.t.Error(err)
			return
		}
		defer seat.Release()
		begins()
		s.note(takes)
	})
}

// binds makes equal requests, and returns a function that tells how many of them have begun.
func (s *stage) binds(n int, namespace string, takes time.Duration) (begun func() int) {
	var count atomic.Int32
	for range n {
		s.bind(namespace, order, takes, func() { count.Add(1) })
	}
	synctest.Wait()
	return func() int {
		synctest.Wait()
		return int(count.Load())
	}
}

func TestNoMoreRequestsAreMadeAtATimeThanThereAreSeats(t *testing.T) {
	for name, tc := range map[string]struct {
		seats, requests int
		// want is how long it takes in all.
		want time.Duration
	}{
		"one seat":                      {1, 4, 4 * quickly},
		"three seats, three requests":   {3, 3, quickly},
		"three seats, ten requests":     {3, 10, 4 * quickly},
		"more seats than are asked for": {64, 10, quickly},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, tc.seats, func(s *stage) {
				began := time.Now()
				s.binds(tc.requests, "a", quickly)
				if got := int(s.queued.Load()); got != max(0, tc.requests-tc.seats) {
					t.Errorf("%d requests wait, want %d", got, max(0, tc.requests-tc.seats))
				}
				s.all.Wait()
				if got := int(s.most.Load()); got > tc.seats {
					t.Errorf("%d requests were made at a time with %d seats", got, tc.seats)
				}
				if got := time.Since(began); got != tc.want {
					t.Errorf("it took %v, want %v", got, tc.want)
				}
			})
		})
	}
}

// A gang is bound as a whole before the next one: who is first does not depend on who asked first, unless both are of
// one turn.
func TestOlderTurnsAreBoundFirst(t *testing.T) {
	// pod is named after the order in which it asks, from a.
	type pod struct {
		name string
		turn uint64
	}
	for name, tc := range map[string]struct {
		asking []pod
		want   []string
	}{
		"of one turn as they come":                {[]pod{{"a", 5}, {"b", 5}, {"c", 5}}, []string{"a", "b", "c"}},
		"older turns before":                      {[]pod{{"a", 3}, {"b", 1}, {"c", 2}}, []string{"b", "c", "a"}},
		"each turn as they come":                  {[]pod{{"a", 2}, {"b", 1}, {"c", 2}, {"d", 1}}, []string{"b", "d", "a", "c"}},
		"pods without a turn go before all gangs": {[]pod{{"a", 1}, {"b", 0}}, []string{"b", "a"}},
	} {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, slow: %t", name, slow), func(t *testing.T) {
				play(t, 1, func(s *stage) {
					s.binds(1, "n", quickly+lateIf(slow))
					time.Sleep(lateIf(slow))
					var got []string
					for _, p := range tc.asking {
						s.bind("n", p.turn, quickly, func() { got = append(got, p.name) })
						synctest.Wait()
					}
					s.all.Wait()
					if diff := cmp.Diff(tc.want, got); diff != "" {
						t.Errorf("(-want,+got)\n%s", diff)
					}
				})
			})
		}
	}
}

func lateIf(slow bool) time.Duration {
	if slow {
		return 2 * time.Second
	}
	return 0
}

// Whoever gives up leaves no seat taken, also when the seat comes at the same moment: whether the request notices is a matter
// of chance then, so that is tried often.
func TestWhoGivesUpPassesItsSeatOn(t *testing.T) {
	gone := errors.New("the pod was deleted")
	giveUp := func(_ *requests.Seat, cancel context.CancelCauseFunc) { cancel(gone) }
	free := func(first *requests.Seat, _ context.CancelCauseFunc) { first.Release() }
	type steps = []func(*requests.Seat, context.CancelCauseFunc)
	for name, tc := range map[string]struct {
		steps steps
		// want is what the request gets.
		want error
	}{
		"while all seats are taken":    {steps{giveUp, func(*requests.Seat, context.CancelCauseFunc) { synctest.Wait() }, free}, gone},
		"at the moment the seat comes": {steps{giveUp, free}, gone},
		"after the seat came":          {steps{free, giveUp}, nil},
	} {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, slow: %t", name, slow), func(t *testing.T) {
				for range 100 {
					play(t, 1, func(s *stage) {
						first, err := s.Acquire(s.t.Context(), "n", order)
						if err != nil {
							s.t.Fatal(err)
						}
						time.Sleep(lateIf(slow))
						ctx, cancel := context.WithCancelCause(s.t.Context())
						defer cancel(nil)
						answer := make(chan error, 1)
						go func() {
							seat, err := s.Acquire(ctx, "n", order)
							if err == nil {
								seat.Release()
							}
							answer <- err
						}()
						synctest.Wait()
						next := s.binds(1, "n", quickly)
						for _, step := range tc.steps {
							step(first, cancel)
						}
						if err := <-answer; !errors.Is(err, tc.want) {
							s.t.Errorf("error is %v, want %v", err, tc.want)
						}
						if next() != 1 {
							s.t.Fatal("a seat is free and the next request waits for it")
						}
					})
				}
			})
		}
	}
}

// TestWhoIsNotAnsweredKeepsNobodyElseWaiting: requests of one namespace take all seats, and are not answered for half a minute.
func TestWhoIsNotAnsweredKeepsNobodyElseWaiting(t *testing.T) {
	const seats = 8
	play(t, seats, func(s *stage) {
		hang := s.binds(100, "hangs", slowly)
		others := s.binds(3, "others", quickly)
		if h, o := hang(), others(); h != seats || o != 0 {
			t.Fatalf("%d and %d have begun at once, want %d and none", h, o, seats)
		}
		time.Sleep(time.Second)
		if h, o := hang(), others(); h != seats || o != 3 {
			t.Fatalf("%d and %d have begun after a second, want %d and all 3", h, o, seats)
		}
		if slow := s.aside.Load(); s.queued.Load() != 0 || slow != 92 {
			t.Errorf("%d wait in line and %d because their namespace is slow, want none and 92", s.queued.Load(), slow)
		}
		for range 100 {
			time.Sleep(quickly)
			later := s.binds(seats, "others", quickly)
			if later() != seats {
				t.Fatal("requests wait for those of a slow namespace")
			}
		}
		time.Sleep(slowly)
		if h := hang(); h != seats+seats/2 {
			t.Errorf("%d have begun when the first were answered, want half as many more", h)
		}
		if most := int(s.most.Load()); most > 2*seats {
			t.Errorf("%d were under way at a time, want at most %d", most, 2*seats)
		}
	})
}

// TestASlowNamespaceHasItsSeatsBackOnceItIsAnsweredInTime, and not before.
func TestASlowNamespaceHasItsSeatsBackOnceItIsAnsweredInTime(t *testing.T) {
	const seats = 8
	play(t, seats, func(s *stage) {
		s.binds(1, "n", slowly)
		time.Sleep(2 * time.Second)
		const all = 2000
		next := s.binds(all, "n", quickly)
		if n := next(); n != seats/2-1 {
			t.Fatalf("%d have begun while one is late, want %d: half of the seats", n, seats/2-1)
		}
		time.Sleep(5 * quickly)
		if n := next(); n != 6*(seats/2-1) {
			t.Fatalf("%d have begun while one is late, want %d", n, 6*(seats/2-1))
		}
		time.Sleep(slowly - 2*time.Second - 5*quickly)
		before := next()
		time.Sleep(quickly)
		if n, waits := next()-before, s.queued.Load(); n != seats || int(waits) != all-before-seats {
			t.Fatalf("%d begin at once and %d wait in line when none is late, want %d and all others", n, waits, seats)
		}
		time.Sleep(slowly)
		if n := next(); n != all {
			t.Fatalf("%d have begun, want all", n)
		}
		if n := s.binds(seats, "n", quickly)(); n != seats {
			t.Errorf("%d begin at once, want %d as before", n, seats)
		}
	})
}

// TestAllSlowNamespacesTogetherTakeNoSeatOfOthers: there are more of them than seats for late requests. Each has its share of these.
func TestAllSlowNamespacesTogetherTakeNoSeatOfOthers(t *testing.T) {
	const seats, slow, each = 4, 10, 40
	play(t, seats, func(s *stage) {
		var begun []func() int
		for i := range slow {
			begun = append(begun, s.binds(each, fmt.Sprintf("hangs-%d", i), slowly))
			time.Sleep(slowly)
		}
		others := 0
		for range 100 {
			others += s.binds(1, "others", quickly)()
			time.Sleep(slowly / 7)
		}
		if others != 100 {
			t.Errorf("%d requests begin at once, want all 100", others)
		}
		time.Sleep(slow * each / seats * slowly)
		for i, n := range begun {
			if n() != each {
				t.Errorf("%d requests of hangs-%d have begun, want all %d", n(), i, each)
			}
		}
	})
}

// TestWhatIsGivenToGoWaitsAloneIfItsNamespaceIsSlow: who gives requests goes on with those of others.
func TestWhatIsGivenToGoWaitsAloneIfItsNamespaceIsSlow(t *testing.T) {
	play(t, 2, func(s *stage) {
		var done sync.Map
		give := func(namespace string, n int, takes time.Duration) {
			for i := range n {
				s.Go(namespace, func() {
					s.note(takes)
					done.Store(fmt.Sprint(namespace, i), time.Now())
				})
			}
		}
		began := time.Now()
		give("hangs", 5, slowly)
		if took := time.Since(began); took != time.Second {
			t.Errorf("to hand over what hangs took %v, want a second", took)
		}
		give("others", 10, quickly)
		if took := time.Since(began); took != time.Second+4*quickly {
			t.Errorf("to hand over what is answered took %v, want %v", took, time.Second+4*quickly)
		}
		s.Wait()
		count := 0
		done.Range(func(any, any) bool { count++; return true })
		if count != 15 {
			t.Errorf("%d of 15 requests were made", count)
		}
	})
}

// TestWhateverIsAskedForIsMade plays random requests. All are made but those that give up, and at most twice as many at a time as there are seats.
func TestWhateverIsAskedForIsMade(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		seats := 1 + random.IntN(9)
		play(t, seats, func(s *stage) {
			gone := errors.New("given up")
			var wrong []string
			var mu sync.Mutex
			for range random.IntN(200) {
				namespace, takes := "quick", time.Duration(random.Int64N(int64(quickly)))
				if k := random.IntN(6); k > 1 {
					namespace, takes = fmt.Sprintf("slow-%d", k), time.Duration(random.Int64N(int64(10*time.Second)))
				}
				ctx, cancel := s.t.Context(), context.CancelFunc(func() {})
				if random.IntN(4) == 0 {
					ctx, cancel = context.WithTimeoutCause(ctx, time.Duration(random.Int64N(int64(20*time.Second))), gone)
				}
				s.all.Go(func() {
					defer cancel()
					seat, err := s.Acquire(ctx, namespace, uint64(takes%5))
					if err == nil {
						defer seat.Release()
						s.note(takes)
					} else if !errors.Is(err, gone) {
						mu.Lock()
						defer mu.Unlock()
						wrong = append(wrong, err.Error())
					}
				})
				time.Sleep(time.Duration(random.Int64N(int64(2 * quickly))))
			}
			s.all.Wait()
			if slices.Sort(wrong); len(wrong) > 0 {
				t.Errorf("seed %d: %q", seed, wrong)
			}
			if most := int(s.most.Load()); most > 2*seats {
				t.Errorf("seed %d: %d were under way at a time with %d seats", seed, most, seats)
			}
		})
	}
}
