// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/gang/room"
	"github.com/caldera-scheduler/caldera/pkg/metrics"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// fixture is a dispatcher, and the scheduling queue and status writer it talks to. Tests run in a synctest bubble, so that
// time passes only when everything waits.
type fixture struct {
	t     *testing.T
	state *model.State
	*dispatch.Dispatcher

	mu        sync.Mutex // guards the rest
	activated []types.UID
	reasons   map[model.JobKey][]model.Reason
	settled   map[types.UID]bool
	// ungated are pods whose gates are to be taken off.
	ungated []types.UID
	// began is when the fixture was made.
	began time.Time
	// released are broken gangs that are to give back what they hold, warned those that were told that they may have to.
	// Whole are those that are broken no more.
	released, warned, whole []string
	// abandoned are jobs whose reserved room is given up; reserves: there may be some.
	abandoned []string
	reserves  bool
	// elsewhere are pods that are not in the scheduling queue, with the plugin that keeps them out, if one does.
	elsewhere map[types.UID]string
	// overtake is called once, when the queue has been asked for pods and its answer is yet to be taken in; nil: nothing happens then.
	overtake func()
	// parks counts how often lots were set aside, by reason.
	parks map[model.ReasonKind]int
	// turnsAbandoned counts the turns that were given up because nothing was heard of them.
	turnsAbandoned int
	// beforeNotified is called once, when the model has changed and the dispatcher is yet to be told; nil: nothing happens then. Only who changes the
	// model uses it.
	beforeNotified func()
	// mayFit is called instead of gang.MayFit unless it is nil.
	mayFit func(*model.Job, model.Totals) bool
	// hasty: the dispatcher called itself quiet while it still had something to tell.
	hasty bool
}

// plain are the arguments of a scheduler without queues: gangs by priority.
func plain() *config.BatchQueueArgs {
	return &config.BatchQueueArgs{
		Actions: []config.Action{config.Allocate, config.Backfill},
		Tiers:   []config.Tier{{Plugins: []config.TierPlugin{{Name: config.PluginPriority}, {Name: config.PluginGang}}}},
	}
}

