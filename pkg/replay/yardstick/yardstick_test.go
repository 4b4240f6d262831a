// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package yardstick_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/replay/yardstick"
)

// job is one that comes at a minute, and runs for some.
type job struct {
	comes, runs   int
	workers, each int
	pool          string
}

// play plays jobs on nodes, minute by minute, and returns in which minute each started; -1: never.
func play(rule string, gpus []int, own []yardstick.Share, jobs []job, minutes int) []int {
	milli := make([]int, len(gpus))
	for i, g := range gpus {
		milli[i] = 1000 * g
	}
	q := yardstick.Named(rule).New(time.Minute, milli, own)
	starts := make([]int, len(jobs))
	for i := range starts {
		starts[i] = -1
	}
	for minute := range minutes {
		for i, j := range jobs {
			if starts[i] >= 0 && starts[i]+j.runs == minute {
				q.Leave(i)
			}
		}
		for i, j := range jobs {
			if j.comes == minute {
				q.Come(&yardstick.Job{ID: i, Pool: j.pool, Workers: j.workers, Each: 1000 * j.each, Duration: time.Duration(j.runs) * time.Minute})
			}
		}
		for _, i := range q.Start(time.Duration(minute) * time.Minute) {
			starts[i] = minute
		}
	}
	return starts
}

// stream draws nodes, and jobs in the order in which they come.
func stream(t *rapid.T) (gpus []int, jobs []job) {
	gpus = rapid.SliceOfN(rapid.IntRange(1, 4), 1, 4).Draw(t, "gpus")
	jobs = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) job {
		return job{
			comes: rapid.IntRange(0, 10).Draw(t, "comes"), runs: rapid.IntRange(1, 8).Draw(t, "runs"),
			workers: rapid.IntRange(1, 3).Draw(t, "workers"), each: rapid.IntRange(1, 4).Draw(t, "each"),
		}
	}), 1, 12).Draw(t, "jobs")
	slices.SortStableFunc(jobs, func(a, b job) int { return a.comes - b.comes })
	return gpus, jobs
}

func TestWhoStarts(t *testing.T) {
	// On two nodes of 8 GPUs: one is taken until minute 10. The second job needs both. The others need half a node, for 5, 20 and 6 minutes.
	jobs := []job{{0, 10, 1, 8, "a"}, {1, 10, 2, 8, "a"}, {2, 5, 1, 4, "a"}, {3, 20, 1, 4, "a"}, {4, 6, 1, 4, "b"}}
	for _, tc := range []struct {
		rule string
		own  []yardstick.Share
		want []int
	}{
		// Nobody passes the second job.
		{"fifo", nil, []int{0, 10, 20, 20, 20}},
		// Those that are done by 10 pass; the one of 20 minutes does not.
		{"easy", nil, []int{0, 10, 2, 20, 4}},
		// The last job may not delay the one of 20 minutes, which has the room from 20 on; it ends before.
		{"conservative", nil, []int{0, 10, 2, 20, 4}},
		// Who is shorter than the second job passes it, and nobody else.
		{"shortest", nil, []int{0, 10, 2, 20, 4}},
		// Each queue has a node: the second job never starts, and keeps back those of its queue.
		{"fifo-static", []yardstick.Share{{Pool: "a", Nodes: 1}, {Pool: "b", Nodes: 1}}, []int{0, -1, -1, -1, 4}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, play(tc.rule, []int{8, 8}, tc.own, jobs, 60)); diff != "" {
				t.Errorf("starts (-want,+got)\n%s", diff)
			}
		})
	}
}

// TestAllThatEndWithTheOneThatMakesRoomHaveEnded: two nodes of 8 are free at 10, and the first job needs one of them. A job of 4 for 20 minutes may use
// what is left of the other one now.
func TestAllThatEndWithTheOneThatMakesRoomHaveEnded(t *testing.T) {
	jobs := []job{{0, 10, 1, 4, ""}, {0, 10, 1, 8, ""}, {1, 10, 1, 8, ""}, {2, 20, 1, 4, ""}}
	if diff := cmp.Diff([]int{0, 0, 10, 2}, play("easy", []int{8, 8}, nil, jobs, 60)); diff != "" {
		t.Errorf("starts (-want,+got)\n%s", diff)
	}
}

