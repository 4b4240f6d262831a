// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/queue/hdrf"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// EvictionWorld is what a trial looks at besides jobs and queues. A function that is nil knows of nothing.
type EvictionWorld struct {
	Now time.Time
	// Budgets returns the disruption budgets of a namespace.
	Budgets func(namespace string) []*model.DisruptionBudget
	// BarredQueues returns until when the beneficiary's queue may take nothing from a queue; zero when it may.
	BarredQueues func(victimQueue string) (until time.Time)
	// Refused returns until when a pod is left alone because the API server refused its eviction; zero when it is not.
	Refused func(uid types.UID) time.Time
	// Lapses tells from when on broken gangs go as a whole, whatever their minimum. The others are protected by it.
	Lapses Lapses
	// Moves are the moves of pods so far.
	Moves Moved
}

// Trial answers who may be evicted for one job, the beneficiary, as of when it was made and with what was taken and
// gained since. It is not safe for concurrent use, but does not look at the Set any more.
type Trial struct {
	orders
	rules   *evictions
	ruleSet *ruleSet
	world   EvictionWorld

	accounts *account.Copy
	own      *jobUsage
	usages   map[model.JobKey]*jobUsage
	// last was looked up last.
	last    *jobUsage
	budgets map[string][]*allowance

	// ask has the resources that any waiting task of the beneficiary asks for; bestEffort: there are none.
	ask        resource.Vector
	bestEffort bool
	// hoped is what the beneficiary would hold after its next turn, as far as that is known before it gains anything. Half is what it holds
	// that does not count by its share, nor in hoped: see model.Job.OwnHalf.
	hoped, half resource.Vector
	gained      []*model.Task
	// along are those that go together with the victim that is judged, and are not taken yet.
	along []model.Victim
	// priority is the lowest that a task of the beneficiary's next turn has, if the highest are placed first.
	priority int32

	// moved counts the pods that were taken to be moved, movedOf by controller; movable is how many may be. Profile is the scheduler's that places them.
	moved, movable int
	movedOf        map[types.UID]int
	profile        string

	right right
	// chosen is what somebody outside chose.
	chosen map[types.UID]bool

	// tree is that of hierarchical drf as of when the trial was made, contested the same with what was taken and gained
	// since; nil until somebody asks.
	tree, contested *hdrf.Tree
	again           time.Time
}

// Trial begins a trial of an action for a job. An action that evicts nobody finds nobody.
func (s *Set) Trial(action config.Action, job *model.Job, w EvictionWorld) *Trial {
	t := newTrial(&s.evictions, s.orders, action, job, w)
	t.accounts = s.book.Copy()
	if s.tree != nil {
		t.tree = s.tree.Clone()
		for i, p := range t.queues {
			if _, live := p.by.(*hierarchical); live {
				t.queues = slices.Clone(t.queues)
				t.queues[i].by = &hierarchical{tree: t.tree}
			}
		}
	}
	t.begin(job)
	return t
}

func newTrial(rules *evictions, o orders, action config.Action, job *model.Job, w EvictionWorld) *Trial {
	t := &Trial{
		orders: o, rules: rules, ruleSet: rules.ruleSet(action), world: w, usages: map[model.JobKey]*jobUsage{},
		budgets: map[string][]*allowance{}, priority: math.MinInt32,
	}
	if t.ruleSet == nil {
		t.ruleSet = &ruleSet{action: action}
	}
	for i := range job.Pending {
		t.ask.Max(job.Pending[i].Charge)
	}
	t.ask = t.ask.Counted()
	t.bestEffort = t.ask.BestEffort()
	return t
}

// begin makes a job the beneficiary, and finds what it waits for.
func (t *Trial) begin(job *model.Job) {
	t.own = t.admit(job)
	t.relate(t.own)
	t.usages[job.Key] = t.own
	// Room is kept for nominated tasks: it counts as held.
	turn := max(1, job.Requirement().Tasks-job.Counts.Nominated)
	t.half = job.OwnHalf()
	t.hoped = without(t.own.held, t.half).Clone()
	t.hoped.Add(model.LeastSum(slices.Clone(job.Pending), turn))
	var priorities []int32
	for _, task := range job.Tasks {
		if task.Placeable() && task.Nominated == "" {
			priorities = append(priorities, -task.Priority)
			t.own.revocable = t.own.revocable || task.Preemptable() || task.Revocable()
		}
	}
	if m := t.ruleSet.moves; m != nil {
		m.begin(t, job)
	}
	slices.Sort(priorities)
	if len(priorities) > 0 {
		t.priority = -priorities[min(turn, len(priorities))-1]
	}
}

// expected is what the beneficiary is to hold: with what its next turn asks for or, if that comes to a greater share of
// the cluster, with what it gained. Volcano counts the task that is placed next, and all before it; of a gang that starts
// whole or not at all the last one decides.
func (t *Trial) expected() resource.Vector {
	if len(t.gained) == 0 {
		return t.hoped
	}
	if held := without(t.own.held, t.half); held.Dominant(t.portion) > t.hoped.Dominant(t.portion) {
		return held
	}
	return t.hoped
}

// taskPriority is the lowest of the tasks that are to be placed.
func (t *Trial) taskPriority() int32 {
	least := t.priority
	for _, task := range t.gained {
		least = min(least, task.Priority)
	}
	return least
}

