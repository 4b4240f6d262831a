// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Trial says who may be evicted for a job. It counts what was taken and placed so far, so that its answers hold for the
// whole decision and not for each victim alone.
type Trial interface {
	// Candidate says why a task can never be a victim here; empty when it may be one.
	Candidate(model.Victim) string
	// Evaluate says why the victims may not go, together, on top of all that were taken; empty when they may.
	Evaluate(...model.Victim) string
	// Take counts a victim as gone, Return takes that back.
	Take(model.Victim)
	Return(model.Victim)
	// Gain counts a task of the job as placed, Lose takes that back.
	Gain(*model.Task)
	Lose(*model.Task)
	// Compare orders victims: negative when a goes first. No two are equal.
	Compare(a, b model.Victim) int
	// Distance is how far the victim's queue is from the job's; nearer ones go first.
	Distance(model.Victim) int
	// WholeJobs reports whether a job that has nothing to spare may be evicted as a whole.
	WholeJobs() bool
	// Lapsed reports whether a job may be evicted as a whole only, and before others: it is broken, and has been for long.
	Lapsed(*model.Job) bool
	// Relax has a search that found nobody begin anew with wider rights, and reports whether there are any.
	Relax() bool
	// Moves reports whether victims are moved: each goes only if there is another node for it, and keeps what it holds of its queue.
	Moves() bool
	// Reversible says how the victims could take the room back in the resulting state; empty when they could not.
	Reversible(taken []model.Victim, gained []*model.Task) string
}

// Search is what a statement asks the planner for: room for the tasks of a turn that was refused.
type Search struct {
	Request
	Trial Trial
	// Victim returns what is known of a pod on a node; the zero Victim for pods that are nobody's tasks.
	Victim func(types.UID) model.Victim
	// Leaving are pods that terminate, whose room is about to be free.
	Leaving []model.Leaving
	// Now is the time, and Patience how long after its grace period a leaving pod is still believed to go.
	Now      time.Time
	Patience time.Duration
}

// Statement is a decision to evict: who goes, and where the job's tasks will be. It is the outcome of simulating both on
// the scheduler's snapshot with the profile's own plugins, and nothing has been done yet. Source: Volcano's Statement
// (pkg/scheduler/framework/statement.go); unlike there the whole gang is placed before anything is decided.
type Statement struct {
	// Placements are where the tasks will be; nil when evictions do not help.
	Placements []Placement
	// Victims are who has to go, none of which can stay. They may be none: then pods that leave anyway make room.
	Victims []model.Victim
	// Moves are where the victims will be once they are created again, if they are moved.
	Moves []Placement
	// Kept counts the pods that were looked at and not evicted, by reason.
	Kept map[string]int
	// Why says why evictions do not help, for people.
	Why string
}

// Evict looks for the evictions that make room for all tasks that the turn needs and for which no room is kept yet, or for
// none. It tries the tasks in their order, and then the largest first. An error means that a plugin failed.
func (p *Planner) Evict(ctx context.Context, s Search) (Statement, error) {
	nodes, err := p.Framework.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return Statement{}, fmt.Errorf("listing the snapshot's nodes: %w", err)
	}
	if len(nodes) == 0 {
		return Statement{Why: "the cluster has no nodes"}, nil
	}
	if s.Trial.Moves() && divided(s.Job) {
		return Statement{Why: whyDivided}, nil
	}
	domains, refusal := p.domains(s.Job, nodes)
	if refusal != "" {
		return Statement{Why: refusal}, nil
	}
	var first Statement
	for wider := false; ; wider = true {
		var st Statement
		if domains != nil {
			st, err = p.evictInside(ctx, s, newGround(nodes), domains)
		} else {
			st, err = p.evictOn(ctx, s, newGround(nodes))
		}
		if err != nil || st.Placements != nil {
			return st, err
		}
		// The first search says why others stay: it goes by what queues deserve.
		if !wider {
			first = st
		}
		if !s.Trial.Relax() {
			return first, nil
		}
	}
}

