// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"errors"
	"fmt"
	"maps"
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
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/gang/room"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// The machine drives a dispatcher as kube-scheduler, the API server and everybody else may: one scheduling cycle at a time, binds that end
// in any order, and whatever happens in between. It checks after each step what always holds, and in the end that a job which fits starts.

const (
	machineJobs, machinePods = 4, 3
	// machineSteps is how many steps a run has. With -rapid.checks=1000 they are 100,000 in all.
	machineSteps = 100
	// turnBound is what no turn lasts longer than: mostTurn, and mostMember for each pod.
	turnBound = mostTurn + machineJobs*machinePods*mostMember
)

// machineNodes have so many cores; each pod asks for one.
var machineNodes = map[string]int{"n0": 3, "n1": 2}

// cycle is a scheduling cycle that is on.
type cycle struct {
	uid types.UID
	job model.JobKey
	// began is when.
	began time.Time
	// entered: PreFilter has been asked. Of a lead, entry is what to plan for; node is where a member goes.
	entered bool
	entry   Entry
	node    string
	// idle is how many cores nodes had left when it entered. A lead plans by that.
	idle map[string]int
}

type machine struct {
	silent
	d     *Dispatcher
	state *model.State
	cycle *cycle
	// reserved are the pods that bind, with their nodes; away those that failed to, and are not back in the queue.
	reserved map[types.UID]string
	away     map[types.UID]model.JobKey
	serial   int
	// turn is the last turn seen, since when.
	turn  uint64
	since time.Time
	// longest is how long the longest cycle took.
	longest time.Duration
	// lied: a plan was refused whatever room there was, as by a filter that takes a node only when it changes.
	lied bool
	// slow: the dispatcher hears of others' changes only at the event "news come".
	slow bool
	// hit: the step had an effect. Nodes are those that there are.
	hit   bool
	nodes map[string]bool

	// mu guards what the dispatcher's goroutine changes: how turns have ended among them.
	mu    sync.Mutex
	ended []TurnResult
	// released: a gang was.
	released bool
	active   []types.UID
	gated    map[types.UID]string
	busy     map[types.UID]bool
	// news are the changes that the dispatcher does not know yet.
	news []model.Change
}

func machinePolicies() *policy.Set {
	set, err := policy.Compile(&config.BatchQueueArgs{
		Actions: []config.Action{config.Allocate, config.Backfill},
		Tiers:   []config.Tier{{Plugins: []config.TierPlugin{{Name: config.PluginPriority}, {Name: config.PluginGang}}}},
	})
	if err != nil {
		panic(err)
	}
	return set
}

func newMachine() *machine {
	m := &machine{
		state: model.NewState(), reserved: map[types.UID]string{}, away: map[types.UID]model.JobKey{},
		gated: map[types.UID]string{}, busy: map[types.UID]bool{}, nodes: map[string]bool{},
	}
	m.state.AddScheduler("volcano")
	m.d = New(Config{
		State: m.state, Rules: machineRules(), MayFit: gang.MayFit, NeverFits: gang.NeverFits, Clock: clock.RealClock{}, Recorder: m,
		Checks:   func(string) room.Checks { return room.Checks{Resources: true} },
		Lead:     gang.TaskOrder(func(_, _ *model.Task) int { return 0 }).Lead,
		Activate: m.activate,
		Settle:   func([]types.UID, bool) {},
		Report:   func(model.JobKey, model.Reason, uint64) {}, Fault: func(*model.Queue, model.Reason) {},
		Abandon: func(model.JobKey) {},
		Release: func(Trouble) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.released = true
		},
		Tell: func(Trouble) {},
	})
	m.state.Observe(m.notify)
	m.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue})
	for name := range machineNodes {
		m.addNode(name)
	}
	for j := range machineJobs {
		m.group(j, 1+j%machinePods)
		for i := range machinePods {
			m.create(j, i)
		}
	}
	return m
}

