// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/caldera-scheduler/caldera/internal/testing/simulated"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/simulate/sandbox"
	"github.com/caldera-scheduler/caldera/pkg/visibility"
)

func cpus(list corev1.ResourceList) string { return list.Cpu().String() }

func viewsOf(box *sandbox.Sandbox) *visibility.Views {
	return visibility.New(visibility.Source{
		State: box.Core.State, Dispatch: box.Core.Dispatcher.View(), Ledger: box.Core.Evictions.Ledger, Clock: box.Clock,
		Leader: v1alpha1.Leader{Identity: "me"},
	})
}

// world is two queues below one, of which one is full, and jobs of two namespaces.
const world = `
apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: '8', memory: 32Gi, pods: '110'}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: lab}, spec: {weight: 1}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: narrow}, spec: {weight: 1, capability: {cpu: '2'}}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: idle}, spec: {weight: 1}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: runs, namespace: ml, labels: {team: a}, creationTimestamp: '2026-08-15T09:00:00Z'}
spec: {minMember: 1, queue: narrow}
---
apiVersion: v1
kind: Pod
metadata: {name: runs-0, namespace: ml, annotations: {scheduling.k8s.io/group-name: runs}, creationTimestamp: '2026-08-15T09:00:00Z'}
spec: {schedulerName: volcano, nodeName: n1, containers: [{name: c, image: i, resources: {requests: {cpu: '2'}}}]}
status: {phase: Running}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: late, namespace: ml, creationTimestamp: '2026-08-15T11:00:00Z'}
spec: {minMember: 1, queue: narrow}
---
apiVersion: v1
kind: Pod
metadata: {name: late-0, namespace: ml, annotations: {scheduling.k8s.io/group-name: late}, creationTimestamp: '2026-08-15T11:30:00Z'}
spec: {schedulerName: volcano, containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: early, namespace: ml, creationTimestamp: '2026-08-15T10:00:00Z'}
spec: {minMember: 2, queue: narrow}
---
apiVersion: v1
kind: Pod
metadata: {name: early-0, namespace: ml, annotations: {scheduling.k8s.io/group-name: early}, creationTimestamp: '2026-08-15T10:00:00Z'}
spec: {schedulerName: volcano, containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: big, namespace: web, creationTimestamp: '2026-08-15T10:00:00Z'}
spec: {minMember: 1, queue: lab}
---
apiVersion: v1
kind: Pod
metadata: {name: big-0, namespace: web, annotations: {scheduling.k8s.io/group-name: big}, creationTimestamp: '2026-08-15T10:00:00Z'}
spec: {schedulerName: volcano, containers: [{name: c, image: i, resources: {requests: {cpu: '6'}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: late, namespace: ml, creationTimestamp: '2026-08-15T11:00:00Z'}
spec: {schedulerName: volcano, containers: [{name: c, image: i, resources: {requests: {cpu: '100m'}}}]}
`

