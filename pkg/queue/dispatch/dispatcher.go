// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dispatch decides which job goes next. It is Volcano's scheduling loop made event-driven: jobs that have
// tasks to place wait in order; the first gets a turn; when the turn ends, placed or refused, the next begins within
// the same scheduling cycle. A refused job is parked until something that can help it changes.
package dispatch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/gang/room"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// mostRepeats is how many turns in a row a job may repeat before others: some milliseconds. While the watch of pods is broken, each has the
// API server told once more that the pod waits.
const mostRepeats = 10

// quickRepeats are those of them that come at once. Before each other one no turn begins for a breath, so that the scheduler's cache, which may be
// slow, comes to know of the room; that counts as a plan that came to nothing, and is left out when too many did.
const (
	quickRepeats = 3
	breath       = time.Millisecond
)

// Config is what a Dispatcher works with. All fields are required.
type Config struct {
	State *model.State
	// Rules are those that it decides by at first.
	Rules
	// MayFit is a cheap necessary condition for a plan to succeed.
	MayFit func(*model.Job, model.Totals) bool
	// Checks are the filters of a scheduler's profile that say which nodes have places for a pod.
	Checks func(scheduler string) room.Checks
	// NeverFits reports whether a job cannot start however empty the nodes are.
	NeverFits func(*model.Job, model.Totals) bool
	// Lead is the task of a job whose pod leads its turn; nil when no task may be placed.
	Lead func(*model.Job) *model.Task
	// Activate moves pods to the scheduler's active queue, and tells which of them are not there then.
	Activate func(pods []*corev1.Pod) []Standing
	// Settle lets the members of a turn that waited for each other bind, or takes their reservations back.
	Settle func(members []types.UID, bind bool)
	// Ungate has the queue's scheduling gate taken off tasks that were let through. Who fails at that calls GateKept.
	Ungate func([]*model.Task)
	// Report is told why a job waits, when that changes; the zero Reason when it no longer does. Of two reports about a job the one with
	// the greater number is the later one: they may be sent by two goroutines.
	Report func(job model.JobKey, reason model.Reason, number uint64)
	// Fault is told that a queue is left out of scheduling, and why; the zero Reason when it no longer is.
	Fault func(*model.Queue, model.Reason)
	// Release is told to have the members of a broken gang evicted. It is told again if that comes to nothing.
	Release func(Trouble)
	// Abandon has room given up that is reserved for a job.
	Abandon func(model.JobKey)
	// Tell is told of a broken gang whatever else there is to tell: see Stage.
	Tell  func(Trouble)
	Clock clock.WithTicker
	// Recorder counts what is done.
	Recorder Recorder
}

// Recorder counts what a dispatcher does. It is called with the lock held and must not call back.
type Recorder interface {
	// Turn counts one that ended, how far it had come, and how long it took.
	Turn(phase TurnPhase, result TurnResult, took time.Duration)
	// Abandoned: a turn is given up because nothing was heard of it.
	Abandoned()
	Parked(reason model.ReasonKind)
	// Retried: a turn began for a job that was refused before though there seemed to be room.
	Retried()
	// Swept: a job was placed in a turn for which nothing had happened.
	Swept()
	// Reservation: room is reserved for a job, or not any more.
	Reservation(how ReservationResult)
	// Released: a broken gang is to give back what it holds.
	Released(how Break)
	Admitted(queue string, waited time.Duration)
}

// Dispatcher hands out turns.
type Dispatcher struct {
	cfg    Config
	signal chan struct{}

	// mu guards everything below. It is never held while calling Activate or Report; State may be read under it.
	mu      sync.Mutex
	running bool
	// stepped: turns begin in Step only.
	stepped bool
	// waits are the jobs that wait, lots where they stand, selection who of them is next.
	waits     *waitlist
	lots      *lots
	selection *selection
	turn      *turn
	// dues knows which queues are below their due.
	dues *dues
	// paused is until when no turn begins.
	paused time.Time
	cycle  schedulingCycle
	// unbound are the pods of earlier turns that wait to be bound. It has no need of the lock.
	unbound unbound
	// urgent are members from when they are activated until they are taken from the queue.
	urgent map[types.UID]bool
	// adopting are rules that come into force when the turn ends; nil when there are none.
	adopting *adoption
	outbox   outbox
}

// New returns a dispatcher that hands out no turns before Run.
func New(cfg Config) *Dispatcher {
	d := &Dispatcher{cfg: cfg, signal: make(chan struct{}, 1), urgent: map[types.UID]bool{}}
	d.lots = newLots(&d.cfg, &d.outbox)
	d.waits = newWaitlist(&d.cfg, &d.outbox, d.lots)
	d.selection = &selection{cfg: &d.cfg, waits: d.waits, lots: d.lots}
	d.dues = newDues(&d.cfg, d.waits)
	return d
}

// Notify tells the dispatcher what changed in the model. Before Run nothing of it is kept: then all is looked at.
func (d *Dispatcher) Notify(c model.Change) {
	d.mu.Lock()
	if !d.running {
		d.mu.Unlock()
		return
	}
	for _, key := range c.Jobs {
		d.waits.changed[key] = true
	}
	d.forgetPods(c.Tasks)
	if d.turn != nil {
		d.checkMembers(c.Tasks)
	}
	for _, name := range c.Queues {
		d.waits.queues[name] = true
	}
	d.waits.events |= c.Events
	d.lots.rooms.note(c)
	if d.turn != nil {
		d.turn.note(c)
	}
	idle := d.turn == nil
	d.mu.Unlock()
	if idle {
		d.wake()
	}
}