// evictOn looks for evictions on some nodes, part by part where the job is divided.
func (p *Planner) evictOn(ctx context.Context, s Search, g *ground) (Statement, error) {
	if divided(s.Job) {
		return p.evictParts(ctx, s, g)
	}
	return p.evictAmong(ctx, s, g.nodes)
}

// evictAmong looks for evictions on nodes.
func (p *Planner) evictAmong(ctx context.Context, s Search, nodes []fwk.NodeInfo) (Statement, error) {
	st, retry, err := p.statement(ctx, s, nodes, false)
	if err == nil && st.Placements == nil && retry {
		st, _, err = p.statement(ctx, s, nodes, true)
	}
	return st, err
}

// statement searches once. Retry: another order of the tasks may come out differently.
func (p *Planner) statement(ctx context.Context, s Search, nodes []fwk.NodeInfo, largestFirst bool) (st Statement, retry bool, err error) {
	a := p.newAttempt(s.Request, nodes)
	a.later = false
	a.budget.Excuse()
	a.settle()
	a.quota, a.tasks = remainder(a.quota, a.tasks, s.Job)
	if a.quota.met() {
		return Statement{Why: roomForAll}, false, nil
	}
	if largestFirst {
		slices.SortStableFunc(a.tasks, func(x, y *model.Task) int { return -compareSizes(x.Request, y.Request) })
	}
	e := newEvictor(a, s)
	a.evictor = e
	defer func() {
		a.undo(ctx)
		e.returnAll()
		p.start = (p.start + e.scanned) % len(nodes)
	}()
	// The room kept for other tasks of this job is taken, too.
	if err := a.keepRoom(s.rooms(true), nil); err != nil {
		return Statement{}, false, err
	}
	if err := e.clear(ctx); err != nil {
		return Statement{}, false, err
	}
	if err := a.run(ctx); err != nil {
		return Statement{}, false, err
	}
	if !a.quota.met() || len(a.placed) == 0 {
		return Statement{Kept: e.kept, Why: e.why()}, len(a.classes) > 1, nil
	}
	if err := e.reprieve(ctx); err != nil {
		return Statement{}, false, err
	}
	victims := e.victims()
	if len(victims) > 0 {
		gained := make([]*model.Task, len(a.placed))
		for i := range a.placed {
			gained[i] = a.placed[i].Task
		}
		if why := s.Trial.Reversible(victims, gained); why != "" {
			return Statement{Kept: e.kept, Why: "evictions would not last: " + why}, false, nil
		}
	}
	if err := a.handOver(ctx); err != nil {
		return Statement{}, false, err
	}
	return Statement{Placements: a.placed, Victims: victims, Moves: e.mover.moves(victims), Kept: e.kept}, false, nil
}

// roomForAll is why no evictions are needed for a turn.
const roomForAll = "room is kept for all of its tasks"

// remainder takes the tasks for which room is kept off what a turn has to place.
func remainder(q quota, tasks []*model.Task, job *model.Job) (quota, []*model.Task) {
	if job.Counts.Nominated == 0 {
		return q, tasks
	}
	if q.gang {
		for _, t := range job.Tasks {
			if t.Nominated != "" && !t.BestEffort && !q.met() {
				q.take(t.Role)
			}
		}
	}
	return q, slices.DeleteFunc(tasks, func(t *model.Task) bool { return t.Nominated != "" })
}

// compareSizes compares what two tasks ask for: devices first, then the other resources by name.
func compareSizes(a, b resource.Vector) int {
	for _, device := range []bool{true, false} {
		for _, x := range a {
			if isDevice(x.Name) == device {
				if c := cmp.Compare(x.Value, b.Get(x.Name)); c != 0 {
					return c
				}
			}
		}
	}
	return cmp.Compare(len(a), len(b))
}

func isDevice(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourcePods:
		return false
	}
	return true
}