// notify tells the dispatcher of a change, at once or later.
func (m *machine) notify(c model.Change) {
	m.mu.Lock()
	late := m.slow && !c.Own
	if late {
		m.news = append(m.news, c)
	}
	m.mu.Unlock()
	if !late {
		m.d.Notify(c)
	}
}

// tell passes on the first change that the dispatcher does not know, and reports whether there was one.
func (m *machine) tell() bool {
	m.mu.Lock()
	if len(m.news) == 0 {
		m.mu.Unlock()
		return false
	}
	c := m.news[0]
	m.news = m.news[1:]
	m.mu.Unlock()
	m.d.Notify(c)
	return true
}

func machineRules() Rules {
	return Rules{Policies: machinePolicies(), AdmissionTimeout: time.Minute, StalledAfter: 10 * time.Second, HalfTimeout: time.Minute, BrokenTimeout: 5 * time.Minute}
}

// Turn implements Recorder. The dispatcher's lock is held.
func (m *machine) Turn(_ TurnPhase, result TurnResult, _ time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = append(m.ended, result)
}

// endings are how turns have ended, from one on.
func (m *machine) endings(from int) []TurnResult {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.ended[from:])
}

// activate is the scheduling queue: pods that are in a cycle, bind, or are on their way back are not in it.
func (m *machine) activate(pods []*corev1.Pod) (elsewhere []Standing) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range pods {
		switch by := m.gated[p.UID]; {
		case by != "":
			elsewhere = append(elsewhere, Standing{Pod: p.UID, GatedBy: by})
		case m.busy[p.UID]:
			elsewhere = append(elsewhere, Standing{Pod: p.UID})
		case !slices.Contains(m.active, p.UID):
			m.active = append(m.active, p.UID)
		}
	}
	return elsewhere
}

func (m *machine) setBusy(uid types.UID, busy bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy[uid] = busy; !busy {
		delete(m.busy, uid)
	}
}

func machineKey(j int) model.JobKey {
	return model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: fmt.Sprintf("j%d", j)}
}

func (m *machine) addNode(name string) {
	m.hit, m.nodes[name] = true, true
	m.state.UpsertNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(int64(machineNodes[name]), resource.DecimalSI), corev1.ResourcePods: resource.MustParse("110"),
	}}})
}

func (m *machine) group(j, least int) {
	m.hit = true
	m.state.UpsertGroup(machineKey(j), &model.Group{
		UID: types.UID(fmt.Sprintf("j%d", j)), Queue: model.DefaultQueue, MinMember: least, Created: time.Unix(int64(j), 0),
	})
}

// create creates a pod of a job anew, unless there is one.
func (m *machine) create(j, i int) {
	name := fmt.Sprintf("j%d-%d", j, i)
	if m.taskOf(j, i) != nil {
		return
	}
	m.serial++
	m.hit = true
	m.state.UpsertPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID(fmt.Sprintf("%s-%d", name, m.serial)), CreationTimestamp: metav1.Now(),
			Annotations: map[string]string{model.GroupNameAnnotation: machineKey(j).Name},
		},
		Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}},
		}}},
	})
}

// taskOf is the pod of a job by number; nil while there is none.
func (m *machine) taskOf(j, i int) *model.Task {
	job := m.state.Job(machineKey(j))
	if job == nil {
		return nil
	}
	name := fmt.Sprintf("j%d-%d", j, i)
	for _, t := range job.Tasks {
		if t.Pod.Name == name {
			return t
		}
	}
	return nil
}

// idle is how many cores nodes have left.
func (m *machine) idle() map[string]int {
	left := map[string]int{}
	for name, cores := range machineNodes {
		if m.nodes[name] {
			left[name] = cores
		}
	}
	for j := range machineJobs {
		if job := m.state.Job(machineKey(j)); job != nil {
			for _, t := range job.Tasks {
				if _, there := left[t.Node]; there && !t.Completed() {
					left[t.Node]--
				}
			}
		}
	}
	return left
}

