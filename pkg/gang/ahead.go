// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/node"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// A job that does not fit now may fit once pods have ended that nobody evicts. When, and on which nodes, is found in two steps. Counting places
// by what pods ask for tells the earliest time at which there are enough. A plan by the profile's own plugins, on the nodes as they will be then,
// tells whether the job fits. Source: EASY backfilling (Lifka, "The ANL/IBM SP Scheduling System", 1995), whose shadow time this is.

// mostPlansAhead is for how many times a job is planned at most: the earliest by the count, one between it and the last, and the last.
const mostPlansAhead = 3

// Outlook tells when a pod is expected to end, and what is free then.
type Outlook func(*corev1.Pod) Leaver

// Leaver is a pod that ends, what its node gets back, and what its queue does. Of a pod that is nobody's task no queue gets anything.
type Leaver struct {
	model.Ending
	Request resource.Vector
	Queue   string
	Charge  resource.Vector
}

// Ahead is a plan for a time to come.
type Ahead struct {
	// Placements are where the tasks will be; nil when the job does not fit however many pods end.
	Placements []Placement
	// Leavers are the pods in the way, and the nodes that they are on.
	Leavers map[types.UID]string
	// Start is when the last of them is expected to have ended. Sure: they are stopped by then. Guessed: of some nobody knows how long they run.
	Start         time.Time
	Sure, Guessed bool
}

// Ahead plans all that a job's turn needs for the earliest time at which it fits, without room that is kept for others. Room that is kept for the job itself is
// left out of account. By is a time for which it is planned, too, if it does not fit before; zero: none.
func (p *Planner) Ahead(ctx context.Context, r Request, o Outlook, by time.Time) (Ahead, error) {
	f, err := p.forecast(r, o)
	if err != nil {
		return Ahead{}, err
	}
	for _, at := range f.starts(by) {
		plan, err := p.planAt(ctx, r, f, at)
		if err != nil {
			return Ahead{}, err
		}
		if len(plan.Placements) > 0 {
			return p.reckon(ctx, r, f, plan, at)
		}
	}
	return Ahead{}, nil
}

func (p *Planner) forecast(r Request, o Outlook) (*forecast, error) {
	nodes, err := p.Framework.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fmt.Errorf("listing the snapshot's nodes: %w", err)
	}
	return newForecast(r, nodes, o), nil
}

// reckon says which pods are in the way of a plan for a time. Filters may mind more than those that take the room.
func (p *Planner) reckon(ctx context.Context, r Request, f *forecast, plan Plan, at time.Time) (Ahead, error) {
	a := f.ahead(plan.Placements, at)
	if a.Start.Equal(at) {
		return a, nil
	}
	if len(a.Leavers) > 0 {
		earlier, err := p.planAt(ctx, r, f, a.Start)
		if err != nil {
			return Ahead{}, err
		}
		if len(earlier.Placements) > 0 {
			if a := f.ahead(earlier.Placements, a.Start); len(a.Leavers) > 0 {
				return a, nil
			}
		}
	}
	a = Ahead{Placements: plan.Placements, Leavers: map[types.UID]string{}, Sure: true}
	a.wait(f.leavers, at, func(time.Time) bool { return true })
	return a, nil
}

