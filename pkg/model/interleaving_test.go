// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// cluster is what a snapshot says, in values that compare.
type cluster struct {
	Jobs   map[model.JobKey]jobView
	Queues map[string]*model.Queue
	Sums   sums
}

func clusterOf(s *model.Snapshot) cluster {
	c := cluster{Jobs: map[model.JobKey]jobView{}, Queues: map[string]*model.Queue{}, Sums: sumsOf(s.Totals)}
	for j := range s.Jobs {
		c.Jobs[j.Key] = viewOf(j)
	}
	for q := range s.Queues {
		c.Queues[q.Name] = q
	}
	return c
}

// pair is the model and its reference, which live through the same things.
type pair struct {
	state     *model.State
	reference *reference
	// taken are snapshots and what they said when they were taken.
	taken []*model.Snapshot
	said  []cluster
}

// do lets both live through one thing, and checks that the change returned leaves nothing out.
func (p *pair) do(t *rapid.T, live func() model.Change, reference func()) {
	jobs, tasks, held := p.reference.jobs(), p.reference.tasks(), p.reference.holdings()
	change := live()
	reference()
	for key, now := range bothOf(jobs, p.reference.jobs()) {
		if !cmp.Equal(now[0], now[1]) && !slices.Contains(change.Jobs, key) {
			t.Fatalf("job %s changed, and only %v are told", key, change.Jobs)
		}
	}
	for uid, now := range bothOf(tasks, p.reference.tasks()) {
		if differ(now[0], now[1]) && !slices.Contains(change.Tasks, uid) {
			t.Fatalf("task %s changed, and only %v are told", uid, change.Tasks)
		}
	}
	for uid, now := range bothOf(held, p.reference.holdings()) {
		if now[0] != "" && now[0] != now[1] && change.Events&model.RoomMade == 0 {
			t.Fatalf("pod %s left node %s, and the events are %b", uid, now[0], change.Events)
		}
		if now[1] != "" && now[0] != now[1] && change.Events&model.PodPlaced == 0 {
			t.Fatalf("pod %s came to node %s, and the events are %b", uid, now[1], change.Events)
		}
	}
}

// bothOf pairs what two maps have under each key.
func bothOf[K comparable, V any](before, after map[K]V) map[K][2]V {
	both := map[K][2]V{}
	for key, value := range before {
		both[key] = [2]V{value, after[key]}
	}
	for key, value := range after {
		both[key] = [2]V{before[key], value}
	}
	return both
}

func differ(a, b *model.Task) bool { return a == nil || b == nil || describe(a) != describe(b) }

// check compares what the model says without a snapshot, and what the snapshots taken say by now.
func (p *pair) check(t *rapid.T) {
	jobs := p.reference.jobs()
	for _, key := range keys {
		want, ok := jobs[key]
		got := p.state.Summary(key)
		if ok != (got != nil) {
			t.Fatalf("job %s exists: %t, want %t", key, got != nil, ok)
		}
		if !ok {
			continue
		}
		// A job without its tasks and one that has been asked for with them may both be returned.
		view := viewOf(got)
		if len(view.Tasks) == 0 {
			want.Tasks = nil
		}
		if diff := cmp.Diff(want, view); diff != "" {
			t.Fatalf("job %s (-want,+got)\n%s", key, diff)
		}
	}
	tasks := p.reference.tasks()
	for i := range podCount {
		uid := types.UID(podName(i))
		if got, want := p.state.Task(uid), tasks[uid]; (got != nil || want != nil) && differ(got, want) {
			t.Fatalf("task %s is %v, want %v", uid, got, want)
		}
	}
	for _, task := range tasks {
		if known := p.state.Summary(task.Job).Traits; task.Placeable() && task.Traits&^known != 0 {
			t.Fatalf("job %s has traits %b, its task %s %b", task.Job, known, task.UID, task.Traits)
		}
	}
	if diff := cmp.Diff(p.reference.sums(), sumsOf(p.state.Totals())); diff != "" {
		t.Fatalf("totals (-want,+got)\n%s", diff)
	}
	all, idle := p.reference.usable()
	usable, _ := p.state.Usable()
	if got, want := present(usable)+", idle "+present(p.state.Totals().IdleForTasks()), present(all)+", idle "+present(idle); got != want {
		t.Fatalf("usable is %s, want %s", got, want)
	}
	for i, s := range p.taken {
		if diff := cmp.Diff(p.said[i], clusterOf(s)); diff != "" {
			t.Fatalf("snapshot %d changed after it was taken (-before,+now)\n%s", i, diff)
		}
	}
}

