// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package gang decides about whole gangs: which tasks a turn places, on which nodes, or why it cannot. Its decisions
// are functions of a snapshot; it reaches the scheduler profile through an interface that it declares itself.
package gang

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Framework is the part of a scheduler profile that planning runs: its own plugins, on pods other than the one in
// hand. k8s.io/kubernetes/pkg/scheduler/framework.Framework satisfies it.
type Framework interface {
	RunPreFilterPlugins(context.Context, fwk.CycleState, *corev1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string])
	RunPreFilterExtensionAddPod(ctx context.Context, state fwk.CycleState, podToSchedule *corev1.Pod, podInfoToAdd fwk.PodInfo, nodeInfo fwk.NodeInfo) *fwk.Status
	RunPreFilterExtensionRemovePod(ctx context.Context, state fwk.CycleState, podToSchedule *corev1.Pod, podInfoToRemove fwk.PodInfo, nodeInfo fwk.NodeInfo) *fwk.Status
	RunFilterPlugins(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) *fwk.Status
	NominatedPodsForNode(nodeName string) []fwk.PodInfo
	RunPreScorePlugins(context.Context, fwk.CycleState, *corev1.Pod, []fwk.NodeInfo) *fwk.Status
	RunRawScorePlugins(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeInfo) ([]fwk.PluginScore, *fwk.Status)
	NormalizeScores(context.Context, fwk.CycleState, *corev1.Pod, []fwk.NodePluginScores) *fwk.Status
	RunReservePluginsReserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status
	RunReservePluginsUnreserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string)
	SnapshotSharedLister() fwk.SharedLister
	Parallelizer() fwk.Parallelizer
	Extenders() []fwk.Extender
}

// Planner places the tasks of a turn on an overlay of the scheduler's snapshot. It is not safe for concurrent use:
// there is one turn at a time.
type Planner struct {
	// Framework is the profile that the pods belong to.
	Framework Framework
	// Arrange says how the tasks of a job are tried.
	Arrange func(*model.Job) Arrangement
	// NewState returns a cycle state that plugins recognise as a plan's.
	NewState func() fwk.CycleState
	// NewPodInfo parses a pod the way the scheduler's cache does.
	NewPodInfo func(*corev1.Pod) (fwk.PodInfo, error)
	// RemovePod takes a pod off a node that may be changed.
	RemovePod func(fwk.NodeInfo, *corev1.Pod) error
	// Assume puts a pod on a node of the snapshot itself until the function it returns is called, last first: for plugins whose scores
	// count the pods of all nodes there.
	Assume func(pod *corev1.Pod, node string) (forget func(context.Context), err error)
	// SampleSize is how many feasible nodes suffice of a number of nodes, as in upstream's node sampling.
	SampleSize func(nodes int) int
	// ReservationCanFail reports whether Filter may promise the pod something that Reserve then refuses: an unbound
	// volume, an unallocated device.
	ReservationCanFail func(*corev1.Pod) bool

	// FiltersByLook and ScoresByLook report whether those plugins that filter, or score, and are not skipped go by nothing of a node but its resources,
	// taints and images, how many pods it has, whether it is cordoned, and, if no term of the pod is about a node's name, those of its labels that the pod's node
	// selector and node affinity name. Whether those that score normalise their scores has nothing to do with the pod.
	FiltersByLook, ScoresByLook func(skipped sets.Set[string]) bool

	// ByLabels reports whether some plugin may go by a pod's labels or its namespace without a word.
	ByLabels func() bool

	// Ours reports whether a pod is a task of the model: Request.Nominated says where room is kept for it, whatever the scheduler's queue says.
	Ours func(types.UID) bool

	// Domains says inside of which nodes a gang is to be; nil: anywhere.
	Domains Domains

	memory
}

// memory is what a planner keeps from one plan to the next. It makes plans faster. Where nodes are sampled, it also says which of them are looked at.
type memory struct {
	// start is where the next scan of the nodes begins, so that all nodes get their turn.
	start int
	cache classCache
	// looks are those of the nodes, by the labels that classes mention, and leftovers what they have left.
	looks     map[string]*looks
	leftovers leftovers
	// infos are the parsed pods of the tasks for which room is kept.
	infos map[types.UID]fwk.PodInfo
	// weights are the plugins' weights for the last class, where they are the same for other classes.
	weights weights
	lists   lists
}

