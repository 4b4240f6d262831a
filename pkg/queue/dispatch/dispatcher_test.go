// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/metrics"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// desk is a dispatcher, and the scheduling queue and status writer it talks to. Tests run in a synctest bubble, so that
// time passes only when everything waits.
type desk struct {
	t     *testing.T
	state *model.State
	*dispatch.Dispatcher

	mu        sync.Mutex // guards the rest
	activated []types.UID
	reasons   map[model.JobKey][]model.Reason
	settled   map[types.UID]bool
}

// plain are the arguments of a scheduler without queues: gangs by priority.
func plain() *config.BatchQueueArgs {
	return &config.BatchQueueArgs{
		Actions: []config.Action{config.Allocate, config.Backfill},
		Tiers:   []config.Tier{{Plugins: []config.TierPlugin{{Name: config.PluginPriority}, {Name: config.PluginGang}}}},
	}
}

func policies(t *testing.T, args *config.BatchQueueArgs) *policy.Set {
	set, err := policy.Compile(args)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// patience is how long jobs may be without pods.
const patience = 10 * time.Minute

func noOpinion(_, _ *model.Task) int { return 0 }

func newDesk(t *testing.T) *desk { return newDeskWith(t, plain()) }

func newDeskWith(t *testing.T, args *config.BatchQueueArgs) *desk {
	d := &desk{t: t, state: model.NewState(), reasons: map[model.JobKey][]model.Reason{}, settled: map[types.UID]bool{}}
	d.state.AddScheduler("volcano")
	d.Dispatcher = dispatch.New(dispatch.Config{
		State:    d.state,
		Policies: policies(t, args), AdmissionTimeout: patience,
		Evicts:   slices.ContainsFunc(args.Actions, config.Action.Evicts),
		MayFit:   gang.MayFit,
		Lead:     gang.TaskOrder(noOpinion).Lead,
		Fault:    func(*model.Queue, model.Reason) {},
		Recorder: metrics.Recorder{},
		Activate: func(pods []*corev1.Pod) {
			d.mu.Lock()
			defer d.mu.Unlock()
			for _, p := range pods {
				d.activated = append(d.activated, p.UID)
			}
		},
		Settle: func(members []types.UID, bind bool) {
			d.mu.Lock()
			defer d.mu.Unlock()
			for _, uid := range members {
				d.settled[uid] = bind
			}
		},
		Report: func(key model.JobKey, reason model.Reason) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.reasons[key] = append(d.reasons[key], reason)
		},
		Clock: clock.RealClock{},
	})
	d.state.Observe(d.Notify)
	d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue})
	d.addNode("node-0", "8")
	go d.Run(t.Context())
	return d
}

// take waits until everything is quiet and returns the pods activated since the last call, sorted.
func (d *desk) take() []types.UID {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	taken := slices.Sorted(slices.Values(d.activated))
	d.activated = nil
	return taken
}

func (d *desk) want(uids ...types.UID) {
	d.t.Helper()
	if got := d.take(); !slices.Equal(got, uids) {
		d.t.Fatalf("activated %v, want %v", got, uids)
	}
}

// last is the last reason reported for a PodGroup.
func (d *desk) last(job string) model.Reason { return d.lastOf(keyOf(job)) }

// lastOf is the last reason reported for a job.
func (d *desk) lastOf(job model.JobKey) model.Reason {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	if told := d.reasons[job]; len(told) > 0 {
		return told[len(told)-1]
	}
	return model.Reason{}
}

func (d *desk) addNode(name, cpu string) {
	d.state.UpsertNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("110"),
	}}})
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func memberOf(job string, i int, cpu string) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", job, i)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID(name), CreationTimestamp: metav1.NewTime(epoch.Add(time.Duration(i) * time.Second)),
			Annotations: map[string]string{model.GroupNameAnnotation: job},
		},
		Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
}

func keyOf(job string) model.JobKey {
	return model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: job}
}

// submit adds a gang; age makes it older than those with a smaller one.
func (d *desk) submit(job string, size, age int, cpu string) {
	d.state.UpsertGroup(keyOf(job), &model.Group{
		UID: types.UID(job), Queue: model.DefaultQueue, MinMember: size, Created: epoch.Add(-time.Duration(age) * time.Minute),
	})
	for i := range size {
		d.state.UpsertPod(memberOf(job, i, cpu))
	}
}