// snapshot compares a snapshot with the reference and keeps it for later looks.
func (p *pair) snapshot(t *rapid.T) {
	s := p.state.Snapshot()
	got := clusterOf(s)
	want := cluster{Jobs: p.reference.jobs(), Queues: maps.Clone(p.reference.queues), Sums: p.reference.sums()}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("snapshot (-want,+got)\n%s", diff)
	}
	read := map[model.JobKey]jobView{}
	for j := range p.state.Jobs {
		read[j.Key] = viewOf(j)
	}
	if diff := cmp.Diff(want.Jobs, read); diff != "" {
		t.Fatalf("jobs that are read one by one (-want,+got)\n%s", diff)
	}
	for _, key := range keys {
		if (s.Job(key) != nil) != (want.Jobs[key].UID != "") {
			t.Fatalf("the snapshot finds job %s: %t", key, s.Job(key) != nil)
		}
	}
	p.taken, p.said = append(p.taken, s), append(p.said, got)
	if len(p.taken) > 4 {
		p.taken, p.said = p.taken[1:], p.said[1:]
	}
}

// The world of the property: few enough names that everything meets everything.
const (
	podCount  = 6
	nodeCount = 3
)

// owners is the gang that the ReplicaSet "set" can make of its pods.
var owners = model.OwnerKey("ReplicaSet", "ns", "set", "set-uid")

func podName(i int) string { return fmt.Sprintf("p%d", i) }

var keys = func() []model.JobKey {
	var all []model.JobKey
	for _, name := range []string{"a", "b"} {
		for _, source := range []model.Source{model.FromVolcano, model.FromCoscheduling, model.FromNative} {
			all = append(all, model.JobKey{Source: source, Namespace: "ns", Name: name})
		}
	}
	all = append(all, owners)
	for i := range podCount {
		all = append(all, model.JobKey{Source: model.FromPod, Namespace: "ns", Name: podName(i)})
	}
	return all
}()

func pick[T any](t *rapid.T, what string, of ...T) T { return rapid.SampledFrom(of).Draw(t, what) }

func anyUID(t *rapid.T) types.UID {
	return types.UID(podName(rapid.IntRange(0, podCount-1).Draw(t, "pod")))
}

func anyNode(t *rapid.T) string {
	return fmt.Sprintf("node-%d", rapid.IntRange(0, nodeCount-1).Draw(t, "node"))
}

// anyPod draws a version of a pod. What cannot change in a pod's life is the same in all its versions: the scheduler,
// the time it was created.
func anyPod(t *rapid.T) *corev1.Pod {
	i := rapid.IntRange(0, podCount-1).Draw(t, "pod")
	p := newPod(podName(i), role(pick(t, "role", "", "ps", "worker")), asking("cpu", pick(t, "cpu", "0", "1", "2")))
	p.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(i/3) * time.Second))
	if i == podCount-1 {
		p.Spec.SchedulerName = "other"
	}
	switch group := pick(t, "group", "", "a", "b"); pick(t, "source", model.FromVolcano, model.FromCoscheduling, model.FromNative) {
	case model.FromVolcano:
		p.Annotations[model.GroupNameAnnotation] = group
	case model.FromNative:
		p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	default:
		p.Labels[model.CoschedulingLabel] = group
	}
	if pick(t, "owned", false, true) {
		owned(p)
	}
	p.Annotations[model.QueueAnnotation] = pick(t, "queue", "", "q1")
	p.Spec.Priority = pick(t, "priority", nil, new(int32(5)))
	if pick(t, "volume", false, true) {
		claiming("data")(p)
	}
	if pick(t, "gated", false, false, true) {
		gated(p)
	}
	p.Status.Phase = pick(t, "phase", corev1.PodPending, corev1.PodPending, corev1.PodPending, corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown)
	p.Spec.Tolerations = pick(t, "tolerations", nil, nil, []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}, []corev1.Toleration{
		{Key: "down", Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(300))}, {Key: "cpu", Value: "slow", Effect: corev1.TaintEffectNoSchedule},
	})
	if pick(t, "placed", false, false, true) || p.Status.Phase != corev1.PodPending {
		p.Spec.NodeName = anyNode(t)
	}
	if pick(t, "deleted", false, false, false, true) {
		terminating(p)
	}
	return p
}

