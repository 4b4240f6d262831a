// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// TestDiffer: what is more than people would pass over.
func TestDiffer(t *testing.T) {
	for _, tc := range []struct {
		before, after string
		want          bool
	}{
		{"", "", false},
		{"short by 64", "short by 64", false},
		{"short by 64", "short by 33", false},
		{"short by 64", "short by 32", true},
		{"short by 64", "short by 95", false},
		{"short by 64", "short by 96", true},
		{"short by 0", "short by 1", true},
		{"3/8 tasks", "4/8 tasks", false},
		{"3/8 tasks", "5/8 tasks", true},
		{"(5 held, limit 8)", "(6 held, limit 8)", false},
		{"(5 held, limit 8)", "(6 held, limit 16)", true},
		{"short by 1.5", "short by 1.6", false},
		{"short by 1.5", "short by 3.5", true},
		{"short by 512Mi", "short by 500Mi", false},
		{"short by 512Mi", "short by 1Gi", true},
		{"short by 8 cpu", "short by 8 memory", true},
		{"on node-17", "on node-18", true},
		{"by v1.27", "by v1.28", true},
		{"closed", "open", true},
	} {
		if got := status.Differ(tc.before, tc.after); got != tc.want {
			t.Errorf("%q and %q differ: %t, want %t", tc.before, tc.after, got, tc.want)
		}
	}
}

// counter is what is short now, for who asks.
type counter struct {
	mu    sync.Mutex
	short int
}

func (c *counter) set(short int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.short = short
}

func (c *counter) reason() model.Reason {
	c.mu.Lock()
	defer c.mu.Unlock()
	return model.Reason{Kind: model.NotEnoughResources, Subject: "cpu", FromNodes: true, Message: fmt.Sprintf("short by %d cpu", c.short)}
}

// followed is a fixture whose writer runs, and keeps the numbers up to date that objects show of a job.
func followed(t *testing.T, key model.JobKey, now *counter) *fixture {
	t.Helper()
	d := newFixture(t, podGroup(2), member("a"), member("b"), newPod("alone"))
	d.FollowNumbers(func() map[model.JobKey]model.Reason { return map[model.JobKey]model.Reason{key: now.reason()} })
	go d.Run(t.Context())
	d.Waits(key, now.reason())
	time.Sleep(10 * time.Second)
	return d
}

// shown is what the PodGroup and the pods say of why they wait, each message once.
func (d *fixture) shown() (messages []string) {
	for _, c := range d.podGroup().Status.Conditions {
		if c.Type == volcano.PodGroupUnschedulableType {
			messages = append(messages, c.Message)
		}
	}
	for _, said := range d.scheduledConditions() {
		messages = append(messages, said[len("Unschedulable: "):])
	}
	slices.Sort(messages)
	return slices.Compact(messages)
}

// TestNumbersAreKeptUpToDate: a little off they are written after four minutes, by half after one; that is no transition, and no event.
func TestNumbersAreKeptUpToDate(t *testing.T) {
	listFirst(t)
	for name, tc := range map[string]struct {
		short int
		// not is until when other numbers are not shown, by is when they are.
		not, by time.Duration
	}{
		"a little": {90, 3*time.Minute + 45*time.Second, 4*time.Minute + 35*time.Second},
		"by half":  {50, 45 * time.Second, time.Minute + 35*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := &counter{short: 100}
				begun := time.Now()
				d := followed(t, train, now)
				before, events := transitions(d), d.events()
				now.set(tc.short)
				check := func(want string) {
					t.Helper()
					if diff := cmp.Diff([]string{want}, d.shown()); diff != "" {
						t.Errorf("after %s objects say (-want,+got)\n%s", time.Since(begun), diff)
					}
				}
				time.Sleep(tc.not - time.Since(begun))
				check("short by 100 cpu")
				time.Sleep(tc.by - time.Since(begun))
				check(now.reason().Message)
				if diff := cmp.Diff(before, transitions(d)); diff != "" {
					t.Errorf("times of transitions (-before,+after)\n%s", diff)
				}
				if diff := cmp.Diff(events, d.events()); diff != "" {
					t.Errorf("events (-before,+after)\n%s", diff)
				}
			})
		})
	}
}

// transitions are when the conditions of the PodGroup and of pods became what they are.
func transitions(d *fixture) map[string]metav1.Time {
	d.t.Helper()
	times := map[string]metav1.Time{}
	for _, c := range d.podGroup().Status.Conditions {
		times["PodGroup "+string(c.Type)] = c.LastTransitionTime
	}
	pods, err := d.kube.CoreV1().Pods("ns").List(d.t.Context(), metav1.ListOptions{})
	d.check(err)
	for i := range pods.Items {
		for _, c := range pods.Items[i].Status.Conditions {
			times["pod "+pods.Items[i].Name] = c.LastTransitionTime
		}
	}
	return times
}

// TestWhatIsTrueIsNotWritten: numbers that stay, and what is like them, cost no writes. What somebody else has made of a condition is mended.
func TestWhatIsTrueIsNotWritten(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := followed(t, train, &counter{short: 100})
		d.forget()
		time.Sleep(time.Hour)
		if written := append(d.podGroupWrites(), d.writes(d.kube.Actions(), "pods")...); len(written) > 0 {
			t.Errorf("in an hour in which nothing happens these are written: %v", written)
		}
		d.put(member("a", told("Unschedulable", "0/3 nodes are available")))
		time.Sleep(5 * time.Minute)
		if diff := cmp.Diff([]string{"short by 100 cpu"}, d.shown()); diff != "" {
			t.Errorf("objects say (-want,+got)\n%s", diff)
		}
		if written := d.writes(d.kube.Actions(), "pods"); len(written) != 2 {
			t.Errorf("these are written: %v, want what the test wrote, and one patch", written)
		}
	})
}

