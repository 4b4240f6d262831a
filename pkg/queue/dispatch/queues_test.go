// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// args are the arguments of a scheduler with the given actions and plugins, which are all in one tier.
func args(actions string, plugins ...config.TierPlugin) *config.BatchQueueArgs {
	a := &config.BatchQueueArgs{Tiers: []config.Tier{{Plugins: plugins}}}
	for action := range strings.FieldsSeq(actions) {
		a.Actions = append(a.Actions, config.Action(action))
	}
	return a
}

var (
	byPriority   = config.TierPlugin{Name: config.PluginPriority}
	inGangs      = config.TierPlugin{Name: config.PluginGang}
	byProportion = config.TierPlugin{Name: config.PluginProportion}
	byCapacity   = config.TierPlugin{Name: config.PluginCapacity}
	byOvercommit = config.TierPlugin{Name: config.PluginOvercommit}
)

func bySLA(limit string) config.TierPlugin {
	value, err := json.Marshal(limit)
	if err != nil {
		panic(err)
	}
	return config.TierPlugin{Name: config.PluginSLA, Arguments: map[string]runtime.RawExtension{"sla-waiting-time": {Raw: value}}}
}

func cores(n int64) resource.Vector { return resource.Vector{{Name: "cpu", Value: 1000 * n}} }

// sumOf is the sum of the requests of equal pods.
func sumOf(pods int, cpu string) resource.Vector {
	each := quantity.MustParse(cpu)
	return resource.Vector{{Name: "cpu", Value: int64(pods) * each.MilliValue()}}
}

// group adds a PodGroup without pods, which asks for so many cores.
func (d *fixture) group(job, queue string, size, age int, asks resource.Vector) {
	d.state.UpsertGroup(keyOf(job), &model.Group{
		UID: types.UID(job), Queue: queue, MinMember: size, MinResources: asks, Phase: model.PhasePending,
		Created: time.Now().Add(-time.Duration(age) * time.Minute),
	})
}

// pods adds the pods of a group.
func (d *fixture) pods(job string, size int, cpu string) {
	for i := range size {
		d.state.UpsertPod(memberOf(job, i, cpu))
	}
}

// run gives out turns until none comes: what fits the idle cores is placed, what does not is refused. It returns the
// leads of turns that placed something, in order.
func (d *fixture) run() []types.UID {
	d.t.Helper()
	var leads []types.UID
	for {
		taken := d.take()
		if len(taken) == 0 {
			return leads
		}
		entry := d.Enter(taken[0])
		if !gang.MayFit(entry.Job, d.state.Totals()) {
			d.Refused(taken[0], dispatch.Refusal{Reason: noRoom})
			continue
		}
		leads = append(leads, taken[0])
		var members []types.UID
		need := entry.Job.Requirement().Tasks
		for _, task := range entry.Job.Tasks {
			if task.Placeable() && len(members) < need {
				members = append(members, task.UID)
			}
		}
		d.planFor(entry.Job, members)
		d.take()
		for _, uid := range members {
			d.place(uid)
		}
	}
}

func (d *fixture) admitted(jobs ...string) {
	d.t.Helper()
	synctest.Wait()
	want := map[string]bool{}
	for _, job := range jobs {
		want[job] = true
	}
	for job := range d.state.Snapshot().Jobs {
		if job.Admitted != want[job.Key.Name] {
			d.t.Errorf("job %s: admitted is %t, want %t", job.Key.Name, job.Admitted, want[job.Key.Name])
		}
	}
}

func TestJobsAreLetInAsThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 8 cores, of which 8 may be promised: proportion allows no more.
		d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, byProportion, byOvercommit))
		d.group("first", "default", 2, 9, cores(5))
		d.group("large", "default", 2, 8, cores(4))
		d.group("small", "default", 2, 7, cores(3))
		// The large one does not hold up the small one behind it.
		d.admitted("first", "small")
		if got := d.last("large"); got.Kind != model.NotAdmitted || !strings.Contains(got.Message, "queue resource quota insufficient: insufficient cpu") {
			t.Errorf("the large one was told %v", got)
		}
		d.want()
		d.pods("first", 2, "2500m")
		d.run()
		d.state.DeleteGroup(keyOf("small"))
		d.admitted("first")
		d.addNode("node-1", "8")
		d.admitted("first", "large")
	})
}

