// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	native "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/model/informer"
)

// TestNobodyWaitsForGroupsThatMayNotBeRead: a scheduler with a role from before it knew Kubernetes' PodGroups starts, and follows those of
// others. It follows Kubernetes' once its role lets it.
func TestNobodyWaitsForGroupsThatMayNotBeRead(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		object := metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "u"}
		clients, _ := groupAPIs([]string{"scheduling.volcano.sh/v1beta1", "scheduling.k8s.io/v1beta1"}, []runtime.Object{&volcano.PodGroup{ObjectMeta: object}}, nil)
		kube := fake.NewClientset(&native.PodGroup{ObjectMeta: object})
		var allowed atomic.Bool
		kube.PrependReactor("list", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !allowed.Load(), nil, apierrors.NewForbidden(native.Resource("podgroups"), "", errors.New("no role says so"))
		})
		clients.Kube = kube
		state := newState()
		followGroups(t, state, clients)
		own := model.JobKey{Source: model.FromNative, Namespace: "ns", Name: "train"}
		if state.Job(train) == nil || state.Job(own) != nil {
			t.Errorf("Volcano's PodGroup is known: %t, that which may not be read: %t", state.Job(train) != nil, state.Job(own) != nil)
		}
		allowed.Store(true)
		time.Sleep(20 * time.Second)
		if state.Job(own) == nil {
			t.Error("the PodGroup is not known though it may be read by now")
		}
	})
}

// TestNativeGroup: what is read from a PodGroup of Kubernetes' own.
func TestNativeGroup(t *testing.T) {
	created := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	g := informer.NativeGroup(&native.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "train", UID: "u", CreationTimestamp: created,
			Annotations: map[string]string{model.QueueAnnotation: "research", model.HalfTimeoutAnnotation: "1m"},
		},
		Spec: native.PodGroupSpec{
			SchedulingPolicy:      native.PodGroupSchedulingPolicy{Gang: &native.GangSchedulingPolicy{MinCount: 4}},
			SchedulingConstraints: &native.PodGroupSchedulingConstraints{Topology: []native.TopologyConstraint{{Key: "rack"}}},
			DisruptionMode:        &native.DisruptionMode{All: &native.AllDisruptionMode{}},
			PriorityClassName:     "high", Priority: new(int32(7)),
		},
		Status: native.PodGroupStatus{Conditions: []metav1.Condition{{
			Type: native.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue, Message: "started with a minimum of 3 tasks",
		}}},
	})
	if g.UID != "u" || g.Queue != "research" || g.MinMember != 4 || g.TopologyKey != "rack" || !g.Whole || g.PriorityClass != "high" ||
		*g.Priority != 7 || g.Start.Tasks != 3 || !g.Created.Equal(created.Time) || g.Problem != "" {
		t.Errorf("read %+v", g)
	}
	basic := informer.NativeGroup(&native.PodGroup{Spec: native.PodGroupSpec{
		SchedulingPolicy: native.PodGroupSchedulingPolicy{Basic: &native.BasicSchedulingPolicy{}},
		DisruptionMode:   &native.DisruptionMode{Single: &native.SingleDisruptionMode{}},
	}})
	if basic.MinMember != 0 || basic.Whole || basic.Queue != "" || basic.Start.Tasks != 0 {
		t.Errorf("of the policy basic %+v was read", basic)
	}
}

// TestWhatANativeGroupStartedWith: one that another scheduler placed was whole; of one whose binds may be refused nobody knows yet.
func TestWhatANativeGroupStartedWith(t *testing.T) {
	for message, want := range map[string]int{
		"started with a minimum of 3 tasks": 3, "": 4, "all pods are scheduled": 4, model.Unconfirmed: 0,
	} {
		for status, want := range map[metav1.ConditionStatus]int{metav1.ConditionTrue: want, metav1.ConditionFalse: 0} {
			g := informer.NativeGroup(&native.PodGroup{
				Spec:   native.PodGroupSpec{SchedulingPolicy: native.PodGroupSchedulingPolicy{Gang: &native.GangSchedulingPolicy{MinCount: 4}}},
				Status: native.PodGroupStatus{Conditions: []metav1.Condition{{Type: native.PodGroupInitiallyScheduled, Status: status, Message: message}}},
			})
			if g.Start.Tasks != want {
				t.Errorf("%s with %q is read as a start with %d, want %d", status, message, g.Start.Tasks, want)
			}
		}
	}
}

// TestWhatOfANativeGroupIsNotRead: users are told what has no effect, and what to do.
func TestWhatOfANativeGroupIsNotRead(t *testing.T) {
	g := informer.NativeGroup(&native.PodGroup{Spec: native.PodGroupSpec{
		ParentCompositePodGroupName: new("all"), ResourceClaims: []native.PodGroupResourceClaim{{Name: "cards"}},
	}})
	for _, want := range []string{`spec.parentCompositePodGroupName is "all"`, "spec.resourceClaims has no effect"} {
		if !strings.Contains(g.Problem, want) {
			t.Errorf("the problem is %q, want %q in it", g.Problem, want)
		}
	}
}