// lists is room that is used again: for what is needed while some nodes are filtered, and for the candidates of one class.
type lists struct {
	nodes, fitting, kept []int
	verdicts             []verdict
	infos                []fwk.NodeInfo
}

// Anew returns a planner of the same profile that has planned nothing yet.
func (p *Planner) Anew() *Planner {
	anew := *p
	anew.memory = memory{}
	return &anew
}

// Plan places as many of the tasks as the requirement asks for, in order, or none, within the budget. Best-effort tasks of a gang are
// placed along with it where there is room. An error means that a plugin failed, not that the gang does not fit.
func (p *Planner) Plan(ctx context.Context, r Request) (Plan, error) {
	nodes, err := p.Framework.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return Plan{}, fmt.Errorf("listing the snapshot's nodes: %w", err)
	}
	if len(nodes) == 0 {
		return Plan{Reason: noNodes(r.Job)}, nil
	}
	switch domains, refusal := p.domains(r.Job, nodes); {
	case refusal != "":
		return Plan{Reason: nowhere(refusal)}, nil
	case domains != nil:
		return p.planInside(ctx, r, newGround(nodes), domains)
	}
	return p.planOn(ctx, r, newGround(nodes))
}

// planOn plans on some nodes, part by part where the job is divided.
func (p *Planner) planOn(ctx context.Context, r Request, g *ground) (Plan, error) {
	if divided(r.Job) {
		return p.planParts(ctx, r, g)
	}
	return p.planAmong(ctx, r, g.nodes)
}

// planAmong plans on nodes.
func (p *Planner) planAmong(ctx context.Context, r Request, nodes []fwk.NodeInfo) (Plan, error) {
	plan, remembered, err := p.attempt(ctx, r, nodes)
	if err == nil && len(plan.Placements) == 0 && remembered {
		// Nodes that an earlier plan ruled out may have room by now: only a look at all of them can refuse.
		p.cache = classCache{}
		plan, _, err = p.attempt(ctx, r, nodes)
	}
	return plan, err
}

// attempt plans once, and reports whether it used what earlier plans found out.
func (p *Planner) attempt(ctx context.Context, r Request, nodes []fwk.NodeInfo) (plan Plan, remembered bool, err error) {
	a := p.newAttempt(r, nodes)
	defer func() {
		a.undo(ctx)
		p.start = (p.start + a.scanned) % len(nodes)
	}()
	a.settle()
	if !a.resume() {
		if err := a.keepRoom(r.rooms(false), r.Departures); err != nil {
			return Plan{}, false, err
		}
		if err := a.clearEnded(r.ended); err != nil {
			return Plan{}, false, err
		}
	}
	if err := a.run(ctx); err != nil && !errors.Is(err, errHopeless) {
		return Plan{}, false, err
	}
	if !a.quota.met() || len(a.placed) == 0 || !a.affords() {
		return Plan{Reason: a.reason(), Doubts: a.doubts(), fit: max(len(a.placed), a.bound)}, a.remembered, nil
	}
	a.placeFollowers(ctx, r.Followers)
	if err := a.handOver(ctx); err != nil {
		return Plan{}, false, err
	}
	p.cache.keep(a)
	return Plan{Placements: a.placed, Fragile: a.fragile}, a.remembered, nil
}

func (p *Planner) newAttempt(r Request, nodes []fwk.NodeInfo) *attempt {
	arrangement := p.Arrange(r.Job)
	return &attempt{
		planner:     p,
		job:         r.Job,
		budget:      r.Budget(),
		before:      r.before,
		later:       r.NodesFirst,
		ahead:       r.ended != nil,
		overlay:     newOverlay(nodes),
		classes:     map[kind]*class{},
		served:      map[kind]*class{},
		shapes:      map[model.Class]*class{},
		quota:       newQuota(r.Job.Requirement()),
		arrangement: arrangement,
		tasks:       arrangement.inOrder(r.Job),
	}
}