// step is one thing that happens, to a pod of a job or to a node; what is chosen among is up to choice.
type step struct {
	Event            string
	Job, Pod, Choice int
}

func (s step) String() string { return fmt.Sprintf("%s j%d-%d %d", s.Event, s.Job, s.Pod, s.Choice) }

// events are all that can happen. What needs a cycle, or a pod that binds, does nothing without one.
var events = map[string]func(*machine, step){
	"pop":           (*machine).pop,
	"enter":         (*machine).enter,
	"plan":          func(m *machine, s step) { m.lead(s, (*machine).plan) },
	"plan, fragile": func(m *machine, s step) { m.lead(s, (*machine).planFragile) },
	"refuse": func(m *machine, s step) {
		m.lead(s, func(m *machine, c *cycle) {
			m.lied = true
			m.refuse(c)
		})
	},
	"repeat": func(m *machine, s step) {
		m.lead(s, func(m *machine, c *cycle) {
			if !m.d.Repeat(c.uid) {
				m.d.Refused(c.uid, Refusal{Reason: machineNoRoom, Stale: true})
			}
		})
	},
	"pipeline": func(m *machine, s step) {
		m.lead(s, func(m *machine, c *cycle) {
			m.lied = true
			m.d.Pipelined(c.uid)
		})
	},
	"fail to plan": func(m *machine, s step) {
		m.lead(s, func(m *machine, c *cycle) {
			m.d.Errored(c.uid, errMachine)
			m.d.Failed(c.uid, c.job, errMachine)
		})
	},
	"no nodes": func(m *machine, s step) {
		if c := m.cycle; c != nil && !c.entered {
			m.hit = true
			m.d.NoNodes(c.uid)
			m.end(nil)
		}
	},
	"reserve": (*machine).reserve,
	"reject": func(m *machine, _ step) {
		m.member(func(c *cycle) {
			m.d.Lost(c.uid, c.job)
			m.d.Failed(c.uid, c.job, nil)
			m.end(nil)
		})
	},
	"fail": func(m *machine, _ step) {
		m.member(func(c *cycle) { m.end(errMachine) })
	},
	"end": func(m *machine, _ step) {
		if m.cycle != nil {
			m.hit = true
			m.end(nil)
		}
	},
	"other's cycle": func(m *machine, _ step) {
		if m.cycle == nil {
			m.hit = true
			m.d.Between()
			m.d.Busy()
			synctest.Wait()
			m.d.Between()
		}
	},
	"bound": func(m *machine, s step) {
		if uid, ok := pick(m.reserved, s.Choice); ok {
			m.hit = true
			m.bound(uid)
		}
	},
	"unreserve": func(m *machine, s step) {
		if uid, ok := pick(m.reserved, s.Choice); ok {
			m.hit = true
			job := m.jobOf(uid)
			delete(m.reserved, uid)
			m.away[uid] = job
			m.d.Unreserved(uid, job)
			m.state.Forget(uid)
		}
	},
	"requeue": func(m *machine, s step) {
		if uid, ok := pick(m.away, s.Choice); ok {
			m.hit = true
			m.requeue(uid)
		}
	},
	"late": (*machine).late,
	"pod deleted": func(m *machine, s step) {
		if t := m.taskOf(s.Job, s.Pod); t != nil {
			m.hit = true
			m.state.DeletePod(t.UID)
			m.mu.Lock()
			m.active = slices.DeleteFunc(m.active, func(uid types.UID) bool { return uid == t.UID })
			m.mu.Unlock()
		}
	},
	"pod created": func(m *machine, s step) { m.create(s.Job, s.Pod) },
	"pod bound by another": func(m *machine, s step) {
		if t := m.taskOf(s.Job, s.Pod); t != nil && t.Node == "" {
			m.hit = true
			m.onNode(t, slices.Sorted(maps.Keys(machineNodes))[s.Choice%len(machineNodes)])
		}
	},
	"pod touched": func(m *machine, s step) {
		if t := m.taskOf(s.Job, s.Pod); t != nil {
			m.hit = true
			p := t.Pod.DeepCopy()
			p.Annotations["touched"] = fmt.Sprint(s.Choice)
			m.state.UpsertPod(p)
		}
	},
	"pod gated": func(m *machine, s step) {
		if t := m.taskOf(s.Job, s.Pod); t != nil && t.Node == "" {
			m.hit = true
			m.mu.Lock()
			m.gated[t.UID] = "Other"
			m.active = slices.DeleteFunc(m.active, func(uid types.UID) bool { return uid == t.UID })
			m.mu.Unlock()
		}
	},
	"gate opened": func(m *machine, s step) {
		if uid, ok := pick(m.gated, s.Choice); ok {
			m.hit = true
			m.open(uid)
		}
	},
	"group deleted": func(m *machine, s step) {
		m.hit = true
		m.state.DeleteGroup(machineKey(s.Job))
	},
	"minimum set": func(m *machine, s step) { m.group(s.Job, s.Choice%(machinePods+2)) },
	"node deleted": func(m *machine, s step) {
		name := slices.Sorted(maps.Keys(machineNodes))[s.Choice%2]
		m.hit = m.nodes[name]
		delete(m.nodes, name)
		m.state.DeleteNode(name)
	},
	"node created": func(m *machine, s step) { m.addNode(slices.Sorted(maps.Keys(machineNodes))[s.Choice%2]) },
	"rules replaced": func(m *machine, _ step) {
		m.hit = true
		m.d.mu.Lock()
		m.d.adopting = &adoption{rules: machineRules(), then: func() {}, done: make(chan struct{})}
		m.d.mu.Unlock()
		m.d.wake()
	},
	"news are late": func(m *machine, _ step) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.hit, m.slow = !m.slow, true
	},
	"news come":    func(m *machine, _ step) { m.hit = m.tell() },
	"a moment":     func(m *machine, _ step) { m.pass(time.Millisecond) },
	"some moments": func(m *machine, _ step) { m.pass(nudgeAfter) },
	"a second":     func(m *machine, _ step) { m.pass(time.Second) },
	"a minute":     func(m *machine, _ step) { m.pass(time.Minute) },
}

