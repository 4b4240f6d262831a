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
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

// What people are told of a gang: an event when the reason is another one, never one for other numbers.
func TestEventsAreSaidOnceAReason(t *testing.T) {
	listFirst(t)
	const (
		room   = `Warning Unschedulable on PodGroup train: no room for 2 of 2 pods`
		closed = `Warning Unschedulable on PodGroup train: queue "q" is Closed`
	)
	otherNumbers, otherSubject := noRoom, noRoom
	otherNumbers.Message = "no room for 1 of 2 pods"
	otherSubject.Subject, otherSubject.Message = "memory", "too little memory"
	for name, tc := range map[string]struct {
		// reasons are what the dispatcher reports, one after the other.
		reasons []model.Reason
		want    []string
	}{
		"a gang that does not fit":         {[]model.Reason{noRoom}, []string{room}},
		"the same with other numbers":      {[]model.Reason{noRoom, otherNumbers}, []string{room}},
		"another resource is short":        {[]model.Reason{noRoom, otherSubject}, []string{room, "Warning Unschedulable on PodGroup train: too little memory"}},
		"another reason":                   {[]model.Reason{noRoom, shut}, []string{room, closed}},
		"there and back":                   {[]model.Reason{noRoom, shut, noRoom}, []string{room, room, closed}},
		"nothing to wait for, then again":  {[]model.Reason{noRoom, {}, noRoom}, []string{room, room}},
		"nothing to wait for and no start": {[]model.Reason{{}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := open(t, podGroup(2), member("a"), member("b"))
				for _, reason := range tc.reasons {
					d.Waits(train, reason)
					time.Sleep(collected)
				}
				if diff := cmp.Diff(tc.want, d.events()); diff != "" {
					t.Errorf("(-want,+got)\n%s", diff)
				}
			})
		})
	}
}

func TestAGangThatStartsIsSaidToBeReadyOnce(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := open(t, podGroup(2), member("a"), member("b"))
		time.Sleep(collected)
		d.put(member("a", bound))
		time.Sleep(collected)
		if got := d.events(); len(got) > 0 {
			t.Errorf("half a gang is on nodes, and told is %q", got)
		}
		d.put(member("b", bound))
		time.Sleep(collected)
		d.put(member("b", running))
		time.Sleep(collected)
		if diff := cmp.Diff([]string{"Normal Scheduled on PodGroup train: pod group is ready"}, d.events()); diff != "" {
			t.Errorf("(-want,+got)\n%s", diff)
		}
	})
}

func TestAMalformedPodIsTold(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := open(t, podGroup(1))
		synctest.Wait()
		malformed := member("a", func(p *corev1.Pod) { p.Annotations[model.TaskPriorityAnnotation] = "high" })
		_, err := d.kube.CoreV1().Pods("ns").Create(t.Context(), malformed, metav1.CreateOptions{})
		d.check(err)
		time.Sleep(collected)
		want := []string{`Warning MalformedAnnotation on Pod a: annotation volcano.sh/task-priority is "high": ` +
			`write a whole number of 32 bits; priority 1 is used until then`}
		if diff := cmp.Diff(want, d.events()); diff != "" {
			t.Errorf("(-want,+got)\n%s", diff)
		}
	})
}

// TestWhatWasMalformedBeforeIsTold: what is wrong with objects that were there before the scheduler led is told when it leads, once.
func TestWhatWasMalformedBeforeIsTold(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		group, q := podGroup(1), queue("q", volcano.QueueStateOpen)
		group.Annotations = map[string]string{model.HalfTimeoutAnnotation: "soon"}
		q.Spec.Weight = -1
		d := open(t, group, q, member("a", func(p *corev1.Pod) { p.Annotations[model.TaskPriorityAnnotation] = "high" }), member("b"))
		time.Sleep(collected)
		want := []string{
			`Warning MalformedAnnotation on Pod a: annotation volcano.sh/task-priority is "high": write a whole number of 32 bits; priority 1 is used until then`,
			`Warning MalformedAnnotation on PodGroup train: annotation caldera.dev/half-timeout of PodGroup ns/train is "soon": ` +
				`write a duration of at least 1s, such as 90s or 10m, or 0s, which is for ever; the scheduler's halfTimeout holds until then`,
		}
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(d.events()))); diff != "" {
			t.Errorf("(-want,+got)\n%s", diff)
		}
		want = []string{"Warning MalformedAnnotation on Queue q: spec.weight is -1: set it to 1 or more; 1 is used until then"}
		if diff := cmp.Diff(want, d.eventsIn(metav1.NamespaceDefault)); diff != "" {
			t.Errorf("of queues (-want,+got)\n%s", diff)
		}
	})
}

