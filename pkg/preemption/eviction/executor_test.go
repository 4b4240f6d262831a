// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
)

func TestVictimsAreEvictedAndToldFor(t *testing.T) {
	play(t, 1, func(s *stage) {
		list := append(victims("a-0,a-1", "a"), victims("c-0", "c")...)
		s.add(list...)
		// Events on one object are named after the time.
		s.before = func(string) error { time.Sleep(time.Millisecond); return nil }
		list[1].Pod.Spec.TerminationGracePeriodSeconds = new(int64(5))
		begin := time.Now()
		id := s.execute(list...)
		s.rest()
		s.want(id, "Pending: a-0=Leaving a-1=Leaving c-0=Leaving")
		if _, next := s.ledger.Outstanding(job("x"), time.Now()); !next.Equal(begin.Add(65*time.Second + 2*time.Millisecond)) {
			t.Errorf("the first deadline is %s after the eviction, want 5 s and a minute", next.Sub(begin))
		}
		p, err := s.kube.CoreV1().Pods("team").Get(t.Context(), "a-0", metav1.GetOptions{})
		check(t, err)
		if p.DeletionTimestamp == nil || p.DeletionGracePeriodSeconds != nil {
			t.Errorf("the pod ends at %v with a grace of %v seconds, want its own", p.DeletionTimestamp, p.DeletionGracePeriodSeconds)
		}
		const condition = "True PreemptionByScheduler: caldera-scheduler: evicting to make room for PodGroup team/x in queue b (reclaim)"
		if got := s.condition("c-0"); got != condition {
			t.Errorf("the condition is %q, want %q", got, condition)
		}
		const cause = "because of reclaim: PodGroup team/x in queue b needs "
		if diff := cmp.Diff([]string{
			"Normal Evict on PodGroup a: Pod a-0 is evicted, " + cause + "its room",
			"Normal Evict on PodGroup a: Pod a-1 is evicted, " + cause + "its room",
			"Normal Evict on PodGroup c: Pod c-0 is evicted, " + cause + "its room",
			"Normal Evict on Queue a: 2 pods evicted, " + cause + "the room",
			"Normal Evict on Queue c: 1 pod evicted, " + cause + "the room",
			"Normal Evicting on PodGroup x: evicting 2 pods of queue a, 1 pod of queue c to start (reclaim)",
			"Normal Evicting on Queue b: evicting 2 pods of queue a, 1 pod of queue c for PodGroup team/x (reclaim)",
			"Warning Evict on Pod a-0: Pod is evicted, " + cause + "its room",
			"Warning Evict on Pod a-1: Pod is evicted, " + cause + "its room",
			"Warning Evict on Pod c-0: Pod is evicted, " + cause + "its room",
		}, s.events()); diff != "" {
			t.Errorf("events (-want,+got)\n%s", diff)
		}
	})
}

func TestABudgetRefusesBeforeAnybodyIsEvicted(t *testing.T) {
	play(t, 4, func(s *stage) {
		list := append(victims("a-0,a-1", "a"), victims("c-0", "c")...)
		list[2].Budgeted = true
		s.add(list...)
		s.budget("c", 0)
		id := s.execute(list...)
		s.rest()
		s.wantAsked("c-0")
		s.want(id, "Cancelled: a-0=Spared a-1=Spared c-0=Refused")
		s.wantRefused("1: c-0: a-0=Spared a-1=Spared c-0=Refused: TooManyRequests")
		s.wantStays("a-0", "a-1", "c-0")
		if until := s.ledger.Refusal("c-0"); !until.Equal(time.Now().Add(eviction.Protection)) {
			t.Errorf("the pod is protected for %s", time.Until(until))
		}
		if got := s.condition("c-0"); got != "none" {
			t.Errorf("a pod that was not evicted has the condition %q", got)
		}
		if got := s.events(); got != nil {
			t.Errorf("nobody was evicted, and the events are %q", got)
		}
	})
}

func TestWhoIsEvictedForNobodyIsRefusedAlone(t *testing.T) {
	play(t, 4, func(s *stage) {
		list := append(victims("a-0,a-1", "a"), victims("c-0", "c")...)
		list[2].Budgeted = true
		s.add(list...)
		s.budget("c", 0)
		d := s.ledger.Begin(time.Now(), eviction.Decision{Action: eviction.Shuffle, Victims: list})
		s.executor.Execute(d)
		s.rest()
		s.want(d.ID, "Done: a-0=Leaving a-1=Leaving c-0=Refused")
		s.wantStays("c-0")
		s.wantRefused()
		const condition = "True EvictionByEvictionAPI: caldera-scheduler: evicting because of shuffle: lower priority"
		if got := s.condition("a-0"); got != condition {
			t.Errorf("the condition is %q, want %q", got, condition)
		}
	})
}