// TestWhoIsLetInMayComeFirst: a job that is let in after a turn may have the next one, as it may in the session of Volcano in which it is
// enqueued. Others that were let in before may not.
func TestWhoIsLetInMayComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStandbyWith(t, args("enqueue allocate backfill", byPriority, inGangs, byOvercommit))
		d.submit("first", 1, 9, "1")
		d.submit("second", 1, 8, "1")
		// Both are there before the first turn.
		go d.Run(t.Context())
		d.want("first-0")
		d.submit("high", 1, 7, "1")
		d.important("high")
		d.admitted("first", "second")
		d.plan("first-0")
		d.place("first-0")
		d.want("high-0")
		d.admitted("first", "second", "high")
	})
}

// TestAJobIsLetInForWhatItCouldEvict: as soon as others hold it, whatever else happens.
func TestAJobIsLetInForWhatItCouldEvict(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("enqueue allocate preempt", byPriority, inGangs, byOvercommit))
		d.group("low", "default", 2, 9, cores(8))
		d.admitted("low")
		d.group("high", "default", 2, 8, cores(8))
		d.important("high")
		d.pods("low", 2, "4")
		d.run()
		d.admitted("low")
		for i := range 2 {
			pod := memberOf("low", i, "4")
			pod.Spec.NodeName = "node-0"
			d.state.UpsertPod(pod)
		}
		d.admitted("low", "high")
	})
}

func TestAJobThatSaysNothingOfItsNeedsIsJudgedByItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, byOvercommit))
		// A PodGroup that is there before its pods is let in, so that they are created.
		d.pods("huge", 3, "4")
		d.group("huge", "default", 3, 2, nil)
		d.pods("fits", 2, "4")
		d.group("fits", "default", 2, 1, nil)
		d.want("fits-0")
		if got := d.last("huge"); got.Kind != model.NotAdmitted || !got.FromNodes {
			t.Errorf("the huge one was told %+v, want that the cluster is too small, so that it may grow", got)
		}
	})
}

func TestWhatFitsOnNoNodeIsPromisedNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// 16 cores on two nodes, of which 19.2 may be promised.
		d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, byOvercommit))
		d.addNode("node-1", "8")
		d.pods("broad", 1, "12")
		d.group("broad", "default", 1, 2, nil)
		if leads := d.run(); len(leads) > 0 {
			t.Fatalf("%v started, which no node is large enough for", leads)
		}
		d.pods("later", 1, "8")
		d.group("later", "default", 1, 1, nil)
		d.admitted("broad", "later")
		if leads := d.run(); !slices.Equal(leads, []types.UID{"later-0"}) {
			t.Errorf("%v started, want the one that fits", leads)
		}
		// A node that is large enough makes the promise good, and others wait for it again.
		d.addNode("large", "12")
		d.pods("late", 1, "20")
		d.group("late", "default", 1, 0, nil)
		d.admitted("broad", "later")
		if got := d.take(); !slices.Equal(got, []types.UID{"broad-0"}) {
			t.Errorf("%v got a turn, want the one for which there is a node now", got)
		}
	})
}

func TestAJobThatWaitedLongEnoughIsLetIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tiers := args("enqueue allocate backfill", bySLA("10m"))
		tiers.Tiers = append(tiers.Tiers, config.Tier{Plugins: []config.TierPlugin{inGangs, byOvercommit}})
		d := newFixtureWith(t, tiers)
		d.group("huge", "default", 2, 0, cores(100))
		time.Sleep(10*time.Minute - time.Second)
		d.admitted()
		time.Sleep(2 * time.Second)
		d.admitted("huge")
	})
}