// pass lets time pass. A cycle may take seconds, not minutes: its job rests 19 times as long if it fails.
func (m *machine) pass(d time.Duration) {
	if m.hit = m.cycle == nil || d < time.Minute; !m.hit {
		return
	}
	time.Sleep(d)
}

var (
	errMachine    = errors.New("a plugin failed")
	machineNoRoom = model.Reason{Kind: model.NotEnoughResources, Subject: "cpu", Message: "insufficient cpu", FromNodes: true}
)

// pick chooses a key of a map.
func pick[V any](of map[types.UID]V, choice int) (types.UID, bool) {
	if len(of) == 0 {
		return "", false
	}
	keys := slices.Sorted(maps.Keys(of))
	return keys[choice%len(keys)], true
}

func (m *machine) jobOf(uid types.UID) model.JobKey {
	name, _, _ := strings.Cut(string(uid), "-")
	return model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: name}
}

// end ends the cycle that is on: the pod goes back into the queue.
func (m *machine) end(err error) {
	c := m.cycle
	m.cycle, m.longest = nil, max(m.longest, time.Since(c.began))
	if _, binds := m.reserved[c.uid]; !binds {
		m.setBusy(c.uid, false)
		m.d.Failed(c.uid, c.job, err)
	}
	m.d.Between()
}

// pop takes the next pod from the queue. What is left of the cycle before ends without a word.
func (m *machine) pop(step) {
	if m.cycle != nil {
		return
	}
	m.d.Between()
	synctest.Wait()
	m.mu.Lock()
	if len(m.active) == 0 {
		m.mu.Unlock()
		return
	}
	uid := m.active[0]
	m.active = m.active[1:]
	m.mu.Unlock()
	m.hit = true
	if m.d.Begins(uid) {
		m.setBusy(uid, true)
		m.cycle = &cycle{uid: uid, job: m.jobOf(uid), began: time.Now()}
	}
}