// TestWhoDoesNotLeadAsksForNobody: what was decided before the lease ran out is carried out only if it is held again soon.
func TestWhoDoesNotLeadAsksForNobody(t *testing.T) {
	play(t, 1, func(s *stage) {
		list := victims("a-0", "a")
		s.add(list...)
		s.deposed.Store(true)
		id := s.execute(list...)
		time.Sleep(time.Second)
		s.wantAsked()
		s.deposed.Store(false)
		s.rest()
		s.wantAsked("a-0")
		s.want(id, "Pending: a-0=Leaving")
	})
}

func TestVictimsWithBudgetsGoFirst(t *testing.T) {
	play(t, 4, func(s *stage) {
		list := append(victims("a-0,a-1", "a"), victims("c-0", "c")...)
		list[2].Budgeted = true
		s.add(list...)
		s.budget("c", 1)
		s.before = func(string) error { time.Sleep(time.Second); return nil }
		id := s.execute(list...)
		synctest.Wait()
		s.wantAsked("c-0")
		s.rest()
		if s.asked[0] != "c-0" || len(s.asked) != 3 {
			t.Errorf("asked for %v, want c-0 first", s.asked)
		}
		s.want(id, "Pending: a-0=Leaving a-1=Leaving c-0=Leaving")
	})
}

func TestThoseWhoAreGoneNeedNoEviction(t *testing.T) {
	play(t, 1, func(s *stage) {
		list := victims("a-0,a-1,a-2", "a")
		s.add(list...)
		check(t, s.api.Remove(memory.Pods, "team", "a-0"))
		check(t, s.api.Remove(memory.Pods, "team", "a-1"))
		other := list[1].Pod.DeepCopy()
		other.UID = "another one"
		check(t, s.api.Add(other))
		id := s.execute(list...)
		s.rest()
		s.wantAsked("a-0", "a-1", "a-2")
		s.want(id, "Pending: a-0=Gone a-1=Gone a-2=Leaving")
		s.wantRefused()
		if got := s.condition("a-1"); got != "none" {
			t.Errorf("the pod that took the name has the condition %q", got)
		}
		if f := s.ledger.Figures(); f.Evictions[eviction.Flow{Action: "reclaim", From: "a", For: "b"}] != 1 {
			t.Errorf("evictions are %v, want one", f.Evictions)
		}
		if said := s.events(); slices.ContainsFunc(said, func(e string) bool { return strings.Contains(e, "a-0") || strings.Contains(e, "a-1") }) {
			t.Errorf("there are events on those who were not evicted: %q", said)
		}
	})
}

// What the API server may answer for some time, and what comes of it.
func TestAnswers(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, tc := range map[string]struct {
		answer error
		// times is how often it is given.
		times int
		asked int
		want  string
		// took is how long all of it takes.
		took time.Duration
	}{
		"a server error passes":             {apierrors.NewInternalError(errors.New("etcd")), 2, 3, "Leaving", 600 * time.Millisecond},
		"one that does not is a refusal":    {apierrors.NewInternalError(errors.New("etcd")), 100, 6, "Refused", 6200 * time.Millisecond},
		"no answer may be followed by one":  {errors.New("connection refused"), 1, 2, "Leaving", 200 * time.Millisecond},
		"a timeout is a server error":       {apierrors.NewTimeoutError("conflicts", 0), 1, 2, "Leaving", 200 * time.Millisecond},
		"another write was in the way":      {apierrors.NewConflict(pods, "a-0", errors.New("modified")), 1, 2, "Leaving", 200 * time.Millisecond},
		"a delay that is asked for is kept": {apierrors.NewTooManyRequests("busy", 3), 1, 2, "Leaving", 3 * time.Second},
		"and not for ever":                  {apierrors.NewTooManyRequests("busy", 1), 100, 6, "Refused", 7800 * time.Millisecond},
		"a budget's no is final":            {apierrors.NewTooManyRequests("budget", 0), 100, 1, "Refused", 0},
		"what is forbidden stays forbidden": {apierrors.NewForbidden(pods, "a-0", errors.New("rbac")), 100, 1, "Refused", 0},
		"what is invalid stays invalid":     {apierrors.NewBadRequest("nonsense"), 100, 1, "Refused", 0},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, 2, func(s *stage) {
				list := victims("a-0", "a")
				s.add(list...)
				left, begin, over := tc.times, time.Now(), time.Time{}
				s.before = func(string) error {
					over = time.Now()
					if left--; left >= 0 {
						return tc.answer
					}
					return nil
				}
				id := s.execute(list...)
				s.rest()
				if len(s.asked) != tc.asked || over.Sub(begin) != tc.took {
					t.Errorf("asked %d times in %s, want %d in %s", len(s.asked), over.Sub(begin), tc.asked, tc.took)
				}
				outcome := "Pending"
				if tc.want == "Refused" {
					outcome = "Cancelled"
				}
				s.want(id, outcome+": a-0="+tc.want)
				if (len(s.refused) == 1) != (tc.want == "Refused") {
					t.Errorf("refusals are %q", s.refused)
				}
			})
		})
	}
}