// errHopeless ends an attempt early: the requirement cannot be met any more.
var errHopeless = errors.New("the gang cannot fit")

// attempt is one run of the planner.
type attempt struct {
	planner *Planner
	// job is the one whose tasks are placed: that of the turn, then its followers.
	job    *model.Job
	budget Budget
	// before is the outcome for the job's parts so far; nil where the job is planned as one.
	before *decided
	// later: the budget is looked at in the end.
	later   bool
	overlay *overlay
	classes map[kind]*class
	// served are classes that serve tasks of a kind that is not theirs, too; shapes are where to look for one.
	served map[kind]*class
	shapes map[model.Class]*class
	quota  quota
	// arrangement is the order of the tasks and what they are told apart by.
	arrangement Arrangement
	// tasks are the placeable tasks in the order in which they are tried.
	tasks  []*model.Task
	placed []Placement
	// last records the task placed last; nil when that is done.
	last    func(context.Context) error
	undos   []func(context.Context)
	fragile bool
	// assumed is how many of the pods planned are on the snapshot, too, and forget what takes each off again.
	assumed int
	forget  []func(context.Context)
	// remembered: a class took over the candidates of an earlier plan.
	remembered bool
	// scanned is the greatest number of nodes that one class looked at.
	scanned int
	// short is the first class for which no node was left while it was still needed.
	short *class
	// refused is why the queue's budget did not allow a task; zero when it allowed all.
	refused model.Reason
	// bound is an upper bound of what can be placed, when that was enough to give up.
	bound int
	// keeps: room is kept for tasks. Ahead: it is planned for a time to come, and pods that have ended by then are off their nodes.
	keeps, ahead bool
	// evictor makes room; nil while the nodes are taken as they are.
	evictor *evictor
}

// each calls do for all numbers below n, some at a time. It fails if the context ends before: the parallelizer leaves out the rest then, and
// does not tell.
func (a *attempt) each(ctx context.Context, n int, do func(int), operation string) error {
	a.planner.Framework.Parallelizer().Until(ctx, n, do, operation)
	return context.Cause(ctx)
}