// enter has the cycle's pod ask for its part in the turn.
func (m *machine) enter(step) {
	c := m.cycle
	if c == nil || c.entered {
		return
	}
	m.hit, c.entered, c.entry = true, true, m.d.Enter(c.uid)
	c.idle = m.idle()
	switch c.entry.Verdict {
	case Member:
		c.node = c.entry.Node
	case NotItsTurn:
		m.end(nil)
	}
}

// lead has the cycle's pod, if it leads, come to a decision. Unless that is a plan in which it has a part, its cycle ends.
func (m *machine) lead(_ step, decide func(*machine, *cycle)) {
	c := m.cycle
	if c == nil || !c.entered || c.entry.Verdict != Lead || c.node != "" {
		return
	}
	m.hit = true
	if decide(m, c); c.node == "" {
		m.end(nil)
	}
}

func (m *machine) plan(c *cycle)        { m.planned(c, false) }
func (m *machine) planFragile(c *cycle) { m.planned(c, true) }

func (m *machine) refuse(c *cycle) { m.d.Refused(c.uid, Refusal{Reason: machineNoRoom}) }

// planned places as many tasks as fitted when the cycle began, and still do, if they are enough.
func (m *machine) planned(c *cycle, fragile bool) {
	left := m.idle()
	for name := range left {
		left[name] = min(left[name], c.idle[name])
	}
	var pods []*corev1.Pod
	var nodes []string
	for _, t := range c.entry.Job.Tasks {
		if !t.Placeable() {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(left)) {
			if left[name] > 0 {
				left[name]--
				pods, nodes = append(pods, t.Pod), append(nodes, name)
				break
			}
		}
	}
	if len(pods) < max(1, c.entry.Job.Requirement().Tasks) {
		m.refuse(c)
		return
	}
	c.node = m.d.Planned(c.uid, pods, nodes, fragile)
}

// member has the cycle of a member go on.
func (m *machine) member(then func(*cycle)) {
	if c := m.cycle; c != nil && c.node != "" {
		m.hit = true
		then(c)
	}
}

func (m *machine) reserve(step) {
	m.member(func(c *cycle) {
		if m.d.MayReserve(c.uid, c.node) {
			m.state.Assume(c.uid, c.node)
			m.reserved[c.uid] = c.node
			m.d.Reserved(c.uid)
		}
		m.end(nil)
	})
}

// bound has the API server bind a pod, unless it is gone: then the bind fails.
func (m *machine) bound(uid types.UID) {
	node := m.reserved[uid]
	t := m.state.Task(uid)
	if t == nil {
		delete(m.reserved, uid)
		m.away[uid] = m.jobOf(uid)
		m.d.Unreserved(uid, m.jobOf(uid))
		m.state.Forget(uid)
		return
	}
	delete(m.reserved, uid)
	m.setBusy(uid, false)
	m.d.Bound(m.jobOf(uid))
	m.onNode(t, node)
}

func (m *machine) onNode(t *model.Task, node string) {
	p := t.Pod.DeepCopy()
	p.Spec.NodeName = node
	m.state.UpsertPod(p)
	m.mu.Lock()
	m.active = slices.DeleteFunc(m.active, func(uid types.UID) bool { return uid == t.UID })
	m.mu.Unlock()
}

// requeue has the scheduler put a pod back whose bind failed.
func (m *machine) requeue(uid types.UID) {
	job := m.away[uid]
	delete(m.away, uid)
	m.setBusy(uid, false)
	m.d.Failed(uid, job, nil)
}

// open has another plugin let go of a pod.
func (m *machine) open(uid types.UID) {
	m.mu.Lock()
	delete(m.gated, uid)
	m.mu.Unlock()
	m.d.Seen(uid)
}