func policies(t *testing.T, args *config.BatchQueueArgs, outside ...policy.Extension) *policy.Set {
	set, err := policy.Compile(args, outside...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// patience is how long jobs may be without pods.
const patience = 10 * time.Minute

// stalledAfter is how long nodes must have refused a job for others to be its guests.
const stalledAfter = 10 * time.Second

// halfTimeout is how long gangs may be half placed, brokenTimeout how long those may be broken that lost members.
const (
	halfTimeout   = time.Minute
	brokenTimeout = 5 * time.Minute
)

func noOpinion(_, _ *model.Task) int { return 0 }

func newFixture(t *testing.T) *fixture { return newFixtureWith(t, plain()) }

func newFixtureWith(t *testing.T, args *config.BatchQueueArgs, outside ...policy.Extension) *fixture {
	d := newStandbyWith(t, args, outside...)
	go d.Run(t.Context())
	return d
}

// newStandby returns a fixture that does not run yet.
func newStandby(t *testing.T) *fixture { return newStandbyWith(t, plain()) }

func newStandbyWith(t *testing.T, args *config.BatchQueueArgs, outside ...policy.Extension) *fixture {
	d := &fixture{t: t, began: time.Now(), state: model.NewState(), reasons: map[model.JobKey][]model.Reason{}, settled: map[types.UID]bool{}, elsewhere: map[types.UID]string{}, parks: map[model.ReasonKind]int{}}
	d.state.AddScheduler("volcano")
	d.Dispatcher = dispatch.New(dispatch.Config{
		State: d.state,
		Rules: dispatch.Rules{
			Policies: policies(t, args, outside...), AdmissionTimeout: patience, StalledAfter: stalledAfter,
			HalfTimeout: halfTimeout, BrokenTimeout: brokenTimeout, ReleaseLost: args.ReleaseLost,
			Evicts: slices.ContainsFunc(args.Actions, config.Action.Evicts),
		},
		MayFit: func(job *model.Job, totals model.Totals) bool {
			if d.mayFit != nil {
				return d.mayFit(job, totals)
			}
			return gang.MayFit(job, totals)
		},
		NeverFits: gang.NeverFits,
		Checks: func(string) room.Checks {
			return room.Checks{Resources: true, Affinity: true, Taints: true, Unschedulable: true}
		},
		Lead:  gang.TaskOrder(noOpinion).Lead,
		Fault: func(*model.Queue, model.Reason) {},
		Abandon: func(job model.JobKey) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.abandoned = append(d.abandoned, job.Name); !d.reserves {
				d.t.Errorf("room of %s is given up; nobody keeps any here", job)
			}
		},
		Release: func(b dispatch.Trouble) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.released = append(d.released, b.Job.Name)
		},
		Tell: func(b dispatch.Trouble) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if b.Stage == dispatch.WholeAgain {
				d.whole = append(d.whole, fmt.Sprintf("%s %s %s", b.Job.Name, b.How, b.Lasted))
				return
			}
			d.warned = append(d.warned, fmt.Sprintf("%s %s %s of %s", b.Job.Name, b.How, b.Lasted, b.After))
		},
		Recorder: recorder{fixture: d},
		Activate: func(pods []*corev1.Pod) (elsewhere []dispatch.Standing) {
			d.mu.Lock()
			for _, p := range pods {
				if by, ok := d.elsewhere[p.UID]; ok {
					elsewhere = append(elsewhere, dispatch.Standing{Pod: p.UID, GatedBy: by})
					continue
				}
				d.activated = append(d.activated, p.UID)
			}
			overtake := d.overtake
			d.overtake = nil
			d.mu.Unlock()
			if overtake != nil {
				overtake()
			}
			return elsewhere
		},
		Settle: func(members []types.UID, bind bool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			for _, uid := range members {
				d.settled[uid] = bind
			}
		},
		Ungate: func(tasks []*model.Task) {
			d.mu.Lock()
			defer d.mu.Unlock()
			for _, t := range tasks {
				d.ungated = append(d.ungated, t.UID)
			}
		},
		Report: func(key model.JobKey, reason model.Reason, _ uint64) {
			quiet, _ := d.Quiet()
			d.mu.Lock()
			defer d.mu.Unlock()
			d.hasty = d.hasty || quiet
			d.reasons[key] = append(d.reasons[key], reason)
		},
		Clock: clock.RealClock{},
	})
	d.state.Observe(func(c model.Change) {
		if before := d.beforeNotified; before != nil {
			d.beforeNotified = nil
			before()
		}
		d.Notify(c)
	})
	d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue})
	d.addNode("node-0", "8")
	return d
}

// recorder counts for its fixture, too.
type recorder struct {
	metrics.Recorder
	fixture *fixture
}

func (r recorder) Parked(reason model.ReasonKind) {
	r.Recorder.Parked(reason)
	r.fixture.mu.Lock()
	defer r.fixture.mu.Unlock()
	r.fixture.parks[reason]++
}

// Abandoned counts for the fixture.
func (r recorder) Abandoned() {
	r.Recorder.Abandoned()
	r.fixture.mu.Lock()
	defer r.fixture.mu.Unlock()
	r.fixture.turnsAbandoned++
}

// parked is how often lots were set aside for a reason.
func (d *fixture) parked(reason model.ReasonKind) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.parks[reason]
}

// take waits until everything is quiet and returns the pods activated since the last call, sorted.
func (d *fixture) take() []types.UID {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := slices.Sorted(slices.Values(d.activated))
	d.activated = nil
	return taken
}

func (d *fixture) want(uids ...types.UID) {
	d.t.Helper()
	if got := d.take(); !slices.Equal(got, uids) {
		d.t.Fatalf("activated %v, want %v", got, uids)
	}
}