// Claim plans a job on the nodes on which room is reserved for it, beside what is reserved there for others once what they wait for has left: until
// then both cannot be counted. What the job takes has to be idle now.
func (p *Planner) Claim(ctx context.Context, r Request) (plan Plan, err error) {
	lister := p.Framework.SnapshotSharedLister().NodeInfos()
	own := map[string]fwk.NodeInfo{}
	var nodes []fwk.NodeInfo
	for _, t := range r.Job.Tasks {
		if !t.Reserved || own[t.Nominated] != nil {
			continue
		}
		if info, err := lister.Get(t.Nominated); err == nil {
			own[t.Nominated] = info
			nodes = append(nodes, info)
		}
	}
	if len(nodes) == 0 {
		return Plan{}, nil
	}
	r.ended = map[string][]*leaver{}
	for uid, name := range leavingBeside(r.Departures, r.Job.Key) {
		if pod := podOn(own[name], uid); pod != nil {
			r.ended[name] = append(r.ended[name], &leaver{pod: pod, node: name})
		}
	}
	r.Followers, r.Departures = nil, nil
	err = p.apart(func() error {
		plan, err = p.planOn(ctx, r, newGround(nodes))
		return err
	})
	for name, sum := range takenBy(plan.Placements) {
		if room(own[name], sum) == 0 {
			return Plan{}, err
		}
	}
	return plan, err
}

// planAt plans for a time, without the pods that have ended by then: on the nodes that are free last if the job fits there, else on all. What is
// free before is for those who come after the job.
func (p *Planner) planAt(ctx context.Context, r Request, f *forecast, at time.Time) (Plan, error) {
	if !r.Job.Together() {
		if last := f.last(at); len(last) > 0 {
			if plan, err := p.planThere(ctx, r, f, last, at); err != nil || len(plan.Placements) > 0 {
				return plan, err
			}
		}
	}
	return p.planThere(ctx, r, f, f.nodes, at)
}

// planThere plans for a time on those of some nodes on which there are places by then.
func (p *Planner) planThere(ctx context.Context, r Request, f *forecast, among []prospect, at time.Time) (plan Plan, err error) {
	nodes, ended := f.by(among, at)
	if len(nodes) == 0 {
		return Plan{}, nil
	}
	r.ended, r.Followers, r.Departures, r.NodesFirst = ended, nil, nil, false
	r.Budget = func() Budget { return f.budgetBy(at) }
	domains, refusal := p.domains(r.Job, nodes)
	if refusal != "" {
		return Plan{}, nil
	}
	err = p.apart(func() error {
		if domains != nil {
			plan, err = p.planInside(ctx, r, newGround(nodes), domains)
		} else {
			plan, err = p.planOn(ctx, r, newGround(nodes))
		}
		return err
	})
	return plan, err
}