// late calls back for a pod that has no part in the turn that is on.
func (m *machine) late(s step) {
	t := m.taskOf(s.Job, s.Pod)
	if t == nil || m.reserved[t.UID] != "" || m.cycle != nil && m.cycle.uid == t.UID {
		return
	}
	m.d.mu.Lock()
	part := m.d.turn != nil && (m.d.turn.members[t.UID] != nil || m.d.turn.lead.UID == t.UID)
	m.d.mu.Unlock()
	if part {
		return
	}
	m.hit = true
	switch s.Choice % 6 {
	case 0:
		m.d.Reserved(t.UID)
	case 1:
		m.d.Refused(t.UID, Refusal{Reason: machineNoRoom})
	case 2:
		m.d.Errored(t.UID, errMachine)
	case 3:
		m.d.Planned(t.UID, []*corev1.Pod{t.Pod}, []string{"n0"}, true)
	case 4:
		m.d.Pipelined(t.UID)
	case 5:
		m.d.Failed(t.UID, t.Job, errMachine)
	}
}

// do lets something happen and checks what always holds.
func (m *machine) do(s step) string {
	synctest.Wait()
	m.hit = false
	events[s.Event](m, s)
	synctest.Wait()
	return m.complaint()
}

// complaint says what does not hold that always does.
func (m *machine) complaint() string {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if t := m.d.turn; t != nil {
		open := 0
		for _, member := range t.members {
			if !member.done {
				open++
			}
		}
		switch {
		case open != t.open:
			return fmt.Sprintf("the turn counts %d open members of %d", t.open, open)
		case t.members != nil && open == 0:
			return "the turn is on though all its members are done"
		}
		if t.number != m.turn {
			m.turn, m.since = t.number, time.Now()
		}
		if lasted := time.Since(m.since); lasted > turnBound {
			return fmt.Sprintf("a turn lasts %s", lasted)
		}
	}
	for j := range machineJobs {
		job := m.state.Job(machineKey(j))
		if job == nil {
			continue
		}
		for _, t := range job.Tasks {
			if held := m.reserved[t.UID] != ""; held != (t.Status == model.Allocated) && t.Pod.Spec.NodeName == "" {
				return fmt.Sprintf("pod %s is %s, and binds: %t", t.Pod.Name, t.Status, held)
			}
		}
	}
	m.mu.Lock()
	untold := len(m.news) > 0
	m.mu.Unlock()
	if untold || m.d.turn != nil || m.d.cycle.on || len(m.d.waits.changed)+len(m.d.lots.rooms.touched) > 0 || m.d.waits.events != 0 {
		return ""
	}
	return m.forgotten()
}

// forgotten says which job waits and has no place in the dispatcher. Everything that happened has been taken in.
func (m *machine) forgotten() string {
	for j := range machineJobs {
		key := machineKey(j)
		job := m.state.Job(key)
		if job == nil || job.Counts.Placeable() == 0 || job.Blocked() != (model.Reason{}) {
			continue
		}
		w := m.d.waits.jobs[key]
		switch {
		case w != nil && w.lot != nil && w.lot.stage == parked && w.lot.notBefore.IsZero() && !m.lied && m.fits(job):
			return fmt.Sprintf("job %s is parked though it fits; %d tasks are placeable, it was told %q", key, job.Counts.Placeable(), w.reported.Message)
		case w == nil:
			return fmt.Sprintf("nothing is known of job %s, which waits", key)
		case w.lot != nil, w.notBefore.After(time.Now()), w.applied != nil, !m.d.waits.absence.ofJob(key, time.Now()).IsZero():
		default:
			return fmt.Sprintf("job %s waits, and is in no lot; %d tasks are placeable, it was told %q", key, job.Counts.Placeable(), w.reported.Message)
		}
	}
	return ""
}

// fits reports whether nodes have room for as many of a job's tasks as it needs.
func (m *machine) fits(job *model.Job) bool {
	left := 0
	for _, cores := range m.idle() {
		left += max(0, cores)
	}
	return min(left, job.Counts.Placeable()) >= max(1, job.Requirement().Tasks)
}