// The condition PodScheduled=False is what tells a pod's owner why it waits, and with the reason Unschedulable what makes
// cluster autoscalers add nodes.
func TestPodsAreToldWhyTheyWait(t *testing.T) {
	listFirst(t)
	alone := model.JobKey{Source: model.FromPod, Namespace: "ns", Name: "alone"}
	labelled := model.JobKey{Source: model.FromCoscheduling, Namespace: "ns", Name: "train"}
	noGroup := model.Reason{Kind: model.PodGroupNotFound, Message: "PodGroup ns/train does not exist"}
	const full = "Unschedulable: no room for 2 of 2 pods"
	for name, tc := range map[string]struct {
		objects []runtime.Object
		job     model.JobKey
		reason  model.Reason
		// want are the conditions of all pods in the end, written how many requests were made for them.
		want    map[string]string
		written int
		events  []string
	}{
		"members that wait for room, and no others": {
			objects: []runtime.Object{podGroup(4), member("a"), member("b"), member("held", gated), member("on-node", bound), newPod("foreign")},
			job:     train, reason: noRoom,
			want: map[string]string{"a": full, "b": full}, written: 2,
			events: []string{"Warning Unschedulable on PodGroup train: no room for 2 of 2 pods"},
		},
		"a member that has been told so is not told again": {
			objects: []runtime.Object{podGroup(2), member("a", told("Unschedulable", "0/3 nodes are available")), member("b")},
			job:     train, reason: noRoom,
			want: map[string]string{"a": "Unschedulable: 0/3 nodes are available", "b": full}, written: 1,
			events: []string{"Warning Unschedulable on PodGroup train: no room for 2 of 2 pods"},
		},
		"a member that has been told something else is": {
			objects: []runtime.Object{podGroup(1), member("a", told("SchedulingGated", "gates"))},
			job:     train, reason: noRoom,
			want: map[string]string{"a": full}, written: 1,
			events: []string{"Warning Unschedulable on PodGroup train: no room for 2 of 2 pods"},
		},
		"no autoscaler can open a queue: the pods are not Unschedulable": {
			objects: []runtime.Object{podGroup(1), member("a"), member("held", gated)},
			job:     train, reason: shut,
			want: map[string]string{"a": `QueueClosed: queue "q" is Closed`}, written: 1,
			events: []string{`Warning Unschedulable on PodGroup train: queue "q" is Closed`},
		},
		"members without scheduling gates, where others carry some": {
			objects: []runtime.Object{podGroup(2), member("a"), member("held", gated)},
			job:     train, reason: gates,
			want: map[string]string{"a": "MembersSchedulingGated: 2 of 2 pods carry scheduling gates"}, written: 1,
			events: []string{"Warning Unschedulable on PodGroup train: 2 of 2 pods carry scheduling gates"},
		},
		"a pod on its own": {
			objects: []runtime.Object{newPod("alone")},
			job:     alone, reason: noRoom,
			want: map[string]string{"alone": full}, written: 1,
			events: []string{"Warning FailedScheduling on Pod alone: no room for 2 of 2 pods"},
		},
		"a pod on its own whose queue is shut: there is no PodGroup to tell": {
			objects: []runtime.Object{newPod("alone")},
			job:     alone, reason: shut,
			want: map[string]string{"alone": `QueueClosed: queue "q" is Closed`}, written: 1,
			events: []string{`Warning FailedScheduling on Pod alone: queue "q" is Closed`},
		},
		"pods whose PodGroup does not exist": {
			objects: []runtime.Object{member("a"), member("b")},
			job:     train, reason: noGroup,
			want: map[string]string{
				"a": "PodGroupNotFound: PodGroup ns/train does not exist", "b": "PodGroupNotFound: PodGroup ns/train does not exist",
			},
			written: 2,
			events: []string{
				"Warning FailedScheduling on Pod a: PodGroup ns/train does not exist",
				"Warning FailedScheduling on Pod b: PodGroup ns/train does not exist",
			},
		},
		"members of a gang without a PodGroup, whatever they wait for": {
			objects: []runtime.Object{
				&batchv1.Job{ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: "work", UID: "work-uid", Annotations: map[string]string{model.MinMemberAnnotation: "2"},
				}},
				newPod("a", func(p *corev1.Pod) {
					p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "work", UID: "work-uid", Controller: new(true)}}
				}),
			},
			job: model.OwnerKey("Job", "ns", "work", "work-uid"), reason: shut,
			want: map[string]string{"a": `QueueClosed: queue "q" is Closed`}, written: 1,
			events: []string{`Warning Unschedulable on Job work: queue "q" is Closed`},
		},
		"members of a PodGroup of scheduler-plugins": {
			objects: []runtime.Object{
				&coscheduling.PodGroup{
					TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.x-k8s.io/v1alpha1", Kind: "PodGroup"},
					ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train"},
				},
				newPod("a", func(p *corev1.Pod) { p.Labels = map[string]string{model.CoschedulingLabel: "train"} }),
			},
			job: labelled, reason: noRoom,
			want: map[string]string{"a": full}, written: 1,
			events: []string{"Warning Unschedulable on PodGroup train: no room for 2 of 2 pods"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := open(t, tc.objects...)
				time.Sleep(collected)
				d.forget()
				d.Waits(tc.job, tc.reason)
				time.Sleep(time.Minute)
				if diff := cmp.Diff(tc.want, d.scheduledConditions()); diff != "" {
					t.Errorf("conditions of the pods (-want,+got)\n%s", diff)
				}
				if got := len(d.writes(d.kube.Actions(), "pods")); got != tc.written {
					t.Errorf("%d requests for pods, want %d", got, tc.written)
				}
				if diff := cmp.Diff(tc.events, d.events()); diff != "" {
					t.Errorf("events (-want,+got)\n%s", diff)
				}
			})
		})
	}
}