// steps is everything that can happen to the model.
func (p *pair) steps() map[string]func(*rapid.T) {
	s, w := p.state, p.reference
	// Under three names, so that it happens three times as often as anything else.
	upsert := func(t *rapid.T) {
		pod := anyPod(t)
		p.do(t, func() model.Change { return s.UpsertPod(pod) }, func() { w.upsertPod(pod) })
	}
	return map[string]func(*rapid.T){
		"":              p.check,
		"take snapshot": p.snapshot,
		// Asking for a job leaves a copy behind, which must not be given out after the job has changed.
		"look at a job": func(t *rapid.T) {
			key := rapid.SampledFrom(keys).Draw(t, "job")
			want, ok := w.jobs()[key]
			if got := s.Job(key); ok != (got != nil) {
				t.Fatalf("job %s exists: %t, want %t", key, got != nil, ok)
			} else if ok && !cmp.Equal(want, viewOf(got)) {
				t.Fatalf("job %s (-want,+got)\n%s", key, cmp.Diff(want, viewOf(got)))
			}
		},
		"upsert pod": upsert, "upsert pod once more": upsert, "and once more": upsert,
		"pod leaves": func(t *rapid.T) {
			uid := anyUID(t)
			p.do(t, func() model.Change { return s.LeavePod(uid) }, func() { w.leavePod(uid) })
		},
		"delete pod": func(t *rapid.T) {
			uid := anyUID(t)
			p.do(t, func() model.Change { return s.DeletePod(uid) }, func() { w.deletePod(uid) })
		},
		"delete a finished pod": func(t *rapid.T) {
			uid := anyUID(t)
			p.do(t, func() model.Change { return s.DeleteFinished(uid) }, func() { w.deleteFinished(uid) })
		},
		"assume": func(t *rapid.T) {
			uid, node := anyUID(t), anyNode(t)
			p.do(t, func() model.Change { return s.Assume(uid, node) }, func() { w.assume(uid, node) })
		},
		"forget": func(t *rapid.T) {
			uid := anyUID(t)
			p.do(t, func() model.Change { return s.Forget(uid) }, func() { delete(w.reserved, uid) })
		},
		"upsert group": func(t *rapid.T) {
			key := rapid.SampledFrom(keys[:6]).Draw(t, "group")
			group := &model.Group{
				UID: "group", Queue: pick(t, "queue", "", "q1", "q2"), MinMember: pick(t, "min", 0, 2),
				PriorityClass: pick(t, "class", "", "low", "high"), Created: epoch,
			}
			p.do(t, func() model.Change { return s.UpsertGroup(key, group) }, func() { w.groups[key] = group })
		},
		"delete group": func(t *rapid.T) {
			key := rapid.SampledFrom(keys[:6]).Draw(t, "group")
			p.do(t, func() model.Change { return s.DeleteGroup(key) }, func() { delete(w.groups, key) })
		},
		"the owner makes a gang": func(t *rapid.T) {
			group := &model.Group{
				UID: "set-uid", ByOwner: true, Queue: pick(t, "queue", "", "q1"), MinMember: pick(t, "min", 1, 2), Created: epoch,
			}
			p.do(t, func() model.Change { return both(s.UpsertGroup(owners, group), s.Gather(owners)) },
				func() { w.groups[owners] = group; w.gather(true) })
		},
		"the owner makes none any more": func(t *rapid.T) {
			known := w.groups[owners] != nil
			p.do(t, func() model.Change { return s.Disband(owners) }, func() {
				if delete(w.groups, owners); known {
					w.gather(false)
				}
			})
		},
		"the owner is deleted": func(t *rapid.T) {
			p.do(t, func() model.Change { return s.DeleteGroup(owners) }, func() { delete(w.groups, owners) })
		},
		"upsert namespace": func(t *rapid.T) {
			queue := pick(t, "queue", "", "q1", "q3")
			p.do(t, func() model.Change { return s.UpsertNamespace("ns", queue) }, func() { w.namespaces["ns"] = queue })
		},
		"upsert node": func(t *rapid.T) {
			node := newNode(anyNode(t), having("cpu", pick(t, "cpu", "0", "4", "8"), pick(t, "device", "x/gpu", "y/fpga"), "2"))
			node.Spec.Taints = pick(t, "taints", nil, nil,
				[]corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}, []corev1.Taint{{Key: "down", Effect: corev1.TaintEffectNoExecute}},
				[]corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}, {Key: "cpu", Value: "slow", Effect: corev1.TaintEffectNoSchedule}},
				[]corev1.Taint{{Key: "spot", Effect: corev1.TaintEffectPreferNoSchedule}})
			node.Spec.Unschedulable = pick(t, "cordoned", false, false, false, true)
			node.Status.Conditions = pick(t, "ready", nil, []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}})
			p.do(t, func() model.Change { return s.UpsertNode(node) }, func() { w.nodes[node.Name] = node })
		},
		"delete node": func(t *rapid.T) {
			name := anyNode(t)
			p.do(t, func() model.Change { return s.DeleteNode(name) }, func() { delete(w.nodes, name) })
		},
		"upsert queue": func(t *rapid.T) {
			queue := &model.Queue{Name: pick(t, "queue", "q1", "q2"), State: pick(t, "state", model.QueueOpen, model.QueueShut)}
			p.do(t, func() model.Change { return s.UpsertQueue(queue) }, func() { w.queues[queue.Name] = queue })
		},
		"delete queue": func(t *rapid.T) {
			name := pick(t, "queue", "q1", "q2")
			p.do(t, func() model.Change { return s.DeleteQueue(name) }, func() { delete(w.queues, name) })
		},
		"upsert priority class": func(t *rapid.T) {
			name, value, standard := pick(t, "class", "low", "high"), pick[int32](t, "value", 1, 9), pick(t, "standard", false, true)
			p.do(t, func() model.Change { return s.UpsertPriorityClass(name, value, standard) }, func() {
				w.classes[name] = value
				if standard {
					w.standard = name
				} else if w.standard == name {
					w.standard = ""
				}
			})
		},
		"delete priority class": func(t *rapid.T) {
			name := pick(t, "class", "low", "high")
			p.do(t, func() model.Change { return s.DeletePriorityClass(name) }, func() {
				delete(w.classes, name)
				if w.standard == name {
					w.standard = ""
				}
			})
		},
	}
}

