// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// answersOf is everything that a trial says of the victims, one by one and two by two, and of what could be gained.
func answersOf(tr *policy.Trial, all []model.Victim, job *model.Job) string {
	var said strings.Builder
	for _, a := range all {
		fmt.Fprintf(&said, "%s: %s|%s;", a.Task.UID, tr.Candidate(a), tr.Evaluate(a))
		for _, b := range all {
			if a.Task != b.Task {
				fmt.Fprintf(&said, "%s,", tr.Evaluate(a, b))
			}
		}
	}
	for _, task := range job.Tasks {
		said.WriteString(tr.Entitled(task.Charge).Message)
	}
	return said.String()
}

func TestUndoingIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := crowd(t)
		set, state := d.make(t, nil, nil)
		job, all := state.Job(d.keys[0]), d.victimsOf(state)
		tr := set.Trial(rapid.SampledFrom(d.args.Actions).Draw(t, "action"), job, d.world())
		// Every state that is passed on the way up is passed on the way down.
		var undo []func()
		var want []string
		waiting := slices.DeleteFunc(slices.Clone(job.Tasks), func(task *model.Task) bool { return !task.Placeable() })
		for len(all)+len(waiting) > 0 && rapid.IntRange(0, 5).Draw(t, "more") > 0 {
			want = append(want, answersOf(tr, all, job))
			if len(all) > 0 && (len(waiting) == 0 || rapid.Bool().Draw(t, "take")) {
				v := all[rapid.IntRange(0, len(all)-1).Draw(t, "victim")]
				left := slices.DeleteFunc(slices.Clone(all), func(o model.Victim) bool { return o == v })
				before := all
				all = left
				tr.Take(v)
				undo = append(undo, func() { tr.Return(v); all = before })
			} else {
				task, before := waiting[0], waiting
				waiting = waiting[1:]
				tr.Gain(task)
				undo = append(undo, func() { tr.Lose(task); waiting = before })
			}
		}
		for i := range slices.Backward(undo) {
			undo[i]()
			if got := answersOf(tr, all, job); got != want[i] {
				t.Fatalf("after undoing step %d:\n%s\nbefore it:\n%s", i, got, want[i])
			}
		}
	})
}

// begin plays a trial: everything that may be taken is, up to a number, and all that waits is gained.
func begin(t *rapid.T, d *drawn, tr *policy.Trial, job *model.Job, all []model.Victim) (taken []model.Victim, gained []*model.Task) {
	slices.SortFunc(all, tr.Compare)
	most := rapid.IntRange(1, 3).Draw(t, "most")
	for _, v := range all {
		if len(taken) < most && decide(tr, v) == "" {
			tr.Take(v)
			taken = append(taken, v)
		}
	}
	for _, task := range job.Tasks {
		if task.Placeable() && len(gained) < 1+len(taken) {
			tr.Gain(task)
			gained = append(gained, task)
		}
	}
	return taken, gained
}

func TestNobodyTakesTheRoomBackUnlessItIsSaid(t *testing.T) {
	circles, judged := 0, 0
	check := func(t *rapid.T) {
		d := crowd(t)
		set, state := d.make(t, nil, nil)
		job := state.Job(d.keys[0])
		tr := set.Trial(rapid.SampledFrom(d.args.Actions).Draw(t, "action"), job, d.world())
		taken, gained := begin(t, d, tr, job, d.victimsOf(state))
		if len(taken) == 0 || len(gained) == 0 {
			return
		}
		judged++
		var running, waiting []types.UID
		for _, v := range taken {
			waiting = append(waiting, v.Task.UID)
		}
		for _, task := range gained {
			running = append(running, task.UID)
		}
		after, then := d.make(t, running, waiting)
		want := takesBack(d, after, then, job.Key, running, waiting)
		why := tr.Reversible(taken, gained)
		if (why != "") != want {
			t.Fatalf("said %q; asked in the state it comes to: %t", why, want)
		}
		if want {
			circles++
		}
	}
	// About 1 in 30 rounds draws no eviction that could be reversed.
	for round := 0; round == 0 || round < 5 && (circles == 0 || judged == circles); round++ {
		rapid.Check(t, check)
	}
	if circles == 0 || judged == circles {
		t.Fatalf("%d of %d evictions could be reversed: the test tells nothing", circles, judged)
	}
}

// takesBack asks the policies of the state that was come to.
func takesBack(d *drawn, set *policy.Set, state *model.State, winner model.JobKey, gained, lost []types.UID) bool {
	rival := state.Job(winner)
	for _, key := range d.keys {
		job := state.Job(key)
		if !set.Starving(job) {
			continue
		}
		for _, action := range d.args.Actions {
			tr := set.Trial(action, job, policy.EvictionWorld{Now: epoch})
			for _, task := range job.Tasks {
				if !slices.Contains(lost, task.UID) || tr.Seek(task.Charge) != (model.Reason{}) {
					continue
				}
				for again := true; again; again = tr.Relax() {
					if takesOne(tr, rival, gained) {
						return true
					}
				}
			}
		}
	}
	return false
}