// wake makes Run look at what happened.
func (d *Dispatcher) wake() {
	select {
	case d.signal <- struct{}{}:
	default:
	}
}

// Run hands out turns until the context ends. It must not be called before the model is complete.
func (d *Dispatcher) Run(ctx context.Context) {
	d.mu.Lock()
	d.running = true
	d.waits.changeAll()
	d.waits.resumption.begin()
	d.mu.Unlock()
	for {
		wake := min(d.advance(false), nudgeAfter)
		d.lookAtDues()
		timer := d.cfg.Clock.NewTimer(wake)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-d.signal:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// lookAtDues looks at which queues are below their due, if it is time.
func (d *Dispatcher) lookAtDues() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dues.pass()
}

// Gate reports whether a pod may enter the scheduling queue now.
func (d *Dispatcher) Gate(uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, held := d.waits.absence.held[uid]; held {
		// What another plugin holds waits in the queue for it to let go.
		return true
	}
	return d.turn.lets(uid)
}

// Urgent reports whether a pod is a planned member of a turn: nothing may be placed before it. That stays so until the pod is taken from
// the queue, whatever becomes of the turn, because the queue is ordered by it.
func (d *Dispatcher) Urgent(uid types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.urgent[uid]
}

// SkipsRecheck reports whether what the plan of the turn says of a pod needs no second look as far as other pods are concerned: the pod's
// cycle is about to make the plan, or is that of a member, and none but members have come, gone or changed since the turn began.
func (d *Dispatcher) SkipsRecheck(uid types.UID) bool {
	const matters = model.PodPlaced | model.RoomMade | model.NodeChanged | model.NodeLost
	d.mu.Lock()
	defer d.mu.Unlock()
	switch t := d.turn; {
	case t == nil:
		return false
	case t.members == nil:
		return t.lead.UID == uid
	default:
		return t.members[uid] != nil && t.disturbed&matters == 0
	}
}

// Enter says what the scheduling cycle of a pod is for. Any pod of the job whose turn it is may lead it.
func (d *Dispatcher) Enter(uid types.UID) Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	t, task := d.turn, d.cfg.State.Task(uid)
	if t == nil || task == nil {
		return Entry{}
	}
	if m := t.member(uid); m != nil {
		t.progress = d.cfg.Clock.Now()
		return Entry{Verdict: Member, Node: m.node, Turn: t.number}
	}
	if task.Job != t.job {
		return Entry{}
	}
	job := d.waits.job(t.job)
	if t.members != nil || !task.Placeable() || job == nil || !t.isFor(job) {
		return Entry{}
	}
	t.progress = d.cfg.Clock.Now()
	t.planning, t.lead = t.progress, task.Pod
	d.noteLot(t, job)
	entry := Entry{
		Verdict: Lead, Job: job, Turn: t.number, Limit: t.limit,
		Budget: d.lots.limits.budget(job, t.borrowing), NodesFirst: t.nodesFirst, Followers: d.selection.followers(t),
		Passes: d.waits.holders.passes(d.waits.jobs[t.job], job),
	}
	t.followers = nil
	for _, f := range entry.Followers {
		t.followers = append(t.followers, f.Key)
	}
	return entry
}

// noteLot notes of which lot the turn's job is, and how many places there are for it.
func (d *Dispatcher) noteLot(t *turn, job *model.Job) {
	t.lot = d.lots.keyOf(d.waits.jobs[t.job], job)
	if l := d.lots.of(t); l != nil {
		d.lots.countRoom()
		t.placesThen = l.places()
	}
}

// Planned records the plan of the turn and activates its members. It returns the lead's own node; empty when the lead
// is not part of the plan.
func (d *Dispatcher) Planned(lead types.UID, pods []*corev1.Pod, nodes []string, fragile bool) string {
	d.mu.Lock()
	t := d.turn
	if t == nil || t.lead.UID != lead {
		d.mu.Unlock()
		return ""
	}
	t.members = make(map[types.UID]*member, len(pods))
	t.open, t.fragile, t.progress = len(pods), fragile, d.cfg.Clock.Now()
	var others []*corev1.Pod
	node := ""
	for i, pod := range pods {
		t.members[pod.UID] = &member{pod: pod, node: nodes[i]}
		if pod.UID == lead {
			node = nodes[i]
		} else {
			others = append(others, pod)
			d.urgent[pod.UID] = true
		}
	}
	d.waits.holders.passed(d.waits.jobs[t.job], d.waits.job(t.job), pods)
	received := d.waits.admissions.receive(d.waits.jobs[t.job])
	d.checkMembers(slices.Collect(maps.Keys(t.members)))
	ended := d.turn == nil
	d.mu.Unlock()
	if received {
		d.tellNow()
	}
	if !ended && len(others) > 0 {
		d.activate(t.number, others)
		d.mu.Lock()
		ended = d.turn != t
		d.mu.Unlock()
	}
	if ended {
		d.proceed()
		return ""
	}
	return node
}
