// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/gang/room"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	amounts "github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// queueOrders are one plugin for each order of queues. All but hdrf go by accounts alone.
var queueOrders = map[string]config.TierPlugin{
	"age":        {Name: config.PluginConformance},
	"proportion": {Name: config.PluginProportion},
	"capacity":   {Name: config.PluginCapacity},
	"tree":       {Name: config.PluginCapacity, Switches: map[config.Switch]bool{config.EnableHierarchy: true}},
	"recent": {
		Name: config.PluginCapacity, Switches: map[config.Switch]bool{config.EnableHierarchy: true},
		Arguments: map[string]runtime.RawExtension{arguments.UsageHalfLife: {Raw: []byte(`"1m"`)}},
	},
	"hdrf": {Name: config.PluginDRF, Switches: map[config.Switch]bool{config.EnableHierarchy: true}},
}

// The queues of the tests are so many that what changes in a step concerns some of the matches only.
const rankedQueues = 30

// ranked is a dispatcher that is stepped, to which anything happens.
type ranked struct {
	silent
	t      *rapid.T
	d      *Dispatcher
	state  *model.State
	clock  *clocktesting.FakeClock
	serial int
	// pods are those that there are, and gangs those that have a PodGroup. Parents may have queues below them.
	pods    map[types.UID]*corev1.Pod
	gangs   []string
	parents []string
	// sizes are those of gangs, 0 for a single pod. Where all gangs have one member none is ever partial, so that the ranking goes on.
	sizes []int
	met   map[string]int
}

func newRanked(t *rapid.T, plugin config.TierPlugin, met map[string]int) *ranked {
	actions := []config.Action{config.Allocate, config.Backfill}
	if rapid.Bool().Draw(t, "by vote") {
		actions = append(actions, config.Enqueue)
	}
	policies, err := policy.Compile(&config.BatchQueueArgs{Actions: actions, Tiers: []config.Tier{{Plugins: []config.TierPlugin{
		{Name: config.PluginPriority}, {Name: config.PluginGang}, {Name: config.PluginOvercommit}, plugin,
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	r := &ranked{
		t: t, state: model.NewState(), clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)), pods: map[types.UID]*corev1.Pod{}, met: met,
		parents: []string{"", model.RootQueue}, sizes: rapid.SampledFrom([][]int{{0, 1}, {0, 1}, {0, 1}, {0, 1, 2, 2}}).Draw(t, "sizes"),
	}
	r.state.AddScheduler("volcano")
	r.d = New(Config{
		State: r.state, Rules: Rules{Policies: policies, AdmissionTimeout: time.Hour, StalledAfter: 10 * time.Second, HalfTimeout: time.Hour, BrokenTimeout: time.Hour},
		MayFit: gang.MayFit, NeverFits: gang.NeverFits, Checks: func(string) room.Checks { return room.Checks{Resources: true} }, Clock: r.clock, Recorder: r,
		Lead:     gang.TaskOrder(func(_, _ *model.Task) int { return 0 }).Lead,
		Activate: func([]*corev1.Pod) []Standing { return nil }, Settle: func([]types.UID, bool) {},
		Report: func(model.JobKey, model.Reason, uint64) {}, Fault: func(*model.Queue, model.Reason) {},
		Release: func(Trouble) {}, Abandon: func(model.JobKey) {}, Tell: func(Trouble) {},
	})
	r.d.running = true
	r.d.Hold()
	r.state.Observe(r.d.Notify)
	r.node("node-0", 24)
	for i := range rankedQueues {
		r.queue(fmt.Sprintf("q%d", i))
	}
	for range rapid.IntRange(20, 60).Draw(t, "jobs") {
		r.submit()
	}
	return r
}

func (r *ranked) node(name string, cores int64) {
	r.state.UpsertNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(cores, resource.DecimalSI), corev1.ResourcePods: resource.MustParse("110"),
	}}})
}

// queue creates a queue or changes it. The first ones may have others below them.
func (r *ranked) queue(name string) {
	q := &model.Queue{
		Name: name, Weight: rapid.Int32Range(1, 3).Draw(r.t, "weight"), Priority: rapid.SampledFrom([]int32{0, 0, 0, 0, 1}).Draw(r.t, "priority"),
		Parent: rapid.SampledFrom(r.parents).Draw(r.t, "parent"), Created: time.Unix(rapid.Int64Range(0, 3).Draw(r.t, "age"), 0),
	}
	if !slices.Contains(r.parents, name) && len(r.parents) < 8 {
		r.parents = append(r.parents, name)
	}
	cpu := rapid.SampledFrom([]int64{0, 1000, 2000, 2000}).Draw(r.t, "deserved")
	if slices.Contains(r.parents, name) {
		cpu = 64_000
	}
	if cpu > 0 {
		q.Deserved = amounts.Vector{{Name: corev1.ResourceCPU, Value: cpu}}
	}
	if depth := rapid.IntRange(0, 2).Draw(r.t, "depth"); depth > 0 {
		q.Hierarchy, q.HierarchyWeights = []string{"root", "a", name}[:depth+1], []float64{1, 1, 1}[:depth+1]
	}
	r.state.UpsertQueue(q)
}