// evictor is the part of an attempt that makes room.
type evictor struct {
	attempt *attempt
	search  Search
	trial   Trial
	// mover finds other nodes for victims; nil when they need none.
	mover *mover
	// spots are the positions on the overlay's log of the tasks placed.
	spots []int
	// taken are the victims so far, in the order in which they were chosen.
	taken []unit
	// gone marks the victims among all pods.
	gone map[types.UID]bool
	// touched are the nodes from which pods were removed, each once.
	touched []int
	seen    map[int]bool
	// evictionNodes are the nodes on which a class can get room, by class.
	nodes map[*class]*evictionNodes
	// changes counts what was taken: what was found about a node before may not hold any more.
	changes int
	kept    map[string]int
	counted map[types.UID]bool
	scanned int
	// parts are the tasks of each subgroup of jobs that were looked at.
	parts map[model.JobKey]map[model.SubGroupID][]*model.Task
}

// partOf are the tasks of the subgroup that a victim is in.
func (e *evictor) partOf(v model.Victim) []*model.Task {
	parts := e.parts[v.Job.Key]
	if parts == nil {
		parts = map[model.SubGroupID][]*model.Task{}
		for _, t := range v.Job.Tasks {
			if id, ok := v.Job.SubGroupOf(t); ok {
				parts[id] = append(parts[id], t)
			}
		}
		e.parts[v.Job.Key] = parts
	}
	id, _ := v.Job.SubGroupOf(v.Task)
	return parts[id]
}

// unit is victims that go together or stay together: one task, all that is left of a subgroup, or all that a job has left.
type unit struct {
	victims     []model.Victim
	pods        []removed
	part, whole bool
}

// removed is a pod that was taken off a node of the overlay.
type removed struct {
	pod  fwk.PodInfo
	node int
}

func newEvictor(a *attempt, s Search) *evictor {
	e := &evictor{
		attempt: a, search: s, trial: s.Trial, gone: map[types.UID]bool{}, seen: map[int]bool{},
		nodes: map[*class]*evictionNodes{}, kept: map[string]int{}, counted: map[types.UID]bool{},
		parts: map[model.JobKey]map[model.SubGroupID][]*model.Task{},
	}
	if s.Trial.Moves() {
		e.mover = &mover{evictor: e, homes: map[types.UID]home{}, settled: map[types.UID]bool{}}
	}
	return e
}

// release has the queue of a victim give up what that holds; retain takes that back. Who is moved holds it on.
func (e *evictor) release(v model.Victim) {
	if e.mover == nil {
		e.attempt.budget.Release(v.Job.Queue, v.Task.Charge)
	}
}

func (e *evictor) retain(v model.Victim) {
	if e.mover == nil {
		e.attempt.budget.Release(v.Job.Queue, negative(v.Task.Charge))
	}
}

// gain counts a task as placed.
func (e *evictor) gain(ctx context.Context, t *model.Task) error {
	e.trial.Gain(t)
	err := e.attempt.recordLast(ctx)
	e.spots = append(e.spots, len(e.attempt.overlay.added)-1)
	return err
}

// clear takes the pods that leave anyway off their nodes, but not those that should have been gone long ago.
func (e *evictor) clear(ctx context.Context) error {
	o := e.attempt.overlay
	for _, l := range e.search.Leaving {
		i := o.index(l.Node)
		if i < 0 || !l.Until.IsZero() && e.search.Now.Sub(l.Until) > e.search.Patience {
			continue
		}
		if pod := podOn(o.at(i), l.UID); pod != nil {
			e.gone[l.UID] = true
			if err := e.remove(ctx, removed{pod: pod, node: i}); err != nil {
				return err
			}
		}
	}
	return nil
}

func podOn(info fwk.NodeInfo, uid types.UID) fwk.PodInfo {
	if info == nil {
		return nil
	}
	for _, p := range info.GetPods() {
		if p.GetPod().UID == uid {
			return p
		}
	}
	return nil
}

// remove takes a pod off its node and tells the classes that look at other pods.
func (e *evictor) remove(ctx context.Context, r removed) error {
	if err := e.attempt.overlay.remove(e.attempt.planner, r); err != nil {
		return err
	}
	if !e.seen[r.node] {
		e.seen[r.node] = true
		e.touched = append(e.touched, r.node)
	}
	for _, c := range e.attempt.classes {
		if c.looksAround {
			c.upset = true
			if err := c.removePod(ctx, c.state, r, e.attempt.overlay.at(r.node)); err != nil {
				return err
			}
		}
	}
	return nil
}