// clearEnded takes the pods off the overlay that have ended by the time for which is planned.
func (a *attempt) clearEnded(ended map[string][]*leaver) error {
	if len(ended) == 0 {
		return nil
	}
	for i, n := range a.overlay.nodes {
		for _, l := range ended[n.Node().Name] {
			if err := a.overlay.remove(a.planner, removed{pod: l.pod, node: i}); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaver is a pod that ends.
type leaver struct {
	pod fwk.PodInfo
	Leaver
	node string
	// end is At in nanoseconds, which is faster to compare.
	end int64
}

// demand is tasks that any node treats alike.
type demand struct {
	task *model.Task
	// count is how many there are, needed how many of them the turn cannot do without.
	count, needed int
	affinity      nodeaffinity.RequiredNodeAffinity
}

// admits reports whether a node could take the tasks if it were empty, as far as its name, labels and taints go.
func (d *demand) admits(n *corev1.Node) bool {
	if match, err := d.affinity.Match(n); err != nil || !match || n.Spec.Unschedulable {
		return false
	}
	return model.Tolerates(d.task.Pod, n.Spec.Taints)
}

// prospect is a node and what becomes of it.
type prospect struct {
	info fwk.NodeInfo
	// free is how much is left now of what is asked for, without what is kept for other jobs. A node has nothing of what it does not list.
	free resource.Vector
	// leavers are its pods that end, the first first.
	leavers []*leaver
	// admits tells for each demand whether the node could take it.
	admits []bool
}

// idle is how much of a resource that is asked for the node has left at a time, when the pods that end before are gone.
func (n *prospect) idle(name corev1.ResourceName, at time.Time) int64 {
	left := n.free.Get(name)
	for i := range n.leavers {
		if n.leavers[i].At.After(at) {
			break
		}
		left += n.leavers[i].Request.Get(name)
	}
	return left
}

// places is how many tasks of a demand have room by a time.
func (n *prospect) places(demand int, request resource.Vector, most int, at time.Time) int {
	if !n.admits[demand] {
		return 0
	}
	places := int64(most)
	for _, a := range request {
		if a.Value > 0 {
			places = min(places, max(0, n.idle(a.Name, at))/a.Value)
		}
	}
	return int(places)
}

// forecast predicts how much room the nodes, and the job's queue, have at times to come.
type forecast struct {
	nodes   []prospect
	demands []demand
	// need is how many tasks the turn needs.
	need int
	// leavers are the pods on all nodes that are expected to end, the first first. Budget is what the job's queue may take now, all what the job asks for.
	leavers []*leaver
	budget  func() Budget
	all     resource.Vector
	queue   string
	// affords: the queue may take it now. What ends only gives back.
	affords bool
}

func newForecast(r Request, nodes []fwk.NodeInfo, o Outlook) *forecast {
	f := &forecast{need: r.Job.Requirement().Tasks, demands: demandsOf(r.Job), budget: r.Budget, all: r.Job.Need(), queue: r.Job.Queue}
	kept := map[string]resource.Vector{}
	for _, k := range r.rooms(false) {
		sum := kept[k.Node]
		sum.Add(k.Task.Request)
		kept[k.Node] = sum
	}
	f.affords = f.budget().Refuses(f.all) == (model.Reason{})
	pods := 0
	for _, info := range nodes {
		pods += len(info.GetPods())
	}
	f.nodes, f.leavers = make([]prospect, 0, len(nodes)), make([]*leaver, 0, pods)
	room := make([]leaver, 0, pods)
	for _, info := range nodes {
		n := prospect{info: info, free: f.freeOn(info, kept[info.Node().Name]), admits: make([]bool, 0, len(f.demands))}
		useful := false
		for i := range f.demands {
			n.admits = append(n.admits, f.demands[i].admits(info.Node()))
			useful = useful || n.admits[i]
		}
		before := len(f.leavers)
		for _, pod := range info.GetPods() {
			if l := o(pod.GetPod()); !l.At.IsZero() {
				room = append(room, leaver{pod: pod, Leaver: l, node: info.Node().Name, end: l.At.UnixNano()})
				f.leavers = append(f.leavers, &room[len(room)-1])
			}
		}
		if useful {
			n.leavers = slices.Clone(f.leavers[before:])
			slices.SortFunc(n.leavers, compareLeavers)
			f.nodes = append(f.nodes, n)
		}
	}
	slices.SortFunc(f.leavers, compareLeavers)
	return f
}

// freeOn is how much a node has left now of what is asked for, beside what is kept for others.
func (f *forecast) freeOn(info fwk.NodeInfo, kept resource.Vector) (free resource.Vector) {
	for i := range f.demands {
		for _, a := range f.demands[i].task.Request {
			if !slices.ContainsFunc(free, func(known resource.Amount) bool { return known.Name == a.Name }) {
				allocatable, requested := node.Amounts(info, a.Name)
				free.Add(resource.Vector{{Name: a.Name, Value: allocatable - requested - kept.Get(a.Name)}})
			}
		}
	}
	return free
}

func compareLeavers(a, b *leaver) int {
	if c := cmp.Compare(a.end, b.end); c != 0 {
		return c
	}
	return cmp.Compare(a.pod.GetPod().UID, b.pod.GetPod().UID)
}

// budgetBy is what the job's queue may take at a time. By then pods that end earlier have given back what they hold.
func (f *forecast) budgetBy(at time.Time) Budget {
	b := f.budget()
	for _, l := range f.leavers {
		if l.At.After(at) {
			break
		}
		l.giveBack(b)
	}
	return b
}

// demandsOf are what the tasks of a job that may be placed ask for.
func demandsOf(job *model.Job) []demand {
	var list []demand
	all := 0
	for _, t := range job.Tasks {
		if !t.Placeable() || t.BestEffort {
			continue
		}
		all++
		i := slices.IndexFunc(list, func(d demand) bool { return d.task.Class == t.Class })
		if i < 0 {
			i = len(list)
			list = append(list, demand{task: t, affinity: nodeaffinity.GetRequiredNodeAffinity(t.Pod)})
		}
		list[i].count++
	}
	for i := range list {
		others := all - list[i].count
		list[i].needed = max(0, min(list[i].count, job.Requirement().Tasks-others))
	}
	return list
}

// suffices reports whether there are enough places by a time, as far as what pods ask for goes.
func (f *forecast) suffices(at time.Time) bool {
	places := make([]int, len(f.demands))
	for i := range f.demands {
		d := &f.demands[i]
		for k := range f.nodes {
			if places[i] = min(d.count, places[i]+f.nodes[k].places(i, d.task.Request, d.count, at)); places[i] == d.count {
				break
			}
		}
	}
	return f.placed(places) && f.affordsBy(at)
}

// affordsBy reports whether the job's queue may take all that the job needs at a time.
func (f *forecast) affordsBy(at time.Time) bool {
	return f.affords || f.budgetBy(at).Refuses(f.all) == (model.Reason{})
}

// starts are the times for which to plan, the earliest first; none if there are not enough places whatever ends. By is one of them, unless there are
// not enough by then.
func (f *forecast) starts(by time.Time) []time.Time {
	ends := make([]time.Time, len(f.leavers))
	for i := range f.leavers {
		ends[i] = f.leavers[i].At
	}
	ends = slices.CompactFunc(ends, time.Time.Equal)
	first, _ := slices.BinarySearchFunc(ends, true, func(end time.Time, enough bool) int {
		if f.suffices(end) == enough {
			return 1
		}
		return -1
	})
	if first == len(ends) || len(f.demands) == 0 {
		return nil
	}
	last := len(ends) - 1
	starts := make([]time.Time, 0, mostPlansAhead)
	for _, i := range []int{first, first + (last-first)/2, last} {
		if len(starts) == 0 || starts[len(starts)-1].Before(ends[i]) {
			starts = append(starts, ends[i])
		}
	}
	if by.After(starts[0]) {
		starts = append(starts, by)
		slices.SortFunc(starts, time.Time.Compare)
	}
	return starts
}

// last are the nodes that are free last of those with places by a time, as many as it takes; none if there is no choice, or somebody only guesses by when
// pods end: what is free already is surer then.
func (f *forecast) last(at time.Time) []prospect {
	type candidate struct {
		*prospect
		since int64
	}
	var order []candidate
	for k := range f.nodes {
		n := &f.nodes[k]
		ended := n.endedBy(at)
		if slices.ContainsFunc(ended, func(l *leaver) bool { return !l.Sure }) {
			return nil
		}
		if !slices.ContainsFunc(f.indices(), func(i int) bool { return n.places(i, f.demands[i].task.Request, 1, at) > 0 }) {
			continue
		}
		c := candidate{prospect: n}
		if len(ended) > 0 {
			c.since = ended[len(ended)-1].end
		}
		order = append(order, c)
	}
	slices.SortStableFunc(order, func(a, b candidate) int { return cmp.Compare(b.since, a.since) })
	sums := make([]int, len(f.demands))
	for taken, c := range order {
		if f.placed(sums) {
			last := make([]prospect, 0, taken)
			for _, c := range order[:taken] {
				last = append(last, *c.prospect)
			}
			return last
		}
		for i := range f.demands {
			d := &f.demands[i]
			sums[i] = min(d.count, sums[i]+c.places(i, d.task.Request, d.count, at))
		}
	}
	return nil
}

// placed reports whether so many places for each demand are enough for the job.
func (f *forecast) placed(places []int) bool {
	sum := 0
	for i := range f.demands {
		if places[i] < f.demands[i].needed {
			return false
		}
		sum += places[i]
	}
	return sum >= f.need
}

// by returns those of some nodes with places for some task by a time, and their pods that have ended by then.
func (f *forecast) by(among []prospect, at time.Time) (nodes []fwk.NodeInfo, ended map[string][]*leaver) {
	ended = map[string][]*leaver{}
	for k := range among {
		n := &among[k]
		if !slices.ContainsFunc(f.indices(), func(i int) bool { return n.places(i, f.demands[i].task.Request, 1, at) > 0 }) {
			continue
		}
		nodes = append(nodes, n.info)
		ended[n.info.Node().Name] = n.endedBy(at)
	}
	return nodes, ended
}

func (f *forecast) indices() []int {
	list := make([]int, len(f.demands))
	for i := range list {
		list[i] = i
	}
	return list
}

// endedBy are the pods that have ended by a time.
func (n *prospect) endedBy(at time.Time) []*leaver {
	i := slices.IndexFunc(n.leavers, func(l *leaver) bool { return l.At.After(at) })
	if i < 0 {
		return n.leavers
	}
	return n.leavers[:i]
}

// ahead is the plan for a time with the pods that are in the way of its placements: on each node the first to end until there is room, and then the
// first anywhere until the job's queue may take what it needs.
func (f *forecast) ahead(placements []Placement, at time.Time) Ahead {
	a := Ahead{Placements: placements, Leavers: map[types.UID]string{}, Sure: true}
	taken := takenBy(placements)
	for k := range f.nodes {
		n := &f.nodes[k]
		need := taken[n.info.Node().Name]
		a.wait(n.leavers, at, func(by time.Time) bool { return n.short(need, by) })
	}
	a.waitForQueue(f)
	return a
}

// waitForQueue has the plan wait until the job's queue may take what it needs, too.
func (a *Ahead) waitForQueue(f *forecast) {
	if f.affords {
		return
	}
	budget, others := f.budget(), make([]*leaver, 0, len(f.leavers))
	for _, l := range f.leavers {
		if _, waits := a.Leavers[l.pod.GetPod().UID]; waits {
			l.giveBack(budget)
		} else {
			others = append(others, l)
		}
	}
	// Those of its own queue first: in a tree of queues others may give something back, too.
	own := func(l *leaver) bool { return l.Queue == f.queue }
	others = slices.Concat(filtered(others, own), filtered(others, func(l *leaver) bool { return !own(l) && l.Queue != "" }))
	for _, l := range others {
		if budget.Refuses(f.all) == (model.Reason{}) {
			return
		}
		l.giveBack(budget)
		a.add(l)
	}
}

func filtered(list []*leaver, keep func(*leaver) bool) []*leaver {
	return slices.DeleteFunc(slices.Clone(list), func(l *leaver) bool { return !keep(l) })
}

// giveBack releases what the leaver's queue gets back.
func (l *leaver) giveBack(budget Budget) {
	if l.Queue != "" {
		budget.Release(l.Queue, l.Charge)
	}
}

// wait has the plan wait for the first of some leavers until nothing is short by the time at which they have ended.
func (a *Ahead) wait(leavers []*leaver, at time.Time, short func(by time.Time) bool) {
	var by time.Time
	for _, l := range leavers {
		if l.At.After(at) || !l.At.Equal(by) && !short(by) {
			return
		}
		by = l.At
		a.add(l)
	}
}

// add has the plan wait for a leaver.
func (a *Ahead) add(l *leaver) {
	a.Leavers[l.pod.GetPod().UID] = l.node
	a.Start = model.Later(a.Start, l.At)
	a.Sure, a.Guessed = a.Sure && l.Sure, a.Guessed || l.Guessed
}