// Evaluate says why these may not go together, on top of all taken so far, in a short phrase; empty when they may. All of
// them must be candidates.
func (t *Trial) Evaluate(vs ...model.Victim) (why string) {
	if len(vs) == 1 {
		h := t.usageOf(vs[0].Job)
		if t.ruleSet.gangs {
			if why = t.keepsMinimum(h, vs[0].Task, 1); why != "" {
				return why
			}
		}
		return t.judge(vs[0], h)
	}
	judged := 0
	for i, v := range vs {
		t.along, t.right.rest = vs[i+1:], i > 0
		if why = t.judge(v, t.usageOf(v.Job)); why != "" {
			break
		}
		t.Take(v)
		judged++
	}
	t.along, t.right.rest = nil, false
	for i := 0; t.ruleSet.gangs && why == "" && i < len(vs); i++ {
		why = t.keepsMinimum(t.usageOf(vs[i].Job), nil, 0)
	}
	for _, v := range slices.Backward(vs[:judged]) {
		t.Return(v)
	}
	return why
}

// judge asks selectors and guards, all but the minimums of gangs, about one task.
func (t *Trial) judge(v model.Victim, h *jobUsage) string {
	if !t.ruleSet.offers() {
		return "no policy selects victims for " + string(t.ruleSet.action)
	}
	for _, selects := range t.ruleSet.selectors {
		if why := selects(t, v, h); why != "" {
			return why
		}
	}
	for _, protects := range t.ruleSet.guards {
		if why := protects(t, v, h); why != "" {
			return why
		}
	}
	return ""
}

// Take counts a victim as gone.
func (t *Trial) Take(v model.Victim) { t.move(v, -1) }

// Return undoes Take.
func (t *Trial) Return(v model.Victim) { t.move(v, 1) }

func (t *Trial) move(v model.Victim, n int) {
	h := t.usageOf(v.Job)
	h.count(v.Task, n)
	switch {
	case h != t.own:
	case t.half != nil:
		t.half.AddTimes(v.Task.Charge, int64(n))
	default:
		t.hoped.AddTimes(v.Task.Charge, int64(n))
	}
	t.right.note(h.queue)
	t.accounts.Hold(h.queue, v.Task.Charge, int64(n))
	t.right.settle(h.queue)
	t.spend(v.Task.Pod, int32(-n))
	t.countMove(v, n)
	t.enter(h)
}

// Gain counts a task of the beneficiary as placed.
func (t *Trial) Gain(task *model.Task) {
	t.gained = append(t.gained, task)
	t.add(task, 1)
}

// Lose undoes Gain.
func (t *Trial) Lose(task *model.Task) {
	i := slices.IndexFunc(t.gained, func(o *model.Task) bool { return o.UID == task.UID })
	if i < 0 {
		return
	}
	t.gained = slices.Delete(t.gained, i, i+1)
	t.add(task, -1)
}

// add counts n times what a task asks for as held by the beneficiary. What is kept for a nominated task counts already.
func (t *Trial) add(task *model.Task, n int64) {
	if task.Nominated == "" {
		t.own.held.AddTimes(task.Charge, n)
		t.accounts.Hold(t.own.queue, task.Charge, n)
	}
	t.enter(t.own)
}

// contest is the tree of hierarchical drf with what was taken and gained.
func (t *Trial) contest() *hdrf.Tree {
	if t.contested == nil {
		t.contested = t.tree.Clone()
		for _, h := range t.usages {
			t.enter(h)
		}
	}
	return t.contested
}

// enter brings a job in the contested tree up to date.
func (t *Trial) enter(h *jobUsage) {
	if t.contested == nil {
		return
	}
	held := h.held
	if h == t.own {
		held = t.expected()
	}
	t.contested.SetJob(h.leaf, h.job.Queue, held.Clone(), h.job.Usage.Requested)
}

// Compare is the order in which victims are tried, negative when a is evicted first. Where queues may fall below their due, those go first whose
// queue loses the least of it. Then come those of queues that are nearer in
// the tree, of the queue that goes last, of the job that goes last, and of a job the task that goes last. Tasks of a job
// that policies treat alike go by the index in their names, the highest first, then by age, the youngest first, then by
// UID. Where broken gangs give way only the order of jobs counts. It is a strict order, and does not change while victims are taken. Source: Volcano's VictimQueueOrder and victim
// heap (reference section 3.5). There tasks of jobs that policies treat alike are ordered as if they were of one job, so
// that all of these jobs lose some; here the youngest job is broken up first.
func (t *Trial) Compare(a, b model.Victim) int {
	if t.ruleSet.moves != nil {
		return t.compareMoves(a, b)
	}
	if t.right.ground == byGain {
		if c := cmp.Compare(t.right.toll(t.usageOf(a.Job).queue, a.Task), t.right.toll(t.usageOf(b.Job).queue, b.Task)); c != 0 {
			return c
		}
	}
	if a.Job.Key != b.Job.Key {
		x := t.usageOf(a.Job)
		y := t.usageOf(b.Job)
		switch {
		case t.ruleSet.completes():
		case x.distance != y.distance:
			return cmp.Compare(x.distance, y.distance)
		case x.queue.Name != y.queue.Name:
			return -t.CompareQueues(x.queue, y.queue)
		}
		if c := t.CompareJobs(x.ranked, y.ranked); c != 0 {
			return -c
		}
	}
	return t.compareLeaving(a.Task, b.Task)
}

// Distance is how far the victim's queue is from the beneficiary's in the tree of queues: 0 for the same queue and its
// nearest relatives, and where the tree is not looked at.
func (t *Trial) Distance(v model.Victim) int { return t.usageOf(v.Job).distance }