// TestAPodBeforeItsQueuesGateIsToldWhy: its condition keeps the reason by which clients know such pods.
func TestAPodBeforeItsQueuesGateIsToldWhy(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := open(t, newPod("alone", func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: model.QueueGate}}
			told("SchedulingGated", "blocked due to non-empty scheduling gates")(p)
		}))
		full := model.Reason{Kind: model.QueueFull, Message: "the queue is full"}
		d.Waits(model.JobKey{Source: model.FromPod, Namespace: "ns", Name: "alone"}, full)
		time.Sleep(2 * collected)
		if diff := cmp.Diff(map[string]string{"alone": "SchedulingGated: the queue is full"}, d.scheduledConditions()); diff != "" {
			t.Errorf("conditions of the pods (-want,+got)\n%s", diff)
		}
		if got := len(d.writes(d.kube.Actions(), "pods")); got != 1 {
			t.Errorf("%d requests for pods, want one", got)
		}
	})
}

// TestAPodThatAPluginHoldsIsToldWhy: nobody else tells its owner. Of scheduling gates the API server tells.
func TestAPodThatAPluginHoldsIsToldWhy(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := open(t, newPod("alone"), newPod("gated", gated))
		held := model.Reason{Kind: model.SchedulingGated, Subject: "DynamicResources", Message: "kept out by plugin DynamicResources"}
		d.state.Hold("alone-uid", "DynamicResources")
		for _, name := range []string{"alone", "gated"} {
			d.Waits(model.JobKey{Source: model.FromPod, Namespace: "ns", Name: name}, held)
		}
		time.Sleep(collected)
		want := map[string]string{"alone": "SchedulingGated: kept out by plugin DynamicResources"}
		if diff := cmp.Diff(want, d.scheduledConditions()); diff != "" {
			t.Errorf("conditions of the pods (-want,+got)\n%s", diff)
		}
	})
}