// takesOne reports whether a trial takes one of the gained pods of a job, or all of it.
func takesOne(tr *policy.Trial, rival *model.Job, gained []types.UID) bool {
	var whole []model.Victim
	for _, task := range rival.Tasks {
		v := model.Victim{Task: task, Job: rival}
		if !task.Status.HoldsNode() || tr.Candidate(v) != "" {
			continue
		}
		whole = append(whole, v)
		if slices.Contains(gained, task.UID) && tr.Evaluate(v) == "" {
			return true
		}
	}
	return tr.WholeJobs() && len(whole) > 1 && tr.Evaluate(whole...) == ""
}

func TestVictimsHaveOneOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := crowd(t)
		set, state := d.make(t, nil, nil)
		tr := set.Trial(rapid.SampledFrom(d.args.Actions).Draw(t, "action"), state.Job(d.keys[0]), d.world())
		all := d.victimsOf(state)
		// By every right that there is.
		tr.Seek(state.Job(d.keys[0]).Need())
		for range rapid.IntRange(0, 2).Draw(t, "wider") {
			for _, v := range all {
				decide(tr, v)
			}
			tr.Relax()
		}
		for _, a := range all {
			for _, b := range all {
				if (tr.Compare(a, b) < 0) == (tr.Compare(b, a) < 0) && a != b {
					t.Fatalf("%s and %s: each before the other, or neither", a.Task.UID, b.Task.UID)
				}
				for _, c := range all {
					if tr.Compare(a, b) < 0 && tr.Compare(b, c) < 0 && tr.Compare(a, c) >= 0 {
						t.Fatalf("%s before %s, that before %s, and that before the first", a.Task.UID, b.Task.UID, c.Task.UID)
					}
				}
			}
		}
		before := slices.SortedFunc(slices.Values(all), tr.Compare)
		begin(t, d, tr, state.Job(d.keys[0]), all)
		if after := slices.SortedFunc(slices.Values(all), tr.Compare); !slices.Equal(before, after) {
			t.Fatal("the order changed while victims were taken")
		}
	})
}

func TestPluginsAreAskedInNoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := crowd(t)
		action := rapid.SampledFrom(d.args.Actions).Draw(t, "action")
		said := func() string {
			set, state := d.make(t, nil, nil)
			all := d.victimsOf(state)
			tr := set.Trial(action, state.Job(d.keys[0]), d.world())
			var may strings.Builder
			for _, a := range all {
				fmt.Fprint(&may, decide(tr, a) == "", " ")
				for _, b := range all {
					fmt.Fprint(&may, a.Task != b.Task && decide(tr, a, b) == "", " ")
				}
			}
			return may.String()
		}
		before := said()
		for i := range d.args.Tiers {
			slices.Reverse(d.args.Tiers[i].Plugins)
		}
		if after := said(); before != after {
			t.Fatalf("the other way round:\n%s\nbefore:\n%s", after, before)
		}
	})
}

// TestNobodyFallsBelowItsDue checks what is taken against rules written as plainly as can be.
func TestNobodyFallsBelowItsDue(t *testing.T) {
	taking := 0
	rapid.Check(t, func(t *rapid.T) {
		d := crowd(t)
		set, state := d.make(t, nil, nil)
		job := state.Job(d.keys[0])
		tr := set.Trial(rapid.SampledFrom([]config.Action{config.Reclaim, config.GangReclaim}).Draw(t, "action"), job, d.world())
		left := map[string]resource.Vector{}
		for _, q := range set.Book().Queues() {
			left[q.Name] = set.Book().UsageOf(q).Allocated.Clone()
		}
		asked := func(name corev1.ResourceName) bool {
			return slices.ContainsFunc(job.Tasks, func(task *model.Task) bool { return task.Placeable() && task.Request.Get(name) > 0 })
		}
		for _, v := range slices.SortedFunc(slices.Values(d.victimsOf(state)), tr.Compare) {
			if decide(tr, v) != "" {
				continue
			}
			tr.Take(v)
			taking++
			for q := set.Book().Queue(v.Job.Queue); q != nil; q = q.Parent {
				held := left[q.Name].Clone()
				held.Sub(v.Task.Request)
				left[q.Name] = held
				if !d.inTree() && q.Name != v.Job.Queue || q.Above(set.Book().Queue(job.Queue)) {
					break
				}
				for _, least := range q.Guarantee {
					if v.Task.Request.Get(least.Name) > 0 && held.Get(least.Name) < least.Value {
						t.Fatalf("%s took queue %s below its guarantee of %s: %s", v.Task.UID, q.Name, least.Name, held)
					}
				}
			}
			if d.divided() && !d.leavesDue(set.Book().Queue(v.Job.Queue), left[v.Job.Queue], v.Task.Request, asked) {
				t.Fatalf("%s took queue %s below its due: %s", v.Task.UID, v.Job.Queue, left[v.Job.Queue])
			}
		}
	})
	if taking == 0 {
		t.Fatal("nobody was taken")
	}
}