// plan lets the lead plan: every placeable task of the job on node-0.
func (d *desk) plan(lead types.UID) {
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
func (d *desk) planFor(job *model.Job, members []types.UID) {
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

// place reserves a member.
func (d *desk) place(uid types.UID) {
	d.state.Assume(uid, "node-0")
	d.Reserved(uid)
}

var noRoom = model.Reason{Kind: model.NotEnoughResources, Subject: "cpu", Message: "insufficient cpu", FromNodes: true}

func TestOneTurnAtATimeInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.submit("old", 2, 2, "1")
		d.submit("new", 2, 1, "1")
		d.want("old-0")
		if d.Gate("old-1") || d.Gate("new-0") {
			t.Error("the gate is open for a pod that does not lead")
		}
		d.plan("old-0")
		d.want("old-1")
		if !d.Gate("old-1") || !d.Urgent("old-1") {
			t.Error("the gate is closed for a planned member")
		}
		d.place("old-0")
		d.want()
		d.place("old-1")
		// The next turn begins with the reservation of the last member, not with an event or a tick.
		d.want("new-0")
	})
}

func TestARefusedJobIsParkedUntilSomethingHelps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.submit("big", 3, 2, "4")
		d.submit("small", 1, 1, "1")
		d.want("big-0")
		d.Enter("big-0")
		d.Refused("big-0", noRoom, time.Time{})
		d.want("small-0")
		if got := d.last("big"); got != noRoom {
			t.Errorf("reported %v, want %v", got, noRoom)
		}
		d.plan("small-0")
		d.place("small-0")
		d.want()
		// 7 cores are idle of the 12 the gang needs: a second node of 4 is not worth a plan.
		d.addNode("node-1", "4")
		d.want()
		d.addNode("node-2", "4")
		d.want("big-0")
	})
}

func TestEqualJobsAreParkedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		for i := range 5 {
			d.submit(fmt.Sprintf("job%d", i), 2, 9-i, "6")
		}
		d.want("job0-0")
		d.Enter("job0-0")
		d.Refused("job0-0", noRoom, time.Time{})
		// One plan answered for all five.
		d.want()
		for i := range 5 {
			if got := d.last(fmt.Sprintf("job%d", i)); got != noRoom {
				t.Errorf("job%d was told %v, want %v", i, got, noRoom)
			}
		}
	})
}

func TestEventsDuringATurnAreNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.submit("big", 3, 1, "4")
		d.want("big-0")
		d.Enter("big-0")
		// The node comes while the plan is made without it.
		d.addNode("node-1", "8")
		d.Refused("big-0", noRoom, time.Time{})
		d.want("big-0")
	})
}

func TestARefusalRightAfterAnEventIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.submit("big", 3, 1, "4")
		d.want("big-0")
		d.Enter("big-0")
		d.Refused("big-0", noRoom, time.Time{})
		d.want()
		d.addNode("node-1", "8")
		d.want("big-0")
		d.Enter("big-0")
		// The scheduler's cache may not have had the node yet: two more attempts, then silence.
		d.Refused("big-0", noRoom, time.Time{})
		time.Sleep(150 * time.Millisecond)
		d.want("big-0")
		d.Enter("big-0")
		d.Refused("big-0", noRoom, time.Time{})
		d.want()
		time.Sleep(1100 * time.Millisecond)
		d.want("big-0")
		d.Enter("big-0")
		d.Refused("big-0", noRoom, time.Time{})
		time.Sleep(time.Hour)
		d.want()
	})
}

func TestAMemberDeletedInTheTurnDoesNotHoldIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.submit("a", 3, 2, "1")
		d.submit("b", 1, 1, "1")
		d.want("a-0")
		d.plan("a-0")
		d.want("a-1", "a-2")
		d.place("a-0")
		d.place("a-1")
		d.state.LeavePod("a-2")
		d.want("b-0")
	})
}

func TestALeadDeletedBeforeItsCycleEndsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.submit("a", 1, 2, "1")
		d.submit("b", 1, 1, "1")
		d.want("a-0")
		d.state.LeavePod("a-0")
		d.want("b-0")
	})
}