func (r *ranked) someQueue() string {
	return fmt.Sprintf("q%d", rapid.IntRange(0, rankedQueues).Draw(r.t, "queue"))
}

// submit creates a job of one pod, or a gang, in a queue that may not exist.
func (r *ranked) submit() {
	r.serial++
	name, queue := fmt.Sprintf("job-%d", r.serial), r.someQueue()
	size := rapid.SampledFrom(r.sizes).Draw(r.t, "size")
	if size > 0 {
		r.gangs = append(r.gangs, name)
		r.state.UpsertGroup(gangKey(name), &model.Group{
			UID: types.UID(name), Queue: queue, MinMember: size, Created: time.Unix(int64(r.serial), 0), Phase: model.PhasePending,
			MinResources: amounts.Vector{{Name: corev1.ResourceCPU, Value: int64(1000 * size)}},
		})
	}
	for i := range max(1, size) {
		r.create(name, queue, i, size > 0)
	}
}

func gangKey(name string) model.JobKey {
	return model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: name}
}

func (r *ranked) create(job, queue string, i int, grouped bool) {
	r.serial++
	name := fmt.Sprintf("%s-%d", job, i)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(fmt.Sprintf("%s-%d", name, r.serial)), CreationTimestamp: metav1.NewTime(time.Unix(int64(r.serial), 0)),
			Annotations: map[string]string{model.QueueAnnotation: queue},
		},
		Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: *resource.NewMilliQuantity(rapid.SampledFrom([]int64{500, 1000}).Draw(r.t, "cpu"), resource.DecimalSI),
		}}}}},
	}
	if grouped {
		p.Annotations[model.GroupNameAnnotation] = job
	}
	r.pods[p.UID] = p
	r.state.UpsertPod(p)
}

// somePod is one of the pods that are there, in an order that is the same each time; nil when there is none.
func (r *ranked) somePod() *corev1.Pod {
	if len(r.pods) == 0 {
		return nil
	}
	return r.pods[rapid.SampledFrom(slices.Sorted(maps.Keys(r.pods))).Draw(r.t, "pod")]
}

// lead begins the cycle of the lead, if a turn is on, and has it end in some way.
func (r *ranked) lead(ends func(lead types.UID, entry Entry)) {
	if r.d.turn == nil || r.d.turn.lead == nil {
		return
	}
	lead := r.d.turn.lead.UID
	if !r.d.Begins(lead) {
		return
	}
	if entry := r.d.Enter(lead); entry.Verdict == Lead {
		ends(lead, entry)
	}
	r.d.Between()
}

// place has so many members placed at most, and the next one lost, if there is one.
func (r *ranked) place(lead types.UID, entry Entry, most int) {
	var pods []*corev1.Pod
	var nodes []string
	for _, t := range entry.Job.Tasks {
		if t.Placeable() {
			pods, nodes = append(pods, t.Pod), append(nodes, "node-0")
		}
	}
	r.d.Planned(lead, pods, nodes, false)
	for i, p := range pods {
		if i == most {
			r.d.Lost(p.UID, entry.Job.Key)
			return
		}
		r.state.Assume(p.UID, "node-0")
		r.d.Reserved(p.UID)
	}
}

// rankedEvents are what happens.
func (r *ranked) events() map[string]func(*rapid.T) {
	do := func(event func()) func(*rapid.T) {
		return func(t *rapid.T) { // The events of a step draw from it.
			r.t = t
			event()
		}
	}
	place := do(func() { r.lead(func(lead types.UID, e Entry) { r.place(lead, e, len(e.Job.Tasks)) }) })
	step := do(r.d.Step)
	return map[string]func(*rapid.T){
		"step": step, "step too": step, "another step": step, "place": place, "place too": place,
		"place half": do(func() { r.lead(func(lead types.UID, e Entry) { r.place(lead, e, 1) }) }),
		"refuse": do(func() {
			r.lead(func(lead types.UID, _ Entry) {
				r.clock.Step(time.Duration(rapid.IntRange(0, 60).Draw(r.t, "ms")) * time.Millisecond)
				r.d.Refused(lead, Refusal{Reason: machineNoRoom})
			})
		}),
		"fail": do(func() { r.lead(func(lead types.UID, _ Entry) { r.d.Errored(lead, errMachine) }) }),
		"wait": do(func() {
			r.clock.Step(rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 11 * time.Second}).Draw(r.t, "wait"))
		}),
		"spend":  do(func() { r.d.selection.allowance.charge(r.clock.Now(), time.Second) }),
		"room":   do(func() { r.node("node-1", rapid.Int64Range(1, 9).Draw(r.t, "cores")) }),
		"submit": do(r.submit),
		"queue":  do(func() { r.queue(r.someQueue()) }),
		"queue goes": do(func() {
			r.state.DeleteQueue(r.someQueue())
		}),
		"pod goes": do(func() {
			if p := r.somePod(); p != nil {
				delete(r.pods, p.UID)
				r.state.DeletePod(p.UID)
			}
		}),
		"others place": do(func() {
			if p := r.somePod(); p != nil {
				r.state.Assume(p.UID, "node-0")
			}
		}),
		"node lost": do(func() {
			if p := r.somePod(); p != nil {
				r.state.Forget(p.UID)
			}
		}),
		"pod comes": do(func() {
			if len(r.gangs) > 0 {
				r.create(rapid.SampledFrom(r.gangs).Draw(r.t, "gang"), "", 9, true)
			}
		}),
		"": do(r.check),
	}
}