// TestAJobThatNeverFitsReservesNothing: the first job needs three nodes of two. The second one, which fits both, is reserved for in its place.
func TestAJobThatNeverFitsReservesNothing(t *testing.T) {
	jobs := []job{{0, 10, 1, 8, ""}, {1, 10, 3, 8, ""}, {2, 10, 2, 8, ""}, {3, 20, 1, 8, ""}}
	if diff := cmp.Diff([]int{0, -1, 10, 20}, play("easy", []int{8, 8}, nil, jobs, 60)); diff != "" {
		t.Errorf("starts (-want,+got)\n%s", diff)
	}
}

// TestNoPromiseIsBrokenByALaterJob: on a node of 8 one of 4 runs until 10. The first job that waits wants 8 for 10 minutes from then on, the second one 4
// for 12 minutes, from 20 on. The third one wants 4 for 10 minutes, and is done by 13. EASY looks after the first one only; here the third one waits until
// 20, since from 10 on the first one has all.
func TestNoPromiseIsBrokenByALaterJob(t *testing.T) {
	jobs := []job{{0, 10, 1, 4, ""}, {1, 10, 1, 8, ""}, {2, 12, 1, 4, ""}, {3, 7, 1, 4, ""}, {3, 10, 1, 4, ""}}
	if diff := cmp.Diff([]int{0, 10, 20, 3, 20}, play("conservative", []int{8}, nil, jobs, 60)); diff != "" {
		t.Errorf("starts (-want,+got)\n%s", diff)
	}
}

// TestLaterJobsDelayNobody: with conservative backfilling each job starts when it would if nobody came after it.
func TestLaterJobsDelayNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gpus, jobs := stream(t)
		starts := play("conservative", gpus, nil, jobs, 200)
		for n := range jobs {
			if alone := play("conservative", gpus, nil, jobs[:n+1], 200); alone[n] != starts[n] {
				t.Fatalf("job %d of %v starts in %d, and in %d if nobody comes after it", n, jobs, starts[n], alone[n])
			}
		}
	})
}

func TestRulesHaveNames(t *testing.T) {
	for _, name := range yardstick.Names() {
		if yardstick.Named(name) == nil {
			t.Errorf("there is no rule %s", name)
		}
	}
	if yardstick.Named("longest") != nil {
		t.Error("there is a rule of no name")
	}
}

// TestNobodyIsPutWhereNoRoomIs plays random streams: no more is held than there is, everybody who fits the empty nodes starts, and by EASY the job
// that is first starts no later than if nobody had passed it from then on.
func TestNobodyIsPutWhereNoRoomIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gpus, jobs := stream(t)
		jobs = slices.DeleteFunc(jobs, func(j job) bool {
			pods := 0
			for _, g := range gpus {
				pods += g / j.each
			}
			return pods < j.workers
		})
		all := 0
		for _, g := range gpus {
			all += g
		}
		for _, rule := range yardstick.Names() {
			if rule == "fifo-static" {
				continue
			}
			starts := play(rule, gpus, nil, jobs, 200)
			for minute := range 200 {
				held := 0
				for i, j := range jobs {
					if starts[i] >= 0 && starts[i] <= minute && minute < starts[i]+j.runs {
						held += j.workers * j.each
					}
				}
				if held > all {
					t.Fatalf("%s: %d GPUs of %d are held in minute %d", rule, held, all, minute)
				}
			}
			for i := range jobs {
				if starts[i] < jobs[i].comes {
					t.Fatalf("%s: job %d, which came in minute %d, started in %d", rule, i, jobs[i].comes, starts[i])
				}
			}
			if rule == "easy" {
				passedInVain(t, gpus, jobs, starts)
			}
		}
	})
}

// passedInVain finds a job that was first and would have started sooner if nobody had passed it since.
func passedInVain(t *rapid.T, gpus []int, jobs []job, starts []int) {
	for i := range jobs {
		// It is first from when the last of those before it started.
		since := jobs[i].comes
		for _, s := range starts[:i] {
			since = max(since, s)
		}
		var kept []job
		var which []int
		for k, j := range jobs {
			if k <= i || starts[k] <= since {
				kept, which = append(kept, j), append(which, k)
			}
		}
		got := play("easy", gpus, nil, kept, 200)
		at := slices.Index(which, i)
		same := true
		for n, k := range which {
			same = same && (k == i || got[n] == starts[k])
		}
		if same && got[at] < starts[i] {
			var b strings.Builder
			for k, j := range jobs {
				fmt.Fprintf(&b, "%d: %+v started %d\n", k, j, starts[k])
			}
			t.Fatalf("job %d started in %d, and would have in %d\n%s", i, starts[i], got[at], b.String())
		}
	}
}