// finish lets all that fails or is missing come right, leaves one job, which fits, and has the scheduler work until that is placed.
func (m *machine) finish(kept int) string {
	if m.cycle != nil {
		m.end(nil)
	}
	for m.tell() {
	}
	m.mu.Lock()
	m.slow = false
	m.mu.Unlock()
	for len(m.reserved) > 0 {
		uid, _ := pick(m.reserved, 0)
		m.bound(uid)
	}
	for len(m.away) > 0 {
		uid, _ := pick(m.away, 0)
		m.requeue(uid)
	}
	for len(m.gated) > 0 {
		uid, _ := pick(m.gated, 0)
		m.open(uid)
	}
	for j := range machineJobs {
		for i := range machinePods {
			if t := m.taskOf(j, i); t != nil && (j != kept || t.Node != "") {
				m.state.DeletePod(t.UID)
			}
		}
	}
	for name := range machineNodes {
		if m.lied {
			m.state.DeleteNode(name)
			synctest.Wait()
		}
		if m.lied || !m.nodes[name] {
			m.addNode(name)
		}
	}
	m.group(kept, machinePods)
	for i := range machinePods {
		m.create(kept, i)
	}
	// A job whose attempt failed rests by how long that took, a gang that was released twice for half an hour at most.
	patience := 2*time.Minute + chargedPart*m.longest
	m.mu.Lock()
	if m.released {
		patience += lastRest
	}
	m.mu.Unlock()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(10 * time.Millisecond) {
		for _, event := range []string{"pop", "enter", "plan", "reserve", "bound"} {
			if complaint := m.do(step{Event: event}); complaint != "" {
				return complaint
			}
		}
		if job := m.state.Job(machineKey(kept)); job.Counts.Ready() == machinePods && len(m.reserved) == 0 {
			return ""
		}
	}
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	w := m.d.waits.jobs[machineKey(kept)]
	text := fmt.Sprintf("the job that fits has not started after %s; turns ended %v, rests for %s; active %v, gated %v, busy %v, away %v, held %v, turn %+v, waiting %+v, tasks",
		patience, slices.Compact(m.endings(0)), time.Until(m.d.waits.setbacks.byJob[machineKey(kept)].notBefore), m.active, m.gated, m.busy, m.d.waits.absence.away, m.d.waits.absence.held, m.d.turn, w)
	for _, t := range m.state.Job(machineKey(kept)).Tasks {
		text += fmt.Sprintf(" %s %s on %q", t.UID, t.Status, t.Node)
	}
	return text
}

// play plays steps in a bubble of its own, and returns what went wrong at which of them.
func play(t *testing.T, steps []step) (at int, complaint string) {
	at = -1
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		go m.d.Run(t.Context())
		for i, s := range steps {
			if complaint = m.do(s); complaint != "" {
				at = i
				return
			}
		}
		complaint = m.finish(0)
	})
	return at, complaint
}

// theJob is the job of the table, the only one that has pods: three, and a minimum of three.
const theJob = 2

// lacks says what an event needs that has no effect.
var lacks = map[string]string{
	"pop": "a cycle is on, or nobody is in the queue", "pod deleted": "there is no such pod", "pod touched": "there is no such pod",
	"other's cycle": "a cycle is on", "a minute": "a cycle is on", "end": "no cycle is on",
	"enter": "no cycle has begun", "no nodes": "no cycle has begun",
	"plan": "no lead plans", "plan, fragile": "no lead plans", "refuse": "no lead plans", "repeat": "no lead plans",
	"pipeline": "no lead plans", "fail to plan": "no lead plans",
	"reserve": "no member is in its cycle", "reject": "no member is in its cycle", "fail": "no member is in its cycle",
	"bound": "no pod binds", "unreserve": "no pod binds", "requeue": "no pod is on its way back", "gate opened": "no pod is gated",
	"news are late": "they are", "news come": "there are none",
	"late": "the pod has its part", "pod bound by another": "it has a node, or is gone", "pod gated": "it has a node, or is gone",
}