// TestNumbersThatChangeAllTheTimeAreWrittenOnceAMinute: by more than half every seven seconds.
func TestNumbersThatChangeAllTheTimeAreWrittenOnceAMinute(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		now := &counter{short: 1}
		d := followed(t, train, now)
		d.forget()
		for i := range 600 {
			now.set(1 + 100*(i/7%2))
			time.Sleep(time.Second)
		}
		if n := len(d.podGroupWrites()); n < 5 || n > 10 {
			t.Errorf("in ten minutes the PodGroup is written %d times", n)
		}
		if n := len(d.writes(d.kube.Actions(), "pods")); n < 10 || n > 20 {
			t.Errorf("in ten minutes two pods are written %d times", n)
		}
	})
}

// TestAJobThatGoesToAndFro: it waits for another reason each second. It is written five times in a row, and then every fifteen seconds; in the end
// it says what is so.
func TestAJobThatGoesToAndFro(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		full := model.Reason{Kind: model.QueueFull, Subject: "q", Message: "queue q is full"}
		d := open(t, podGroup(2), member("a"), member("b"))
		time.Sleep(collected)
		d.forget()
		for i := range 300 {
			d.Waits(train, []model.Reason{noRoom, full}[i%2])
			time.Sleep(time.Second)
		}
		if n := len(d.podGroupWrites()); n < 15 || n > 26 {
			t.Errorf("in five minutes the PodGroup is written %d times", n)
		}
		if n := len(d.writes(d.kube.Actions(), "pods")); n > 52 {
			t.Errorf("in five minutes two pods are written %d times", n)
		}
		time.Sleep(30 * time.Second)
		if diff := cmp.Diff(map[string]string{"a": "QueueFull: queue q is full", "b": "QueueFull: queue q is full"}, d.scheduledConditions()); diff != "" {
			t.Errorf("conditions of the pods (-want,+got)\n%s", diff)
		}
		if c := d.podGroup().Status.Conditions; len(c) == 0 || c[0].Reason != string(model.QueueFull) {
			t.Errorf("the PodGroup says %+v", c)
		}
	})
}

// TestPodsThatPassTheirQueueSoonAreNotTold: nodes would not help, so that nobody has to know at once.
func TestPodsThatPassTheirQueueSoonAreNotTold(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := open(t, podGroup(1), member("a"))
		d.Waits(train, shut)
		time.Sleep(8 * time.Second)
		if told := d.scheduledConditions(); len(told) > 0 {
			t.Errorf("after 8 s pods say %v", told)
		}
		d.Waits(train, model.Reason{})
		time.Sleep(time.Minute)
		if told := d.scheduledConditions(); len(told) > 0 {
			t.Errorf("their queue was opened, and pods say %v", told)
		}
		d.Waits(train, shut)
		time.Sleep(12 * time.Second)
		if told := d.scheduledConditions(); len(told) != 1 {
			t.Errorf("after 12 s pods say %v", told)
		}
	})
}

// TestAPodOnItsOwnIsKeptUpToDate, without another event.
func TestAPodOnItsOwnIsKeptUpToDate(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		now := &counter{short: 100}
		d := followed(t, model.JobKey{Source: model.FromPod, Namespace: "ns", Name: "alone"}, now)
		now.set(10)
		time.Sleep(2 * time.Minute)
		if diff := cmp.Diff(map[string]string{"alone": corev1.PodReasonUnschedulable + ": short by 10 cpu"}, d.scheduledConditions()); diff != "" {
			t.Errorf("conditions of the pods (-want,+got)\n%s", diff)
		}
		if diff := cmp.Diff([]string{"Warning FailedScheduling on Pod alone: short by 100 cpu"}, d.events()); diff != "" {
			t.Errorf("events (-want,+got)\n%s", diff)
		}
	})
}

// TestALargeGangIsToldWhatIsSo: telling its pods takes ten minutes, and none of them is told what was so when the first one was. All are looked at
// again.
func TestALargeGangIsToldWhatIsSo(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		objects := []runtime.Object{podGroup(2)}
		for i := range 150 {
			objects = append(objects, member(fmt.Sprintf("p%d", i)))
		}
		d, now := newFixture(t, objects...), &counter{}
		defer d.Close()
		begun := time.Now()
		pass := func(took time.Duration) {
			time.Sleep(took)
			now.set(max(1, 600-int(time.Since(begun)/time.Second)))
			d.Waits(train, now.reason())
		}
		var late []string
		d.kube.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
			var patch struct {
				Status corev1.PodStatus `json:"status"`
			}
			d.check(json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &patch))
			said, short := patch.Status.Conditions[0].Message, 0
			if _, err := fmt.Sscanf(said, "short by %d cpu", &short); err != nil || short-now.short > 250 {
				late = append(late, fmt.Sprintf("%q, and it is %d", said, now.short))
			}
			return false, nil, nil
		})
		tell := func() int {
			d.forget()
			d.check(status.TellPods(d.Writer, t.Context(), train, func(context.Context, time.Duration) { pass(4 * time.Second) }))
			return len(d.writes(d.kube.Actions(), "pods"))
		}
		pass(0)
		if n := tell(); n != 150 || len(late) > 0 {
			t.Errorf("%d pods are told, %d of them what was so long ago: %v", n, len(late), late)
		}
		if n := tell(); n == 0 {
			t.Error("those that were told first keep what was so then")
		}
	})
}