func TestJobsSayWhyTheyWait(t *testing.T) {
	views := viewsOf(simulated.Settled(t, world))
	by := map[string]v1alpha1.JobView{}
	var names []string
	for _, j := range views.Jobs() {
		by[j.Namespace+"/"+j.Name] = j
		names = append(names, j.Namespace+"/"+j.Name)
	}
	if want := []string{"ml/early", "ml/late", "ml/pod:late", "ml/runs", "web/big"}; !cmp.Equal(want, names) {
		t.Fatalf("the jobs are %v, want %v", names, want)
	}
	runs := by["ml/runs"]
	want := v1alpha1.JobView{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ml", Name: "runs", UID: runs.UID, Labels: map[string]string{"team": "a"},
			CreationTimestamp: metav1.NewTime(time.Date(2026, 8, 15, 9, 0, 0, 0, time.UTC)),
		},
		Status: v1alpha1.JobViewStatus{
			AsOf: metav1.NewTime(simulated.Noon), Object: v1alpha1.ObjectReference{APIVersion: "scheduling.volcano.sh/v1beta1", Kind: "PodGroup", Name: "runs"},
			Queue: "narrow", Phase: v1alpha1.JobRunning, MinMember: 1, Pods: v1alpha1.JobPods{Total: 1, Running: 1}, Held: runs.Status.Held,
			Missing: corev1.ResourceList{},
		},
	}
	if diff := cmp.Diff(want, runs); diff != "" {
		t.Errorf("a job that runs (-want,+got)\n%s", diff)
	}
	if cpu := cpus(runs.Status.Held); cpu != "2" {
		t.Errorf("it holds %s cpus, want 2", cpu)
	}
	for name, want := range map[string]struct {
		since  time.Time
		place  v1alpha1.Position
		reason model.ReasonKind
		nodes  bool
		phase  v1alpha1.JobPhase
	}{
		// It lacks a pod.
		"ml/early": {simulated.Noon.Add(-2 * time.Hour), v1alpha1.Position{InQueue: 1, OfQueue: 2}, model.NotEnoughTasks, false, v1alpha1.JobPending},
		"ml/late":  {simulated.Noon.Add(-30 * time.Minute), v1alpha1.Position{InQueue: 2, OfQueue: 2}, model.NotAdmitted, false, v1alpha1.JobPending},
		"web/big":  {simulated.Noon.Add(-2 * time.Hour), v1alpha1.Position{InQueue: 1, OfQueue: 1}, model.NotEnoughResources, true, v1alpha1.JobInqueue},
	} {
		got := by[name].Status
		if !got.Waiting || got.WaitingSince == nil || !got.WaitingSince.Time.Equal(want.since) || got.Phase != want.phase {
			t.Errorf("%s waits since %v, and is %s; want %v, %s", name, got.WaitingSince, got.Phase, want.since, want.phase)
		}
		if p := got.Position; p == nil || p.InQueue != want.place.InQueue || p.OfQueue != want.place.OfQueue || p.OfQueues != 2 {
			t.Errorf("%s is in place %+v, want %+v of 2 queues", name, p, want.place)
		}
		if r := got.Reason; r == nil || r.Type != string(want.reason) || r.FromNodes != want.nodes || r.Message == "" {
			t.Errorf("%s waits for %+v, want %s", name, r, want.reason)
		}
	}
}

func TestQueuesCountWhatWaitsBelowThem(t *testing.T) {
	views := viewsOf(simulated.Settled(t, world))
	by := map[string]v1alpha1.QueueViewStatus{}
	for _, q := range views.Queues() {
		by[q.Name] = q.Status
	}
	for name, want := range map[string]struct {
		waiting int32
		since   *metav1.Time
		held    string
	}{
		"narrow": {2, new(metav1.NewTime(simulated.Noon.Add(-2 * time.Hour))), "2"}, "lab": {1, new(metav1.NewTime(simulated.Noon.Add(-2 * time.Hour))), "0"}, "idle": {0, nil, "0"},
	} {
		got, ok := by[name]
		if held := cpus(got.Held); !ok || got.Waiting != want.waiting || !got.WaitingSince.Equal(want.since) || held != want.held {
			t.Errorf("queue %s: %d wait since %v, %s cpus are held; want %+v", name, got.Waiting, got.WaitingSince, held, want)
		}
	}
	if limit := cpus(by["narrow"].Limit); limit != "2" {
		t.Errorf("queue narrow may hold %s cpus, want 2", limit)
	}
	if state := by["lab"].State; state != "Open" {
		t.Errorf("queue lab is %s, want Open", state)
	}
}

func TestANamespaceSeesItsQueuesOnly(t *testing.T) {
	views := viewsOf(simulated.Settled(t, world))
	for namespace, want := range map[string][]string{"ml": {"ml/default", "ml/narrow"}, "web": {"web/lab"}, "none": nil, "": {"ml/default", "ml/narrow", "web/lab"}} {
		var got []string
		for _, q := range views.LocalQueues(namespace) {
			if q.Name != "root" {
				got = append(got, q.Namespace+"/"+q.Name)
			}
		}
		if !cmp.Equal(want, got) {
			t.Errorf("namespace %q sees %v, want %v", namespace, got, want)
		}
	}
}