func TestAJobWhoseNodeWasLostIsPlannedAgainFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.submit("older", 1, 9, "8")
		d.want("older-0")
		d.Enter("older-0")
		d.Refused("older-0", noRoom, time.Time{})
		d.submit("b", 1, 5, "1")
		d.submit("a", 2, 2, "1")
		d.want("b-0")
		d.plan("b-0")
		d.place("b-0")
		d.want("a-0")
		d.plan("a-0")
		d.want("a-1")
		d.place("a-0")
		d.submit("c", 1, 5, "1")
		d.Lost("a-1", keyOf("a"))
		// One of two members holds its node: the job comes before the older one.
		d.want("a-1")
	})
}

func TestErrorsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.submit("a", 1, 1, "1")
		// The first failure is followed by another attempt at once.
		for _, pause := range []time.Duration{0, 0, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond} {
			if pause > 0 {
				time.Sleep(pause - time.Millisecond)
				d.want()
				time.Sleep(2 * time.Millisecond)
			}
			d.want("a-0")
			d.Enter("a-0")
			d.Errored("a-0", errors.New("a plugin failed"))
		}
		if got := d.last("a"); got.Kind != model.SchedulerError {
			t.Errorf("reported %v, want an error", got)
		}
	})
}

func TestATurnThatStandsStillIsNudgedAndGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.submit("a", 1, 2, "1")
		d.submit("b", 1, 1, "2")
		d.want("a-0")
		time.Sleep(2 * time.Second)
		if got := d.take(); !slices.Contains(got, "a-0") {
			t.Errorf("activated %v after standing still, want a-0 again", got)
		}
		time.Sleep(time.Minute)
		if got := d.take(); !slices.Contains(got, "b-0") && !slices.Contains(got, "a-0") {
			t.Errorf("activated %v after giving up, want another turn", got)
		}
	})
}

func TestMembersOfAFragileTurnBindTogetherOrNotAtAll(t *testing.T) {
	for name, tc := range map[string]struct {
		last func(*desk)
		want map[types.UID]bool
	}{
		"all bind when the last one is reserved":      {func(d *desk) { d.place("a-1") }, map[types.UID]bool{"a-0": true, "a-1": true}},
		"none binds when one cannot be reserved":      {func(d *desk) { d.Lost("a-1", keyOf("a")) }, map[types.UID]bool{"a-0": false, "a-1": false}},
		"none binds when one is deleted meanwhile":    {func(d *desk) { d.state.LeavePod("a-1") }, map[types.UID]bool{"a-0": false, "a-1": false}},
		"none binds when the turn comes to a stop":    {func(*desk) { time.Sleep(time.Minute) }, map[types.UID]bool{"a-0": false, "a-1": false}},
		"nobody is told while a member is on its way": {func(*desk) {}, map[types.UID]bool{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t)
				d.submit("a", 2, 1, "1")
				d.want("a-0")
				job := d.Enter("a-0").Job
				d.Planned("a-0", []*corev1.Pod{job.Tasks[0].Pod, job.Tasks[1].Pod}, []string{"node-0", "node-0"}, true)
				d.state.Assume("a-0", "node-0")
				if !d.Reserved("a-0") {
					t.Error("the first member may bind, want it to wait")
				}
				tc.last(d)
				d.take()
				if diff := cmp.Diff(tc.want, d.settled); diff != "" {
					t.Errorf("settled (-want,+got)\n%s", diff)
				}
			})
		})
	}
}

func TestBlockedJobsSayWhyAndLetOthersPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.state.UpsertGroup(keyOf("lost"), &model.Group{Queue: "nowhere", MinMember: 1, Created: epoch.Add(-time.Hour)})
		d.state.UpsertPod(memberOf("lost", 0, "1"))
		d.state.UpsertPod(memberOf("orphan", 0, "1"))
		d.submit("good", 1, 1, "1")
		d.want("good-0")
		for job, kind := range map[string]model.ReasonKind{"lost": model.QueueNotFound, "orphan": model.PodGroupNotFound} {
			if got := d.last(job); got.Kind != kind {
				t.Errorf("job %s was told %v, want %s", job, got, kind)
			}
		}
		d.plan("good-0")
		d.place("good-0")
		d.state.UpsertQueue(&model.Queue{Name: "nowhere"})
		d.want("lost-0")
	})
}
