// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// collected is longer than the writer waits for further changes before it writes.
const collected = 1100 * time.Millisecond

func TestTheStatusGoesWhereTheDefinitionHasIt(t *testing.T) {
	listFirst(t)
	notFound := apierrors.NewNotFound(schema.GroupResource{Resource: "podgroups"}, "train")
	for name, tc := range map[string]struct {
		// fail says what the API server answers to a patch; nil when it does as it is told.
		fail func(subresource string, nth int) error
		// first are the requests of the first write, second those of the next one.
		first, second []string
		written       bool
	}{
		"our definition has a status subresource": {
			fail:  func(string, int) error { return nil },
			first: []string{"patch/status"}, second: []string{"patch/status"}, written: true,
		},
		"Volcano's has none, and is asked for it once": {
			fail: func(subresource string, _ int) error {
				if subresource == "status" {
					return notFound
				}
				return nil
			},
			first: []string{"patch/status", "patch"}, second: []string{"patch"}, written: true,
		},
		"a PodGroup that is gone says nothing of its definition": {
			fail: func(_ string, nth int) error {
				if nth < 2 {
					return notFound
				}
				return nil
			},
			first: []string{"patch/status", "patch"}, second: []string{"patch/status"}, written: true,
		},
		"an API server in trouble is asked again": {
			fail: func(_ string, nth int) error {
				if nth < 2 {
					return apierrors.NewInternalError(errors.New("etcd is away"))
				}
				return nil
			},
			first: []string{"patch/status", "patch/status", "patch/status"}, second: []string{"patch/status"}, written: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t, podGroup(1))
				nth := -1
				d.groups.PrependReactor("patch", "podgroups", func(a clienttesting.Action) (bool, runtime.Object, error) {
					nth++
					err := tc.fail(a.GetSubresource(), nth)
					return err != nil, nil, err
				})
				go d.Run(t.Context())
				time.Sleep(collected)
				if diff := cmp.Diff(tc.first, d.podGroupWrites()); diff != "" {
					t.Errorf("first write (-want,+got)\n%s", diff)
				}
				d.forget()
				_, err := d.kube.CoreV1().Pods("ns").Create(t.Context(), member("a", running), metav1.CreateOptions{})
				d.check(err)
				time.Sleep(collected)
				if diff := cmp.Diff(tc.second, d.podGroupWrites()); diff != "" {
					t.Errorf("second write (-want,+got)\n%s", diff)
				}
				if got := d.podGroup().Status.Phase == volcano.PodGroupRunning; got != tc.written {
					t.Errorf("phase is %s in the end", d.podGroup().Status.Phase)
				}
			})
		})
	}
}

func TestThePatchSetsNothingButTheStatusOfThisPodGroup(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := open(t, podGroup(1, func(g *volcano.PodGroup) { g.Status.Running = 3 }))
		time.Sleep(collected)
		var got any
		for _, action := range d.groups.Actions() {
			if patch, ok := action.(clienttesting.PatchAction); ok {
				d.check(json.Unmarshal(patch.GetPatch(), &got))
			}
		}
		want := map[string]any{
			"metadata": map[string]any{"uid": "train-uid"},
			"status":   map[string]any{"phase": "Inqueue", "conditions": nil, "running": 0.0, "succeeded": 0.0, "failed": 0.0},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want,+got)\n%s", diff)
		}
	})
}

func TestNothingIsWrittenBeforeThisSchedulerLeads(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, podGroup(1), member("a"))
		d.Waits(train, noRoom)
		time.Sleep(time.Minute)
		if writes := slices.Concat(d.podGroupWrites(), d.writes(d.kube.Actions(), "pods")); len(writes) > 0 {
			t.Errorf("a standby has written: %v", writes)
		}
		go d.Run(t.Context())
		time.Sleep(collected)
		if got := d.podGroupWrites(); !slices.Equal(got, []string{"patch/status"}) {
			t.Errorf("writes after the scheduler began to lead are %v, want what is due", got)
		}
	})
}

func TestTheStepsOfAStartAreOneWrite(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := open(t, podGroup(3), member("a"), member("b"), member("c"))
		time.Sleep(collected)
		d.forget()
		for _, name := range []string{"a", "b", "c"} {
			d.put(member(name, bound))
			time.Sleep(100 * time.Millisecond)
			d.put(member(name, running))
		}
		time.Sleep(collected)
		if diff := cmp.Diff([]string{"patch/status"}, d.podGroupWrites()); diff != "" {
			t.Errorf("(-want,+got)\n%s", diff)
		}
		if got := d.podGroup().Status; got.Phase != volcano.PodGroupRunning || got.Running != 3 {
			t.Errorf("status is %s with %d running, want Running with 3", got.Phase, got.Running)
		}
		d.forget()
		d.put(member("a", running, func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }))
		time.Sleep(time.Minute)
		if writes := d.podGroupWrites(); len(writes) > 0 {
			t.Errorf("writes when nothing of the status has changed: %v", writes)
		}
	})
}