// However many ask, the views of jobs are made once a second.
func TestViewsAreMadeOnceASecond(t *testing.T) {
	box := simulated.Settled(t, world)
	views := viewsOf(box)
	before := views.Jobs()
	if err := box.API.Remove(memory.Pods, "ml", "late"); err != nil {
		t.Fatal(err)
	}
	if err := box.Deliver(); err != nil {
		t.Fatal(err)
	}
	box.Clock.Step(visibility.Freshness - 1)
	if again := views.Jobs(); len(again) != len(before) {
		t.Errorf("within a second there are %d jobs, want the %d of before", len(again), len(before))
	}
	box.Clock.Step(1)
	if again := views.Jobs(); len(again) != len(before)-1 {
		t.Errorf("after a second there are %d jobs, want %d", len(again), len(before)-1)
	}
}

func TestTheClusterIsSummedUp(t *testing.T) {
	got := viewsOf(simulated.Settled(t, world)).Cluster().Status
	want := []v1alpha1.ReasonCount{{Type: "NotAdmitted", Jobs: 1}, {Type: "NotEnoughResources", Jobs: 1}, {Type: "NotEnoughTasks", Jobs: 1}}
	if got.Nodes != 1 || got.Waiting != 3 || got.Leader.Identity != "me" || !cmp.Equal(want, got.Reasons) {
		t.Errorf("the cluster is %+v", got)
	}
}

// ledger has one decision for a job of namespace ml, with victims there and in namespace web.
func ledger() *eviction.Ledger {
	l := eviction.NewLedger(10, time.Minute)
	job := func(namespace, name string) model.JobKey {
		return model.JobKey{Source: model.FromVolcano, Namespace: namespace, Name: name}
	}
	victim := func(namespace, name string) *eviction.Victim {
		return &eviction.Victim{
			Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, UID: types.UID(namespace + "/" + name),
			Job: job(namespace, "victims"), Queue: namespace, Node: "n1", Why: "lower priority",
		}
	}
	d := l.Begin(simulated.Noon, eviction.Decision{
		Action: eviction.Reclaim, Beneficiary: job("ml", "train"), Queue: "ml", Members: []eviction.Member{{Namespace: "ml", Name: "train-0", Node: "n1"}},
		Victims: []*eviction.Victim{victim("ml", "a"), victim("web", "b"), victim("web", "c")}, Kept: []eviction.Kept{{Reason: "higher priority", Pods: 3}},
	})
	l.Sent(d.ID, "web/b")
	l.Refused("web/b", "a budget forbids it", simulated.Noon)
	l.Begin(simulated.Noon.Add(time.Minute), eviction.Decision{Action: eviction.Shuffle, Victims: []*eviction.Victim{victim("web", "d")}})
	return l
}

func TestANamespaceSeesItsOwnPodsInDecisions(t *testing.T) {
	views := visibility.New(visibility.Source{Ledger: ledger(), Clock: clocktesting.NewFakeClock(simulated.Noon)})
	type seen struct {
		Name, Namespace, Job, Problem string
		Members, Pods, Others         int
		Victims                       string
	}
	for namespace, want := range map[string][]seen{
		"": {
			{"2", "web", "", "", 0, 0, 0, "web/d"},
			{"1", "ml", "ml/train", "evicting pod web/b was refused: a budget forbids it", 1, 1, 0, "ml/a web/b web/c"},
		},
		"ml":   {{"1", "ml", "ml/train", "evicting pod web/b was refused: a budget forbids it", 1, 1, 2, "ml/a"}},
		"web":  {{"2", "web", "", "", 0, 0, 0, "web/d"}, {"1", "web", "ml/train", "", 0, 1, 1, "web/b web/c"}},
		"none": nil,
	} {
		var got []seen
		for _, d := range views.Evictions(namespace) {
			s := seen{d.Name, d.Namespace, "", d.Status.Problem, len(d.Status.Members), int(d.Status.Pods), int(d.Status.OtherVictims), ""}
			if job := d.Status.Job; job != nil {
				s.Job = job.Namespace + "/" + job.Name
			}
			var victims []string
			for _, v := range d.Status.Victims {
				victims = append(victims, v.Namespace+"/"+v.Name)
			}
			s.Victims = strings.Join(victims, " ")
			got = append(got, s)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("namespace %q (-want,+got)\n%s", namespace, diff)
		}
	}
}