// wantWithin waits for a pod to be activated after a rest: half of it at least, and all of it at most.
func (d *fixture) wantWithin(rest time.Duration, uid types.UID) {
	d.t.Helper()
	began := time.Now()
	for {
		got, waited := d.take(), time.Since(began)
		switch {
		case slices.Equal(got, []types.UID{uid}) && waited >= rest/2 && waited <= rest+time.Millisecond:
			return
		case len(got) > 0 || waited > rest:
			d.t.Fatalf("activated %v after %s, want %s after a rest of %s", got, waited, uid, rest)
		}
		time.Sleep(time.Millisecond)
	}
}

// last is the last reason reported for a PodGroup.
func (d *fixture) last(job string) model.Reason { return d.lastOf(keyOf(job)) }

// lastOf is the last reason reported for a job.
func (d *fixture) lastOf(job model.JobKey) model.Reason {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if told := d.reasons[job]; len(told) > 0 {
		return told[len(told)-1]
	}
	return model.Reason{}
}

// addNode adds a node, with such a disk if one is named.
func (d *fixture) addNode(name, cpu string, disk ...string) {
	labels := map[string]string{"disk": strings.Join(disk, "")}
	d.state.UpsertNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("110"),
	}}})
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func memberOf(job string, i int, cpu string) *corev1.Pod {
	return builders.Member("ns", job, fmt.Sprintf("%s-%d", job, i), cpu).
		CreationTimestamp(metav1.NewTime(epoch.Add(time.Duration(i) * time.Second))).Obj()
}

func keyOf(job string) model.JobKey {
	return model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: job}
}

// submit adds a gang, with its minResources, as Volcano's controllers do: one that claims nothing is let in at once, if it is looked at
// before its pods are there. Age makes it older than those with a smaller one.
func (d *fixture) submit(job string, size, age int, cpu string) {
	d.state.UpsertGroup(keyOf(job), &model.Group{
		UID: types.UID(job), Queue: model.DefaultQueue, MinMember: size, MinResources: sumOf(size, cpu),
		Created: epoch.Add(-time.Duration(age) * time.Minute),
	})
	for i := range size {
		d.state.UpsertPod(memberOf(job, i, cpu))
	}
}

// plan lets the lead plan: every placeable task of the job on node-0.
func (d *fixture) plan(lead types.UID) {
	d.t.Helper()
	entry := d.Enter(lead)
	if entry.Verdict != dispatch.Lead {
		d.t.Fatalf("pod %s is not asked to lead", lead)
	}
	var members []types.UID
	for _, task := range entry.Job.Tasks {
		if task.Placeable() {
			members = append(members, task.UID)
		}
	}
	d.planFor(entry.Job, members)
}

// planFor plans members of a job, of which the first that waits leads, for node-0.
func (d *fixture) planFor(job *model.Job, members []types.UID) {
	d.t.Helper()
	var pods []*corev1.Pod
	var nodes []string
	lead := gang.TaskOrder(noOpinion).Lead(job).UID
	for _, task := range job.Tasks {
		if slices.Contains(members, task.UID) {
			pods, nodes = append(pods, task.Pod), append(nodes, "node-0")
		}
	}
	if node := d.Planned(lead, pods, nodes, false); node != "node-0" {
		d.t.Fatalf("the lead goes to %q, want node-0", node)
	}
}

// unreserve takes a member's node back, in the order of the plugin that does it.
func (d *fixture) unreserve(job string, uid types.UID) {
	d.Unreserved(uid, keyOf(job))
	d.state.Forget(uid)
}

// pods are those of all tasks of a job.
func pods(job *model.Job) []*corev1.Pod {
	var list []*corev1.Pod
	for _, task := range job.Tasks {
		list = append(list, task.Pod)
	}
	return list
}

// refuse lets the lead plan in vain.
func (d *fixture) refuse(lead types.UID, r dispatch.Refusal) {
	d.t.Helper()
	if entry := d.Enter(lead); entry.Verdict != dispatch.Lead {
		d.t.Fatalf("pod %s is not asked to lead", lead)
	}
	d.Refused(lead, r)
}

// place reserves a member.
func (d *fixture) place(uid types.UID) {
	d.state.Assume(uid, "node-0")
	d.Reserved(uid)
}

var noRoom = model.Reason{Kind: model.NotEnoughResources, Subject: "cpu", Message: "insufficient cpu", FromNodes: true}