func TestAJobWithoutPodsGivesItsAdmissionBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, byOvercommit))
		d.group("idle", "default", 2, 2, cores(8))
		d.group("next", "default", 2, 1, cores(4))
		d.admitted("idle")
		time.Sleep(patience - time.Second)
		d.admitted("idle")
		time.Sleep(2 * time.Second)
		d.admitted("next")
		if got := d.last("idle"); !strings.Contains(got.Message, "gave its admission back") {
			t.Errorf("the job that gave its admission back was told %v", got)
		}
		d.pods("next", 2, "1")
		d.want("next-0")
		// It may ask again, once others had their chance.
		d.state.DeleteGroup(keyOf("next"))
		d.state.DeletePod("next-0")
		d.state.DeletePod("next-1")
		time.Sleep(2 * time.Minute)
		d.admitted("idle")
	})
}

func TestACompletedJobWhosePodsAreGoneClaimsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, byProportion, byOvercommit))
		d.state.UpsertGroup(keyOf("over"), &model.Group{
			UID: "over", Queue: "default", MinMember: 2, MinResources: cores(8), Phase: model.PhaseCompleted, Created: time.Now(),
		})
		d.group("next", "default", 2, 0, cores(8))
		d.admitted("over", "next")
		// It is not taken for one whose pods never came.
		time.Sleep(2 * patience)
		if got := d.last("over"); got != (model.Reason{}) {
			t.Errorf("the job that is over was told %v", got)
		}
	})
}

func TestWithoutEnqueueEveryoneIsLetIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("allocate backfill", byPriority, inGangs, byProportion, byOvercommit))
		d.group("huge", "default", 2, 2, cores(100))
		d.group("elsewhere", "nowhere", 2, 1, cores(1))
		d.admitted("huge")
		if got := d.last("elsewhere"); got.Kind != model.QueueNotFound {
			t.Errorf("the job of a queue that does not exist was told %v", got)
		}
	})
}

func TestQueuesTakeTurnsByWhatTheyAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("allocate backfill", byPriority, inGangs, byProportion))
		d.state.UpsertQueue(&model.Queue{Name: "one", Weight: 1})
		d.state.UpsertQueue(&model.Queue{Name: "three", Weight: 3})
		for _, queue := range []string{"one", "three"} {
			for i := range 8 {
				p := memberOf(queue, i, "1")
				p.Annotations = map[string]string{model.QueueAnnotation: queue}
				d.state.UpsertPod(p)
			}
		}
		got := d.run()
		counts := map[string]int{}
		for _, lead := range got {
			counts[strings.Split(string(lead), "-")[0]]++
		}
		if counts["one"] != 2 || counts["three"] != 6 {
			t.Errorf("turns went to %v, want 2 of one and 6 of three", got)
		}
		// Its queue holds its due, but it is more nodes that would help.
		if waits := d.lastOf(model.JobKey{Namespace: "ns", Name: "one-7"}); waits != noRoom {
			t.Errorf("a job of a queue that holds its due was told %v", waits)
		}
		// What one queue gives up, it gets back.
		d.state.DeletePod(got[0])
		again := d.run()
		if len(again) != 1 || strings.Split(string(again[0]), "-")[0] != strings.Split(string(got[0]), "-")[0] {
			t.Errorf("after %s was gone the turns went to %v", got[0], again)
		}
	})
}

func TestAGangLargerThanItsQueuesDueStartsOnRoomThatNobodyElseCanUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("allocate backfill", byPriority, inGangs, byProportion))
		d.state.UpsertQueue(&model.Queue{Name: "a", Weight: 1})
		d.state.UpsertQueue(&model.Queue{Name: "b", Weight: 1})
		// Each needs 6 of 8 cores and is due 4.
		d.group("of-a", "a", 6, 2, nil)
		d.pods("of-a", 6, "1")
		d.group("of-b", "b", 6, 1, nil)
		d.pods("of-b", 6, "1")
		if got := d.run(); len(got) != 1 || got[0] != "of-a-0" {
			t.Errorf("turns went to %v, want one for the older gang", got)
		}
		if got := d.last("of-b"); got != noRoom {
			t.Errorf("the other gang was told %v, want that there is no room", got)
		}
	})
}

func TestALimitOfOneQueueHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("allocate backfill", byPriority, inGangs, byCapacity))
		d.state.UpsertQueue(&model.Queue{Name: "tight", Priority: 9, Capability: cores(1)})
		d.group("too-much", "tight", 2, 9, nil)
		d.pods("too-much", 2, "1")
		d.group("fits", "tight", 1, 8, nil)
		d.pods("fits", 1, "1")
		d.submit("other", 1, 1, "1")
		if got := d.run(); len(got) != 2 || got[0] != "fits-0" || got[1] != "other-0" {
			t.Errorf("turns went to %v, want the job that fits the limit, then that of the other queue", got)
		}
		if got := d.last("too-much"); got.Kind != model.QueueFull || !strings.Contains(got.Message, `queue "tight" has no room: cpu`) {
			t.Errorf("the job beyond the limit was told %v", got)
		}
		// The limit is raised.
		d.state.UpsertQueue(&model.Queue{Name: "tight", Priority: 9, Capability: cores(3)})
		if got := d.run(); len(got) != 1 || got[0] != "too-much-0" {
			t.Errorf("after the limit was raised turns went to %v", got)
		}
	})
}

func TestALimitAboveTheQueueIsToldEvenIfTheNodesAreFullToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		byTree := config.TierPlugin{Name: config.PluginCapacity, Switches: map[config.Switch]bool{config.EnableHierarchy: true}}
		d := newFixtureWith(t, args("allocate backfill", byPriority, inGangs, byTree))
		d.state.UpsertQueue(&model.Queue{Name: "root"})
		d.state.UpsertQueue(&model.Queue{Name: "eng", Capability: cores(8)})
		d.state.UpsertQueue(&model.Queue{Name: "dev", Parent: "eng"})
		d.state.UpsertQueue(&model.Queue{Name: "prod", Parent: "eng"})
		d.group("holds", "dev", 8, 2, nil)
		d.pods("holds", 8, "1")
		d.run()
		d.group("waits", "prod", 1, 1, nil)
		d.pods("waits", 1, "1")
		d.run()
		// More nodes would not help it: an autoscaler must not be called.
		if got := d.last("waits"); got.Kind != model.QueueFull || got.FromNodes {
			t.Errorf("it was told %+v, want that queue eng has no room", got)
		}
	})
}

func TestADeletedQueueStopsItsJobsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("enqueue allocate backfill", byPriority, inGangs, byProportion))
		d.state.UpsertQueue(&model.Queue{Name: "gone", Weight: 1, Created: epoch})
		d.group("orphan", "gone", 9, 9, cores(9))
		d.state.DeleteQueue("gone")
		d.group("late", "gone", 1, 8, cores(1))
		d.submit("well", 1, 1, "1")
		if got := d.run(); len(got) != 1 || got[0] != "well-0" {
			t.Errorf("turns went to %v, want one for the job of the other queue", got)
		}
		for _, job := range []string{"orphan", "late"} {
			if got := d.last(job); got.Kind != model.QueueNotFound {
				t.Errorf("%s was told %v", job, got)
			}
		}
		d.state.UpsertQueue(&model.Queue{Name: "gone", Weight: 1, Created: epoch})
		d.admitted("late", "well")
	})
}

func TestPodsThatAskForNothingNeedBackfill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("allocate", byPriority, inGangs))
		p := memberOf("nothing", 0, "0")
		p.ObjectMeta = metav1.ObjectMeta{Namespace: "ns", Name: "nothing", UID: "nothing"}
		d.state.UpsertPod(p)
		d.want()
		if got := d.lastOf(model.JobKey{Namespace: "ns", Name: "nothing"}); got.Kind != model.BackfillOff {
			t.Errorf("it was told %v", got)
		}
	})
}