// putBack undoes remove.
func (e *evictor) putBack(ctx context.Context, r removed) error {
	info := e.attempt.overlay.restore(r)
	for _, c := range e.attempt.classes {
		if c.looksAround {
			if err := c.restore(ctx, r.pod, info); err != nil {
				return err
			}
		}
	}
	return nil
}

// take evicts a unit on the overlay.
func (e *evictor) take(ctx context.Context, u unit) error {
	e.changes++
	e.charge(u)
	for _, r := range u.pods {
		if err := e.remove(ctx, r); err != nil {
			return err
		}
	}
	e.taken = withUnit(e.taken, u)
	return nil
}

// charge counts the victims of a unit as going.
func (e *evictor) charge(u unit) {
	for _, v := range u.victims {
		e.gone[v.Task.UID] = true
		e.trial.Take(v)
		e.release(v)
	}
}

// withUnit adds a unit to those taken. The last tasks of a job, or of a subgroup, make one unit with those taken before: if any of them
// could be put back without the others, part of it would be left.
func withUnit(taken []unit, u unit) []unit {
	if !u.whole && !u.part {
		return append(taken, u)
	}
	all := unit{part: u.part, whole: u.whole}
	taken = slices.DeleteFunc(taken, func(o unit) bool {
		if !u.includes(o.victims[0]) {
			return false
		}
		all.victims, all.pods = append(all.victims, o.victims...), append(all.pods, o.pods...)
		return true
	})
	all.victims, all.pods = append(all.victims, u.victims...), append(all.pods, u.pods...)
	return append(taken, all)
}

// includes reports whether a victim is of the job, or of the subgroup, all of which goes.
func (u unit) includes(v model.Victim) bool {
	first := u.victims[0]
	if first.Job.Key != v.Job.Key {
		return false
	}
	return u.whole || sameSubGroup(first, v)
}

// sameSubGroup reports whether two victims of a job are in one subgroup.
func sameSubGroup(a, b model.Victim) bool {
	x, xIn := a.Job.SubGroupOf(a.Task)
	y, yIn := b.Job.SubGroupOf(b.Task)
	return xIn && yIn && x == y
}

// untake counts the victims of a unit as staying.
func (e *evictor) untake(u unit) {
	for _, v := range u.victims {
		delete(e.gone, v.Task.UID)
		e.trial.Return(v)
		e.retain(v)
	}
}

// returnAll leaves the trial as it was before the search.
func (e *evictor) returnAll() {
	for _, u := range e.taken {
		e.untake(u)
	}
	for _, p := range e.attempt.placed {
		e.trial.Lose(p.Task)
	}
}

func negative(v resource.Vector) resource.Vector {
	n := v.Clone()
	for i := range n {
		n[i].Value = -n[i].Value
	}
	return n
}

// victims are those of all units that were not put back.
func (e *evictor) victims() []model.Victim {
	var all []model.Victim
	for _, u := range e.taken {
		all = append(all, u.victims...)
	}
	return all
}

// keep counts a pod that is not evicted.
func (e *evictor) keep(uid types.UID, why string) {
	if !e.counted[uid] {
		e.counted[uid] = true
		e.kept[why]++
	}
}

// why says what keeps the pods that were looked at, the most frequent reasons first.
func (e *evictor) why() string {
	if len(e.kept) == 0 {
		return "nobody who may be evicted makes room"
	}
	return "evictions would not make enough room; kept: " + summarize(e.kept)
}

// summarize renders counted reasons: "3 because one, 2 because another".
func summarize(counts map[string]int) string {
	const most = 3
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(-cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b))
	})
	text := ""
	for i, reason := range reasons {
		if i == most {
			return text + ", and others"
		}
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%d because %s", counts[reason], reason)
	}
	return text
}
