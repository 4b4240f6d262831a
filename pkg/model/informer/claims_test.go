// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/model/informer"
)

// exactly is a request for devices of one class.
func exactly(name, class string, count int64, changes ...func(*resourcev1.ExactDeviceRequest)) resourcev1.DeviceRequest {
	e := &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count}
	for _, change := range changes {
		change(e)
	}
	return resourcev1.DeviceRequest{Name: name, Exactly: e}
}

func all(e *resourcev1.ExactDeviceRequest) {
	e.AllocationMode, e.Count = resourcev1.DeviceAllocationModeAll, 0
}

func administering(e *resourcev1.ExactDeviceRequest) { e.AdminAccess = new(true) }

func withMemory(amount string) func(*resourcev1.ExactDeviceRequest) {
	return func(e *resourcev1.ExactDeviceRequest) {
		e.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(amount)}}
	}
}

// TestWhatAClaimCharges: as long as a claim has no devices what it asks for, then those that it has.
func TestWhatAClaimCharges(t *testing.T) {
	either := resourcev1.DeviceRequest{Name: "either", FirstAvailable: []resourcev1.DeviceSubRequest{
		{Name: "large", DeviceClassName: "large", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
		{Name: "small", DeviceClassName: "small", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 4},
		{Name: "more", DeviceClassName: "large", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 2},
	}}
	got := func(request string, changes ...func(*resourcev1.DeviceRequestAllocationResult)) resourcev1.DeviceRequestAllocationResult {
		r := resourcev1.DeviceRequestAllocationResult{Request: request, Driver: "d", Pool: "p", Device: "x"}
		for _, change := range changes {
			change(&r)
		}
		return r
	}
	for name, c := range map[string]struct {
		asks []resourcev1.DeviceRequest
		has  []resourcev1.DeviceRequestAllocationResult
		want string
	}{
		"nothing":                        {},
		"two of a class":                 {asks: []resourcev1.DeviceRequest{exactly("a", "gpu", 2)}, want: "deviceclass/gpu=2"},
		"of two classes":                 {asks: []resourcev1.DeviceRequest{exactly("a", "gpu", 2), exactly("b", "nic", 1), exactly("c", "gpu", 1)}, want: "deviceclass/gpu=3 deviceclass/nic=1"},
		"for administrators":             {asks: []resourcev1.DeviceRequest{exactly("a", "gpu", 2, administering)}},
		"all of a node: the most it may": {asks: []resourcev1.DeviceRequest{exactly("a", "gpu", 0, all)}, want: "deviceclass/gpu=32"},
		"parts of devices":               {asks: []resourcev1.DeviceRequest{exactly("a", "gpu", 2, withMemory("40Gi"))}, want: "deviceclass/gpu=2 memory.deviceclass/gpu=80Gi"},
		"alternatives: the most of each": {asks: []resourcev1.DeviceRequest{either, exactly("b", "large", 1)}, want: "deviceclass/large=3 deviceclass/small=4"},
		"less than nothing":              {asks: []resourcev1.DeviceRequest{exactly("a", "gpu", 1, withMemory("-40Gi"))}, want: "deviceclass/gpu=1"},
		"all, once it has three": {
			asks: []resourcev1.DeviceRequest{exactly("a", "gpu", 0, all)}, has: []resourcev1.DeviceRequestAllocationResult{got("a"), got("a"), got("a")},
			want: "deviceclass/gpu=3",
		},
		"the alternative that it has": {
			asks: []resourcev1.DeviceRequest{either}, has: []resourcev1.DeviceRequestAllocationResult{got("either/small"), got("either/small")}, want: "deviceclass/small=2",
		},
		"what an administrator has": {
			asks: []resourcev1.DeviceRequest{exactly("a", "gpu", 1), exactly("b", "gpu", 1, administering)},
			has:  []resourcev1.DeviceRequestAllocationResult{got("a"), got("b", func(r *resourcev1.DeviceRequestAllocationResult) { r.AdminAccess = new(true) })},
			want: "deviceclass/gpu=1",
		},
		"the part that it has": {
			asks: []resourcev1.DeviceRequest{exactly("a", "gpu", 1, withMemory("39Gi"))},
			has: []resourcev1.DeviceRequestAllocationResult{got("a", func(r *resourcev1.DeviceRequestAllocationResult) {
				r.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse("40Gi")}
			})},
			want: "deviceclass/gpu=1 memory.deviceclass/gpu=40Gi",
		},
		"a device that answers no request": {asks: []resourcev1.DeviceRequest{exactly("a", "gpu", 1)}, has: []resourcev1.DeviceRequestAllocationResult{got("gone")}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: c.asks}}}
			if c.has != nil {
				claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: c.has}}
			}
			if got := informer.ResourceClaim(claim).Devices.String(); got != c.want {
				t.Errorf("it is charged %q, want %q", got, c.want)
			}
			template := informer.ClaimTemplate(&resourcev1.ResourceClaimTemplate{Spec: resourcev1.ResourceClaimTemplateSpec{Spec: claim.Spec}})
			if got := template.Devices.String(); c.has == nil && (got != c.want || !template.Template) {
				t.Errorf("by a template it is charged %q, want %q", got, c.want)
			}
		})
	}
}

// TestAClaimKnowsThePodItWasMadeFor; others name theirs, and may share it.
func TestAClaimKnowsThePodItWasMadeFor(t *testing.T) {
	pod := builders.Pod("ns", "p").UID("pod-uid").Obj()
	own := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "own", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))},
	}}
	if got := informer.ResourceClaim(own).Pod; got != pod.UID {
		t.Errorf("the claim is of pod %q, want %q", got, pod.UID)
	}
	if got := informer.ResourceClaim(&resourcev1.ResourceClaim{}).Pod; got != types.UID("") {
		t.Errorf("a claim that nobody owns is of pod %q", got)
	}
}

// TestNobodyWaitsForTemplatesThatMayNotBeRead: a scheduler with a role that does not know of templates starts, and charges queues by claims. It
// reads templates once its role lets it.
func TestNobodyWaitsForTemplatesThatMayNotBeRead(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		template := &resourcev1.ResourceClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "t"},
			Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{
				Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{exactly("a", "gpu", 2)}},
			}},
		}
		kube := fake.NewClientset(template)
		var allowed atomic.Bool
		kube.PrependReactor("list", "resourceclaimtemplates", func(clienttesting.Action) (bool, runtime.Object, error) {
			return !allowed.Load(), nil, apierrors.NewForbidden(resourcev1.Resource("resourceclaimtemplates"), "", errors.New("no role says so"))
		})
		state := newState()
		state.UpsertPod(newPod("p", "p", func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimTemplateName: &template.Name}}
		}))
		check(t, informer.ClaimTemplates(t.Context(), state, kube))
		charged := func() int64 { return state.Task("p").Charge.Get("deviceclass/gpu") }
		if got := charged(); got != 0 {
			t.Errorf("it is charged %d devices by a template that may not be read", got)
		}
		allowed.Store(true)
		time.Sleep(20 * time.Second)
		if got := charged(); got != 2 {
			t.Errorf("it is charged %d devices, want 2", got)
		}
		check(t, kube.ResourceV1().ResourceClaimTemplates("ns").Delete(t.Context(), "t", metav1.DeleteOptions{}))
		synctest.Wait()
		if got := charged(); got != 0 {
			t.Errorf("it is charged %d devices by a template that is gone", got)
		}
	})
}