func TestSoManyAtATime(t *testing.T) {
	play(t, 3, func(s *stage) {
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprintf("a-%d", i))
		}
		list := victims(strings.Join(names, ","), "a")
		s.add(list...)
		var mu sync.Mutex
		now, most := 0, 0
		s.before = func(string) error {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return nil
		}
		s.execute(list...)
		s.rest()
		if most != 3 || len(s.asked) != 20 {
			t.Errorf("%d requests were in flight, want 3; %d were made, want 20", most, len(s.asked))
		}
	})
}

func TestWhatIsCancelledIsNotAskedFor(t *testing.T) {
	play(t, 1, func(s *stage) {
		list := victims("a-0,a-1,a-2", "a")
		s.add(list...)
		s.before = func(string) error { time.Sleep(time.Second); return nil }
		id := s.execute(list...)
		synctest.Wait()
		if spared := s.ledger.Cancel(job("x"), time.Now()); len(spared) != 2 {
			t.Errorf("%d victims are spared, want 2", len(spared))
		}
		s.rest()
		s.wantAsked("a-0")
		s.want(id, "Wasted: a-0=Leaving a-1=Spared a-2=Spared")
		s.wantRefused()
	})
}

// TestWhatIsNotNeededIsNotAskedForAgain: while there is no answer, or a delay is asked for, the job starts elsewhere.
func TestWhatIsNotNeededIsNotAskedForAgain(t *testing.T) {
	for name, answer := range map[string]error{
		"no answer": errors.New("connection refused"),
		"a delay":   apierrors.NewTooManyRequests("busy", 3),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, 1, func(s *stage) {
				list := victims("a-0", "a")
				s.add(list...)
				s.before = func(string) error { return answer }
				id := s.execute(list...)
				synctest.Wait()
				if spared := s.ledger.Started(job("x"), time.Now()); len(spared) != 0 {
					t.Errorf("%d victims are spared before the answer is due", len(spared))
				}
				s.rest()
				s.wantAsked("a-0")
				s.want(id, "Started: a-0=Spared")
				s.wantRefused()
				if !slices.Equal(s.stays, []string{"a-0"}) {
					t.Errorf("%v were told to stay", s.stays)
				}
			})
		})
	}
}

// TestWhatOthersNeedIsAskedForAgain: one of two jobs that have the same victim evicted starts elsewhere.
func TestWhatOthersNeedIsAskedForAgain(t *testing.T) {
	play(t, 1, func(s *stage) {
		list := victims("a-0", "a")
		s.add(list...)
		times := 0
		s.before = func(string) error {
			if times++; times == 1 {
				return errors.New("connection refused")
			}
			return nil
		}
		s.ledger.Begin(time.Now(), eviction.Decision{Action: eviction.Reclaim, Beneficiary: job("y"), Queue: "b", Victims: list})
		id := s.execute(list...)
		synctest.Wait()
		s.ledger.Started(job("x"), time.Now())
		s.rest()
		s.wantAsked("a-0", "a-0")
		s.want(id, "Started: a-0=Leaving")
	})
}

