// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// overheard is a policy without an opinion that tells when it is asked, which is under the dispatcher's lock.
type overheard struct{ asked func() }

func (o overheard) CompareJobs(_, _ *policy.Ranked) int {
	o.asked()
	return 0
}

func (o overheard) Overused(*account.Queue) bool {
	o.asked()
	return false
}

// TestTurnsGoOnWhileAllIsRead: who asks for the order of thousands of jobs, or for the accounts of thousands of queues, keeps nobody waiting until all of
// it is read.
func TestTurnsGoOnWhileAllIsRead(t *testing.T) {
	const name = "overheard"
	args := plain()
	args.Tiers[0].Plugins = append(args.Tiers[0].Plugins, config.TierPlugin{Name: name})
	for what, read := range map[string]func(*fixture) int{
		"order of jobs":      func(d *fixture) int { return len(d.View().Lines()[0].Jobs) },
		"accounts of queues": func(d *fixture) int { return len(d.View().Figures()) },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const many = 4000
				// The first question after ask is set has somebody else ask for the lock, who has had it when later ones come.
				var ask atomic.Pointer[func()]
				d := newStandbyWith(t, args, policy.Extension{Plugin: name, Policy: overheard{func() {
					if asked := ask.Load(); asked != nil {
						(*asked)()
					}
				}}})
				for i := range many {
					d.state.UpsertQueue(&model.Queue{Name: fmt.Sprintf("q%d", i), Weight: 1, State: model.QueueOpen})
					d.state.UpsertPod(memberOf("", i, "1"))
				}
				go d.Run(t.Context())
				synctest.Wait()
				var begun, had, between atomic.Bool
				asked := func() {
					if !begun.Swap(true) {
						go func() {
							d.Gate("nobody")
							had.Store(true)
						}()
					}
					if had.Load() {
						between.Store(true)
					}
				}
				ask.Store(&asked)
				if n := read(d); n < many {
					t.Errorf("%d are read, want %d", n, many)
				}
				ask.Store(nil)
				if !between.Load() {
					t.Error("nobody else had the lock before all was read")
				}
			})
		})
	}
}

// TestTheOrderThatIsReadIsThatOfEveryPair: what is read bit by bit is in the order that is said of any two jobs.
func TestTheOrderThatIsReadIsThatOfEveryPair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStandby(t)
		for i := range 40 {
			d.submit(fmt.Sprintf("j%d", i), 2, i*7%40/3, "1")
		}
		go d.Run(t.Context())
		synctest.Wait()
		lines := d.View().Lines()
		if len(lines) != 1 || len(lines[0].Jobs) != 40 {
			t.Fatalf("the lines are %+v, want one of 40 jobs", lines)
		}
		line := lines[0].Jobs
		for i := range line {
			for k := range line[:i] {
				if p, ok := d.View().Precedence(line[k].Job, line[i].Job); !ok || p.Order >= 0 {
					t.Errorf("%s is before %s, of which is said %+v, %t", line[k].Job, line[i].Job, p, ok)
				}
			}
		}
		waiting := d.View().Waiting()
		slices.SortFunc(waiting, func(a, b dispatch.Waiting) int { return a.Job.Compare(b.Job) })
		slices.SortFunc(line, func(a, b dispatch.Waiting) int { return a.Job.Compare(b.Job) })
		if !slices.Equal(waiting, line) {
			t.Errorf("the jobs that wait are %+v, and those in order %+v", waiting, line)
		}
	})
}