// both is what two changes changed.
func both(a, b model.Change) model.Change {
	a.Events |= b.Events
	a.Jobs, a.Tasks = append(a.Jobs, b.Jobs...), append(a.Tasks, b.Tasks...)
	return a
}

// Whatever happens in whatever order, the model says what a count from scratch would, tells of everything that changed,
// and snapshots stay as they were.
func TestModelAgreesWithACountFromScratch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &pair{state: model.NewState(), reference: newReference()}
		p.state.AddScheduler(batch)
		t.Repeat(p.steps())
		p.snapshot(t)
	})
}

// A pod's life reaches the model on three ways that know nothing of each other: the watch of live pods, the watch of
// finished pods, and the plugin that makes and takes back reservations. However they run apart, the end is the same.
func TestTheWaysOfAPodMayRunApart(t *testing.T) {
	live := []func(*model.State){
		func(s *model.State) { s.UpsertPod(newPod("p", in("train"))) },
		func(s *model.State) { s.UpsertPod(newPod("p", in("train"), on("node-0"))) },
		func(s *model.State) { s.UpsertPod(newPod("p", in("train"), running)) },
		func(s *model.State) { s.LeavePod("p") },
	}
	done := func(s *model.State) { s.UpsertPod(newPod("p", in("train"), succeeded)) }
	gone := func(s *model.State) { s.DeletePod("p") }
	plugin := []func(*model.State){
		func(s *model.State) { s.Assume("p", "node-0") },
		func(s *model.State) { s.Forget("p") },
		func(s *model.State) { s.Assume("p", "node-0") },
	}
	finishedJob := &model.Counts{}
	finishedJob.ByStatus[model.Succeeded] = 1
	for name, tc := range map[string]struct {
		finished []func(*model.State)
		want     *model.Counts
	}{
		"the pod has succeeded":                  {[]func(*model.State){done}, finishedJob},
		"the pod has succeeded and been deleted": {[]func(*model.State){done, gone}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				state := model.NewState()
				state.AddScheduler(batch)
				state.UpsertNode(newNode("node-0"))
				ways := [][]func(*model.State){live, tc.finished, plugin}
				for {
					ways = slices.DeleteFunc(ways, func(way []func(*model.State)) bool { return len(way) == 0 })
					if len(ways) == 0 {
						break
					}
					i := rapid.IntRange(0, len(ways)-1).Draw(t, "way")
					ways[i][0](state)
					ways[i] = ways[i][1:]
				}
				var got *model.Counts
				if job := state.Job(train); job != nil {
					got = &job.Counts
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Fatalf("counts at the end (-want,+got)\n%s", diff)
				}
				if used := sumsOf(state.Totals()).Used; used != "" {
					t.Fatalf("the pod is gone and still uses %s", used)
				}
			})
		})
	}
}