// One refusal ends a decision; that of another victim, which was on its way, is no news of what was decided since.
func TestTheFirstRefusalIsTold(t *testing.T) {
	play(t, 2, func(s *stage) {
		list := append(victims("a-0,a-1", "a"), victims("c-0", "c")...)
		s.add(list...)
		s.budget("a", 0)
		s.before = func(name string) error {
			time.Sleep(map[string]time.Duration{"a-0": time.Second, "a-1": 2 * time.Second}[name])
			return nil
		}
		s.then = func() { s.execute(list[2]) }
		s.execute(list[0], list[1])
		s.rest()
		s.wantRefused("1: a-0: a-0=Refused a-1=Sent: TooManyRequests")
		s.want(1, "Cancelled: a-0=Refused a-1=Refused")
		s.wantStays("a-0", "a-1")
		s.want(2, "Pending: c-0=Leaving")
		for _, name := range []types.UID{"a-0", "a-1"} {
			if s.ledger.Refusal(name).IsZero() {
				t.Errorf("pod %s is not protected", name)
			}
		}
	})
}

// Two jobs wait for the same victim: both hear that it stays.
func TestAllWhoPlanAVictimHearOfItsRefusal(t *testing.T) {
	play(t, 1, func(s *stage) {
		list := victims("a-0", "a")
		s.add(list...)
		s.budget("a", 0)
		other := s.ledger.Begin(time.Now(), eviction.Decision{Action: eviction.Reclaim, Beneficiary: job("y"), Queue: "c", Victims: list})
		s.execute(list...)
		s.executor.Execute(other)
		s.rest()
		s.wantAsked("a-0")
		s.wantRefused("1: a-0: a-0=Refused: TooManyRequests", "2: a-0: a-0=Refused: TooManyRequests")
	})
}

// Whoever hears of a refusal may decide anew, and the executor is not idle in between.
func TestARefusalCanBeAnswered(t *testing.T) {
	play(t, 1, func(s *stage) {
		list := append(victims("a-0", "a"), victims("c-0", "c")...)
		s.add(list...)
		s.budget("a", 0)
		s.then = func() {
			if s.executor.Idle() {
				t.Error("the executor is idle while a refusal is being answered")
			}
			s.execute(list[1])
		}
		s.execute(list[0])
		s.rest()
		s.want(1, "Cancelled: a-0=Refused")
		s.want(2, "Pending: c-0=Leaving")
	})
}

func TestTheEndOfTheContextIsTheEnd(t *testing.T) {
	play(t, 1, func(s *stage) {
		list := victims("a-0,a-1", "a")
		s.add(list...)
		s.before = func(string) error { return errors.New("connection refused") }
		id := s.execute(list...)
		synctest.Wait()
		s.end()
		time.Sleep(time.Hour)
		s.wantAsked("a-0", "a-1")
		s.want(id, "Pending: a-0=Sent a-1=Sent")
		s.wantRefused()
	})
}

// A simulation steps its clock to the time at which the executor means to act.
func TestTimeMayBeStepped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := clocktesting.NewFakeClock(time.Date(2026, time.August, 15, 12, 0, 0, 0, time.UTC))
		onStage(t, now, 1, func(s *stage) {
			list := victims("a-0", "a")
			s.add(list...)
			failures := 2
			s.before = func(string) error {
				if failures--; failures >= 0 {
					return apierrors.NewInternalError(errors.New("etcd"))
				}
				return nil
			}
			id := s.execute(list...)
			for _, wait := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond} {
				synctest.Wait()
				quiet, next := s.executor.Quiet()
				if !quiet || next.Sub(now.Now()) != wait || s.executor.Idle() {
					t.Fatalf("quiet: %t for %s, want for %s", quiet, next.Sub(now.Now()), wait)
				}
				now.SetTime(next)
			}
			synctest.Wait()
			if !s.executor.Idle() {
				t.Error("the executor is not idle after its last request")
			}
			s.want(id, "Pending: a-0=Leaving")
		})
	})
}

// TestEvictionsThatAreNotAnsweredKeepNoOtherNamespace: twenty pods of one are to go first, and four requests are made at a time.
func TestEvictionsThatAreNotAnsweredKeepNoOtherNamespace(t *testing.T) {
	play(t, 4, func(s *stage) {
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprintf("hangs-%d", i))
		}
		hang := victims(strings.Join(names, ","), "a")
		for _, v := range hang {
			v.Pod.Namespace = "hangs"
		}
		other := victims("c-0", "c")
		s.add(hang...)
		s.add(other...)
		s.before = func(name string) error {
			if strings.HasPrefix(name, "hangs-") {
				time.Sleep(20 * time.Second)
			}
			return nil
		}
		first, second := s.execute(hang...), s.execute(other...)
		time.Sleep(2 * time.Second)
		s.want(second, "Pending: c-0=Leaving")
		time.Sleep(5 * time.Minute)
		s.rest()
		s.want(first, "Pending: "+strings.Join(names, "=Leaving ")+"=Leaving")
	})
}