// run tries the tasks the requirement needs, then those that did not fit at first and may fit beside members placed
// since, then best-effort tasks.
func (a *attempt) run(ctx context.Context) error {
	waiting := a.tasks
	for progress := true; progress && !a.quota.met(); {
		before := len(a.placed)
		var err error
		if waiting, err = a.pass(ctx, waiting); err != nil {
			return err
		}
		// What was placed may have helped tasks whose filters look at other pods.
		if progress = len(a.placed) > before && a.looksAround(); progress {
			a.short = nil
		}
	}
	if !a.quota.met() {
		return nil
	}
	for _, t := range waiting {
		// What Volcano's readiness takes as given is placed along; a turn that needs nothing places one task.
		if t.BestEffort && a.quota.gang && a.evictor == nil || len(a.placed) == 0 {
			if _, err := a.place(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// pass tries each task for which the quota has room and returns those that were not placed.
func (a *attempt) pass(ctx context.Context, tasks []*model.Task) (left []*model.Task, err error) {
	for i, t := range tasks {
		if a.quota.met() {
			return append(left, tasks[i:]...), nil
		}
		if t.BestEffort && a.quota.gang || !a.quota.wants(t.Role) {
			left = append(left, t)
			continue
		}
		ok, err := a.place(ctx, t)
		switch {
		case err != nil:
			return nil, err
		case ok:
			a.quota.take(t.Role)
		default:
			left = append(left, t)
		}
	}
	return left, nil
}

// placeFollowers places the tasks of other jobs until there is no room for one, or a plugin fails: that is for its own turn to find, and
// to be charged with. What may be refused a reservation does not follow, because all members of its turn would wait for it.
func (a *attempt) placeFollowers(ctx context.Context, jobs []*model.Job) {
	for _, job := range jobs {
		t := job.Tasks[0]
		if a.fragile || a.later || a.planner.ReservationCanFail(t.Pod) {
			return
		}
		a.job, a.arrangement = job, a.planner.Arrange(job)
		if ok, err := a.place(ctx, t); err != nil || !ok {
			return
		}
	}
}

// allows reports whether the queue's budget has room for a task.
func (a *attempt) allows(t *model.Task) bool {
	reason := a.budget.Refuses(t.Charge)
	if reason != (model.Reason{}) && a.refused == (model.Reason{}) {
		a.refused = reason
	}
	return reason == (model.Reason{})
}

// affords reports whether the budget has room for all that was placed without asking it.
func (a *attempt) affords() bool {
	for i := range a.placed {
		if !a.later {
			break
		}
		if !a.allows(a.placed[i].Task) {
			return false
		}
		a.budget.Take(a.placed[i].Task.Charge)
	}
	return true
}

// place puts one task on the best node of its class; false when no node is left.
func (a *attempt) place(ctx context.Context, t *model.Task) (bool, error) {
	if err := a.recordLast(ctx); err != nil {
		return false, err
	}
	if !a.later && a.evictor == nil && !a.allows(t) {
		return false, nil
	}
	c, err := a.classOf(ctx, t)
	if err != nil {
		return false, err
	}
	for {
		e, err := a.nodeFor(ctx, c, t)
		if err != nil {
			return false, err
		}
		if e == nil {
			if a.short == nil && !(t.BestEffort && a.quota.gang) {
				a.short = c
			}
			return false, nil
		}
		ok, err := a.reserve(ctx, c, t, e)
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		return true, a.take(ctx, c, t, e)
	}
}

// take places a task on a node.
func (a *attempt) take(ctx context.Context, c *class, t *model.Task, e *candidate) error {
	if !a.later {
		a.budget.Take(t.Charge)
	}
	a.placed = append(a.placed, Placement{Task: t, Node: e.info.Node().Name})
	a.last = func(ctx context.Context) error { return a.record(ctx, c, t, e) }
	if a.evictor == nil {
		return nil
	}
	return a.evictor.gain(ctx, t)
}

// nodeFor returns the node on which a task goes: the one kept for it, the best there is, or one where evictions make room.
// It returns nil when there is none.
func (a *attempt) nodeFor(ctx context.Context, c *class, t *model.Task) (*candidate, error) {
	if err := c.catchUp(ctx); err != nil {
		return nil, err
	}
	if e := a.kept(ctx, c, t); e != nil {
		return e, nil
	}
	if a.evictor == nil {
		return c.best(ctx)
	}
	if a.evictor.withinBudget(t) {
		if e, err := c.best(ctx); e != nil || err != nil {
			return e, err
		}
	}
	return a.evictor.makeRoom(ctx, c, t)
}

// reserve runs the profile's Reserve plugins for a task whose reservation can fail. A refusal takes the node out of
// the class.
func (a *attempt) reserve(ctx context.Context, c *class, t *model.Task, e *candidate) (bool, error) {
	if !c.canFail {
		return true, nil
	}
	a.fragile = true
	pod := t.Pod.DeepCopy()
	name := e.info.Node().Name
	pod.Spec.NodeName = name
	f := a.planner.Framework
	state := c.state
	status := f.RunReservePluginsReserve(ctx, state, pod, name)
	if status.IsSuccess() {
		a.undos = append(a.undos, func(ctx context.Context) { f.RunReservePluginsUnreserve(ctx, state, pod, name) })
		return true, nil
	}
	f.RunReservePluginsUnreserve(ctx, state, pod, name)
	if !status.IsRejected() {
		return false, fmt.Errorf("reserving node %s for pod %s/%s: %w", name, pod.Namespace, pod.Name, status.AsError())
	}
	c.unreservable[e.node] = true
	c.refuse(e, status)
	return false, nil
}

// undo takes back what the plan did to the snapshot, and the trial reservations, last first.
func (a *attempt) undo(ctx context.Context) {
	a.unfollow(ctx)
	for _, undo := range slices.Backward(a.undos) {
		undo(ctx)
	}
}

// clears reports whether pods are taken off their nodes.
func (a *attempt) clears() bool { return a.evictor != nil || a.ahead }

// looksAround reports whether the filters of any class depend on pods of other nodes.
func (a *attempt) looksAround() bool {
	for _, c := range a.classes {
		if c.looksAround {
			return true
		}
	}
	return false
}