// leavesDue reports whether a queue, which holds so much after it gave up a request, holds its due of something that it
// gave: of what the beneficiary asked for, unless it is due nothing of that. Where the cluster is divided by weight, queues
// are due something or nothing of everything; else they are due what they say.
func (d *drawn) leavesDue(q *account.Queue, held, request resource.Vector, asked func(corev1.ResourceName) bool) bool {
	byWeight := d.has(config.PluginProportion, "")
	var all, wanted []bool
	for _, a := range request {
		due := q.Deserved.Get(a.Name)
		if a.Name == corev1.ResourcePods || due == 0 && !byWeight {
			continue
		}
		keeps := float64(held.Get(a.Name)) >= due-0.5
		all = append(all, keeps)
		if asked(a.Name) {
			wanted = append(wanted, keeps)
		}
	}
	if len(all) == 0 || byWeight && !q.Due() {
		return true
	}
	if len(wanted) > 0 {
		return slices.Contains(wanted, true)
	}
	return slices.Contains(all, true)
}

// TestNobodyIsOverlookedFromAfar: whoever finds a victim is told that he might.
func TestNobodyIsOverlookedFromAfar(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		d := crowd(t)
		set, state := d.make(t, nil, nil)
		for _, key := range d.keys {
			job := state.Job(key)
			if job.Counts.Placeable() == 0 {
				continue
			}
			may := set.MayEvict(job)
			for _, action := range d.args.Actions {
				tr := set.Trial(action, job, d.world())
				if slices.Contains(may, action) || tr.Entitled(job.Need()) != (model.Reason{}) || !slices.ContainsFunc(job.Tasks, func(task *model.Task) bool {
					return task.Placeable() && tr.Entitled(task.Charge) == (model.Reason{})
				}) {
					continue
				}
				for _, v := range d.victimsOf(state) {
					// Across queues a pod that asks for nothing is no gain.
					if !v.Task.BestEffort && decide(tr, v) == "" {
						t.Fatalf("job %s may not evict by %s, and could have %s", key, action, v.Task.UID)
					}
				}
			}
			found += len(may)
		}
	})
	if found == 0 {
		t.Fatal("nobody may evict anybody")
	}
}

// TestATrialStandsOnItsOwn: what the Set learns after a trial began does not change its answers.
func TestATrialStandsOnItsOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := crowd(t)
		set, state := d.make(t, nil, nil)
		job, all := state.Job(d.keys[0]), d.victimsOf(state)
		action := rapid.SampledFrom(d.args.Actions).Draw(t, "action")
		tr := set.Trial(action, job, d.world())
		want := answersOf(tr, all, job)
		order := slices.SortedFunc(slices.Values(all), tr.Compare)
		for _, key := range d.keys[1:] {
			set.SetJob(key, nil)
		}
		set.SetQueue("q3", nil)
		set.SetCluster(both(1, 1))
		set.Update()
		if got := answersOf(tr, all, job); got != want {
			t.Fatalf("afterwards:\n%s\nbefore:\n%s", got, want)
		}
		if !slices.Equal(order, slices.SortedFunc(slices.Values(all), tr.Compare)) {
			t.Fatal("the order changed")
		}
	})
}

// TestOfTwoBrokenGangsOnlyOneGivesWay: whichever gang is to be completed first, in whatever state of the others, no gangs give way to each
// other in a circle, and nobody that is not broken gives way at all.
func TestOfTwoBrokenGangsOnlyOneGivesWay(t *testing.T) {
	yielding := 0
	rapid.Check(t, func(t *rapid.T) {
		d := crowd(t)
		for _, key := range d.keys {
			d.groups[key].MinMember = rapid.IntRange(1, 6).Draw(t, "minimum")
		}
		set, state := d.make(t, nil, nil)
		world := d.world()
		world.Lapses = map[model.JobKey]time.Time{}
		for _, key := range d.keys {
			if state.Job(key).Partial() {
				world.Lapses[key] = epoch
			}
		}
		before := map[model.JobKey][]model.JobKey{}
		for _, key := range d.keys {
			tr := set.Trial(config.Complete, state.Job(key), world)
			for _, v := range d.victimsOf(state) {
				if decide(tr, v) != "" {
					continue
				}
				if !v.Job.Partial() || !tr.Lapsed(v.Job) {
					t.Fatalf("%s gives way to %s, and is not broken", v.Job.Key, key)
				}
				before[key] = append(before[key], v.Job.Key)
				yielding++
			}
		}
		for _, key := range d.keys {
			if reaches(before, before[key], key) {
				t.Fatalf("%s gives way to itself in the end: %v", key, before)
			}
		}
	})
	if yielding == 0 {
		t.Fatal("nobody gives way")
	}
}

// reaches reports whether a job is among some, or among those who give way to them, and so on.
func reaches(before map[model.JobKey][]model.JobKey, from []model.JobKey, key model.JobKey) bool {
	seen := map[model.JobKey]bool{}
	for len(from) > 0 {
		next := from[0]
		from = from[1:]
		if next == key {
			return true
		}
		if !seen[next] {
			seen[next] = true
			from = append(from, before[next]...)
		}
	}
	return false
}