// TestEveryEventInEveryState plays, for each case of testdata/turns.txt, its steps on a job of three pods, and then each event there is.
// The table says what becomes of the turn. Whatever happened, the job starts in the end, once nothing fails any more.
func TestEveryEventInEveryState(t *testing.T) {
	golden.Walk(t, "turns", map[string]func(*golden.Case) string{"turn": func(c *golden.Case) string {
		var before []step
		for _, l := range c.Lines {
			event := strings.Join(l.Words(0), " ")
			if events[event] == nil {
				c.Fatalf("there is no event %q", event)
			}
			before = append(before, step{Event: event, Job: theJob, Pod: l.Int("pod", 0), Choice: l.Int("choice", 0)})
		}
		table := &golden.Table{}
		for _, event := range slices.Sorted(maps.Keys(events)) {
			table.Row(event, outcome(c.T(), before, event))
		}
		return table.String()
	}})
}

// outcome tells what becomes of the turn when an event happens after some steps.
func outcome(t *testing.T, before []step, event string) (told string) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		for j := range machineJobs {
			for i := range machinePods {
				if j != theJob {
					m.do(step{Event: "pod deleted", Job: j, Pod: i})
				}
			}
		}
		go m.d.Run(t.Context())
		for _, s := range before {
			if complaint := m.do(s); complaint != "" || !m.hit {
				t.Errorf("%s: it happened: %t, %s", s, m.hit, complaint)
			}
		}
		s := step{Event: event, Job: theJob}
		switch event {
		case "pod created":
			s.Job++
		case "late":
			s.Pod, s.Choice = 2, 1
		}
		ended := len(m.endings(0))
		complaint := m.do(s)
		switch {
		case !m.hit:
			told = "cannot happen: " + lacks[event]
		default:
			for _, result := range slices.Compact(m.endings(ended)) {
				told += "ends " + string(result) + ", "
			}
			told += string(m.d.View().Phase())
			if m.cycle != nil {
				told += ", its cycle is on"
			}
		}
		if complaint == "" {
			complaint = m.finish(theJob)
		}
		if complaint != "" {
			t.Errorf("%v, then %q: %s", before, event, complaint)
		}
	})
	return told
}

// TestTheTurnHoldsWhateverHappens lets things happen, in any order.
func TestTheTurnHoldsWhateverHappens(t *testing.T) {
	names := slices.Sorted(maps.Keys(events))
	// Cycles go on most of the time, and what was taken comes back.
	for range 5 {
		names = append(names, "pop", "pop", "enter", "enter", "plan", "reserve", "bound", "requeue", "gate opened", "node created", "news come")
	}
	names = append(names, "pod deleted", "pod deleted", "pod created", "pod created", "minimum set", "a second", "plan, fragile")
	honest := slices.DeleteFunc(slices.Clone(names), func(event string) bool { return event == "refuse" || event == "pipeline" })
	draw := func(names []string) *rapid.Generator[step] {
		return rapid.Custom(func(r *rapid.T) step {
			return step{
				Event: rapid.SampledFrom(names).Draw(r, "event"), Job: rapid.IntRange(0, machineJobs-1).Draw(r, "job"),
				Pod: rapid.IntRange(0, machinePods-1).Draw(r, "pod"), Choice: rapid.IntRange(0, 11).Draw(r, "choice"),
			}
		})
	}
	rapid.Check(t, func(r *rapid.T) {
		from := names
		if rapid.Bool().Draw(r, "no plan is refused that holds") {
			from = honest
		}
		steps := rapid.SliceOfN(draw(from), machineSteps, machineSteps).Draw(r, "steps")
		if at, complaint := play(t, steps); complaint != "" {
			r.Fatalf("after step %d: %s\n%v", at, complaint, steps[:max(0, at+1)])
		}
	})
}