func TestAMemberThatComesLaterIsToldToo(t *testing.T) {
	listFirst(t)
	for name, job := range map[string]struct {
		key    model.JobKey
		group  runtime.Object
		member func(*corev1.Pod)
	}{
		"of a Volcano PodGroup": {
			train, podGroup(1), func(p *corev1.Pod) { p.Annotations = map[string]string{model.GroupNameAnnotation: "train"} },
		},
		"of a PodGroup of scheduler-plugins": {
			model.JobKey{Source: model.FromCoscheduling, Namespace: "ns", Name: "train"},
			&coscheduling.PodGroup{
				TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.x-k8s.io/v1alpha1", Kind: "PodGroup"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train"},
			},
			func(p *corev1.Pod) { p.Labels = map[string]string{model.CoschedulingLabel: "train"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := open(t, job.group, newPod("first", job.member))
				d.Waits(job.key, noRoom)
				time.Sleep(collected)
				_, err := d.kube.CoreV1().Pods("ns").Create(t.Context(), newPod("later", job.member), metav1.CreateOptions{})
				d.check(err)
				time.Sleep(collected)
				const full = "Unschedulable: no room for 2 of 2 pods"
				if diff := cmp.Diff(map[string]string{"first": full, "later": full}, d.scheduledConditions()); diff != "" {
					t.Errorf("conditions of the pods (-want,+got)\n%s", diff)
				}
			})
		})
	}
}

func TestAConditionThatCannotBeWritten(t *testing.T) {
	listFirst(t)
	const full = "Unschedulable: no room for 2 of 2 pods"
	for name, tc := range map[string]struct {
		answer error
		// want are the conditions in the end, after the API server has been well again for half a minute.
		want map[string]string
	}{
		"because the API server is in trouble is tried again": {
			apierrors.NewInternalError(errors.New("etcd is away")), map[string]string{"a": full, "b": full},
		},
		"because the pod is gone is not": {
			apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, ""), map[string]string{},
		},
		"because somebody else writes the pod is tried again": {
			apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "", errors.New("the object has been modified")), map[string]string{"a": full, "b": full},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t, podGroup(2), member("a"), member("b"))
				well := time.Now().Add(30 * time.Second)
				d.kube.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					return time.Now().Before(well), nil, tc.answer
				})
				go d.Run(t.Context())
				d.Waits(train, noRoom)
				time.Sleep(time.Minute)
				if diff := cmp.Diff(tc.want, d.scheduledConditions()); diff != "" {
					t.Errorf("conditions of the pods (-want,+got)\n%s", diff)
				}
				if diff := cmp.Diff([]string{"Warning Unschedulable on PodGroup train: no room for 2 of 2 pods"}, d.events()); diff != "" {
					t.Errorf("events (-want,+got)\n%s", diff)
				}
			})
		})
	}
}

func TestThePatchSetsNothingButTheConditionOfThisPod(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := open(t, podGroup(1), member("a", func(p *corev1.Pod) { p.Generation = 3 }))
		synctest.Wait()
		d.Waits(train, noRoom)
		time.Sleep(collected)
		var got any
		for _, action := range d.kube.Actions() {
			if patch, ok := action.(clienttesting.PatchAction); ok && patch.GetResource().Resource == "pods" {
				if patch.GetSubresource() != "status" {
					t.Errorf("the patch goes to %q, want the status", patch.GetSubresource())
				}
				d.check(json.Unmarshal(patch.GetPatch(), &got))
			}
		}
		want := map[string]any{
			"metadata": map[string]any{"uid": "a-uid"},
			"status": map[string]any{"conditions": []any{map[string]any{
				"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room for 2 of 2 pods",
				"observedGeneration": 3.0, "lastProbeTime": nil, "lastTransitionTime": time.Now().Add(-100 * time.Millisecond).UTC().Format(time.RFC3339),
			}}},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want,+got)\n%s", diff)
		}
	})
}