func TestNumbersOfTheStatusAreKeptUp(t *testing.T) {
	listFirst(t)
	// numbers are status.running, succeeded and failed.
	type numbers struct{ Running, Succeeded, Failed int32 }
	ends := func(phase corev1.PodPhase) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "node-0", phase }
	}
	for name, tc := range map[string]struct {
		then func(*corev1.Pod)
		want numbers
	}{
		"one more runs":      {running, numbers{Running: 2}},
		"one more succeeded": {ends(corev1.PodSucceeded), numbers{Running: 1, Succeeded: 1}},
		"one more failed":    {ends(corev1.PodFailed), numbers{Running: 1, Failed: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := open(t, podGroup(1), member("a", running), member("b", bound))
				time.Sleep(collected)
				d.put(member("b", tc.then))
				time.Sleep(collected)
				got := d.podGroup().Status
				if diff := cmp.Diff(tc.want, numbers{got.Running, got.Succeeded, got.Failed}); diff != "" {
					t.Errorf("(-want,+got)\n%s", diff)
				}
			})
		})
	}
}

func TestAPodGroupWithoutPodsIsAnsweredAtOnce(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := open(t)
		_, err := d.groups.SchedulingV1beta1().PodGroups("ns").Create(t.Context(), podGroup(2), metav1.CreateOptions{})
		d.check(err)
		synctest.Wait()
		d.state.Admit(train, true)
		time.Sleep(100 * time.Millisecond)
		if got := d.podGroup().Status.Phase; got != volcano.PodGroupInqueue {
			t.Errorf("phase is %s, want Inqueue: its controller waits for that", got)
		}
	})
}

func TestAdmissionDecidesThePhase(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t, podGroup(2))
		d.state.Admit(train, false)
		go d.Run(t.Context())
		for _, step := range []struct {
			admitted bool
			want     volcano.PodGroupPhase
		}{{false, volcano.PodGroupPending}, {true, volcano.PodGroupInqueue}, {false, volcano.PodGroupPending}} {
			d.state.Admit(train, step.admitted)
			time.Sleep(100 * time.Millisecond)
			if got := d.podGroup().Status.Phase; got != step.want {
				t.Fatalf("admitted is %t and the phase %s, want %s", step.admitted, got, step.want)
			}
		}
	})
}

// The controller of a job creates its pods one after the other; that some are missing is said when it had its time.
func TestMissingPodsAreSaidAfterAWhile(t *testing.T) {
	listFirst(t)
	role := model.Reason{Kind: model.NotEnoughPodsOfTask, Message: "0 of 1 pods of task \"ps\" exist", Subject: "ps"}
	unschedulable := func(reason, message string) map[string]string {
		return map[string]string{"Unschedulable": "True " + reason + ": " + message}
	}
	// step is what the dispatcher reports, and when, in milliseconds since the start.
	type step struct {
		at     time.Duration
		reason model.Reason
	}
	for name, tc := range map[string]struct {
		steps []step
		at    time.Duration
		want  map[string]string
	}{
		"not at once":                     {[]step{{0, noPods}}, 2900, map[string]string{}},
		"but then":                        {[]step{{0, noPods}}, 3100, unschedulable("NotEnoughTasks", "1 of 2 pods exist")},
		"of a role likewise not at once":  {[]step{{0, role}}, 2900, map[string]string{}},
		"but then, too":                   {[]step{{0, role}}, 3100, unschedulable("NotEnoughPodsOfTask", `0 of 1 pods of task "ps" exist`)},
		"not when they came meanwhile":    {[]step{{0, noPods}, {2000, model.Reason{}}}, 9000, map[string]string{}},
		"the time runs from the first":    {[]step{{0, noPods}, {2000, noPods}}, 3100, unschedulable("NotEnoughTasks", "1 of 2 pods exist")},
		"any other reason is said sooner": {[]step{{0, noRoom}}, 1100, unschedulable("NotEnoughResources", "no room for 2 of 2 pods")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := open(t, podGroup(2), member("a"))
				start := time.Now()
				for _, s := range tc.steps {
					time.Sleep(time.Until(start.Add(s.at * time.Millisecond)))
					d.Waits(train, s.reason)
				}
				time.Sleep(time.Until(start.Add(tc.at * time.Millisecond)))
				got := map[string]string{}
				for _, c := range d.podGroup().Status.Conditions {
					got[string(c.Type)] = string(c.Status) + " " + c.Reason + ": " + c.Message
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("conditions (-want,+got)\n%s", diff)
				}
			})
		})
	}
}