// check compares what the ranking knows with what comparing all lines tells.
func (r *ranked) check() {
	b := &r.d.lots.backlog
	r.count("partial", len(b.partial) > 0)
	if rapid.IntRange(0, 3).Draw(r.t, "looked at") == 0 {
		return // What happens until then comes together.
	}
	if rapid.Bool().Draw(r.t, "taken in") && r.d.turn == nil {
		r.d.waits.update()
		b.retrying = r.d.selection.allowance.left(r.clock.Now())
	}
	first := func(lines []*line) *line {
		lines = slices.DeleteFunc(lines, func(l *line) bool { return b.first(l) == nil })
		if len(lines) == 0 {
			return nil
		}
		return slices.MinFunc(lines, b.compareLines)
	}
	all := slices.Collect(maps.Values(b.lines))
	shifted, _, anew := r.d.cfg.Policies.Book().Shifted(b.ranking.seen)
	var got *line
	for got = range b.linesInOrder {
		break
	}
	if want := first(slices.Clone(all)); got != want {
		r.t.Fatalf("%s is first, want %s", got, want)
	}
	if queues := len(slices.DeleteFunc(slices.Clone(all), func(l *line) bool { return l.guest || l.ready.Len()+l.retries.Len() == 0 })); b.queues() != queues {
		r.t.Fatalf("%d queues have a job for a turn, want %d", b.queues(), queues)
	}
	r.count("guests", b.guests > 0)
	r.count("retries", b.retries > 0 && b.retrying)
	r.count("retries that wait", b.retries > 0 && !b.retrying)
	if !b.ranks() {
		return
	}
	r.count("ranked", len(b.active) > 1)
	r.count("a few that shifted", !anew && len(shifted) > 0 && len(b.active) > 1)
	places := len(b.ranking.won) / 2
	fields := make([][]*line, 2*places)
	for _, l := range all {
		if at, known := l.place(); known && b.first(l) != nil {
			for match := places + at; match > 0; match /= 2 {
				fields[match] = append(fields[match], l)
			}
		}
	}
	for match := 1; match < len(fields); match++ {
		if got, want := b.ranking.won[match], first(fields[match]); got != want {
			r.t.Fatalf("match %d of %d was won by %s, want %s", match, places, got, want)
		}
	}
	r.mislead(all, first(slices.Clone(all)))
}

// mislead has the ranking say that a line is first that has no lot for a turn. It must not be yielded, nor keep others from their turns.
func (r *ranked) mislead(all []*line, want *line) {
	b := &r.d.lots.backlog
	empty := slices.IndexFunc(all, func(l *line) bool { return b.first(l) == nil })
	if empty < 0 {
		return
	}
	b.ranking.won[1] = all[empty]
	var got *line
	for got = range b.linesInOrder {
		break
	}
	if got != want {
		r.t.Fatalf("%s is first though the ranking says %s, want %s", got, all[empty], want)
	}
	r.count("misled", true)
}

// count counts what the tests have met.
func (r *ranked) count(what string, met bool) {
	if met {
		r.met[what]++
	}
}

// String names the queue of a line, for messages.
func (l *line) String() string {
	switch {
	case l == nil:
		return "nobody"
	case l.guest:
		return "a guest of " + l.queue
	}
	return l.queue
}

// TestTheRankingIsWhatComparingAllLinesTells has anything happen, and compares all matches of the ranking with the least of the lines in each.
func TestTheRankingIsWhatComparingAllLinesTells(t *testing.T) {
	met := map[string]int{}
	for name, plugin := range queueOrders {
		t.Run(name, func(t *testing.T) {
			before := met["ranked"]
			rapid.Check(t, func(t *rapid.T) {
				r := newRanked(t, plugin, met)
				t.Repeat(r.events())
			})
			if ranks := met["ranked"] > before; ranks != (name != "hdrf") {
				t.Errorf("lines were ranked: %t", ranks)
			}
		})
	}
	t.Log(met)
	for _, what := range []string{"partial", "guests", "retries", "retries that wait", "a few that shifted", "misled"} {
		if met[what] == 0 && !t.Failed() {
			t.Errorf("no run has met %s", what)
		}
	}
}
