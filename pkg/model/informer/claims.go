// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// resourceClaim reads a ResourceClaim.
func resourceClaim(c *resourcev1.ResourceClaim) *model.Claim {
	claim := &model.Claim{Namespace: c.Namespace, Name: c.Name}
	if owner := metav1.GetControllerOf(c); owner != nil && owner.Kind == "Pod" {
		claim.Pod = owner.UID
	}
	if c.Status.Allocation != nil {
		claim.Devices = allocatedDevices(c)
	} else {
		claim.Devices = requestedDevices(&c.Spec)
	}
	return claim
}

// claimTemplate reads a template of claims.
func claimTemplate(t *resourcev1.ResourceClaimTemplate) *model.Claim {
	return &model.Claim{Namespace: t.Namespace, Name: t.Name, Template: true, Devices: requestedDevices(&t.Spec.Spec)}
}

// ClaimTemplates feeds the model the templates of resource claims. Queues are charged by them for pods whose claims are not made yet. It
// returns once the templates have been delivered. Where they may not be read, or are not served, it returns at once. It asks again then until
// the context ends, and such pods count nothing meanwhile.
func ClaimTemplates(ctx context.Context, state *model.State, kube kubernetes.Interface) error {
	watch := func(ctx context.Context) (watches bool, err error) {
		_, err = kube.ResourceV1().ResourceClaimTemplates("").List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
			return false, err
		}
		return true, watchTemplates(ctx, state, kube)
	}
	watches, err := watch(ctx)
	if watches {
		return err
	}
	if apierrors.IsForbidden(err) {
		klog.FromContext(ctx).Error(err, "Cannot follow templates of resource claims: give the scheduler the rights in manifests/rbac/roles.yaml. "+
			"Queues are charged for devices once the claims are made; asking again")
	}
	go func() {
		err := wait.PollUntilContextCancel(ctx, lookAgain, false, func(ctx context.Context) (bool, error) {
			watches, err := watch(ctx)
			if !watches {
				return false, nil
			}
			return true, err
		})
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Cannot follow templates of resource claims")
		}
	}()
	return nil
}

func watchTemplates(ctx context.Context, state *model.State, kube kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactory(kube, 0)
	registration, err := factory.Resource().V1().ResourceClaimTemplates().Informer().AddEventHandler(handlers(
		func(t *resourcev1.ResourceClaimTemplate) { state.UpsertClaim(claimTemplate(t)) },
		func(t *resourcev1.ResourceClaimTemplate) { state.DeleteClaim(t.Namespace, t.Name, true) }))
	if err != nil {
		return fmt.Errorf("watching templates of resource claims: %w", err)
	}
	factory.Start(ctx.Done())
	if !cache.WaitFor(ctx, "", registration.HasSyncedChecker()) {
		return fmt.Errorf("waiting for templates of resource claims: %w", context.Cause(ctx))
	}
	return nil
}

// allocatedDevices are those that a claim has. Access for administrators takes nothing from others.
func allocatedDevices(c *resourcev1.ResourceClaim) resource.Vector {
	var devices resource.Vector
	for i := range c.Status.Allocation.Devices.Results {
		r := &c.Status.Allocation.Devices.Results[i]
		if class := classOf(c, r.Request); class != "" && (r.AdminAccess == nil || !*r.AdminAccess) {
			devices.Add(devicesOf(class, 1, r.ConsumedCapacity))
		}
	}
	return devices.AtMost(resource.MostOfPod)
}

// classOf is the device class of a request of a claim, or of one of its alternatives ("request/alternative").
func classOf(c *resourcev1.ResourceClaim, request string) string {
	name, alternative, _ := strings.Cut(request, "/")
	for i := range c.Spec.Devices.Requests {
		r := &c.Spec.Devices.Requests[i]
		switch {
		case r.Name != name:
		case r.Exactly != nil:
			return r.Exactly.DeviceClassName
		default:
			for j := range r.FirstAvailable {
				if r.FirstAvailable[j].Name == alternative {
					return r.FirstAvailable[j].DeviceClassName
				}
			}
		}
	}
	return ""
}

// requestedDevices are those that a claim asks for. A request for all devices of a node counts as many as a claim may have, alternatives count
// the most of each class. So counts the quota of the API server (k8s.io/kubernetes pkg/quota/v1/evaluator/core/resource_claims.go).
func requestedDevices(spec *resourcev1.ResourceClaimSpec) resource.Vector {
	var devices resource.Vector
	for i := range spec.Devices.Requests {
		r := &spec.Devices.Requests[i]
		if e := r.Exactly; e != nil {
			if e.AdminAccess == nil || !*e.AdminAccess {
				devices.Add(requested(e.DeviceClassName, e.AllocationMode, e.Count, e.Capacity))
			}
			continue
		}
		var most resource.Vector
		for j := range r.FirstAvailable {
			a := &r.FirstAvailable[j]
			most.Max(requested(a.DeviceClassName, a.AllocationMode, a.Count, a.Capacity))
		}
		devices.Add(most)
	}
	return devices.AtMost(resource.MostOfPod)
}

func requested(class string, mode resourcev1.DeviceAllocationMode, count int64, capacity *resourcev1.CapacityRequirements) resource.Vector {
	if mode == resourcev1.DeviceAllocationModeAll {
		count = resourcev1.AllocationResultsMaxSize
	}
	if capacity == nil {
		return devicesOf(class, count, nil)
	}
	return devicesOf(class, count, capacity.Requests)
}

// devicesOf is a number of devices of a class, and so much of what each of them has. Nobody asks for less than nothing.
func devicesOf(class string, count int64, capacity map[resourcev1.QualifiedName]apiresource.Quantity) resource.Vector {
	list := make(corev1.ResourceList, len(capacity))
	for what, q := range capacity {
		if q.Sign() <= 0 {
			continue
		}
		list[resource.DeviceCapacityOf(string(what), class)] = q
	}
	var devices resource.Vector
	devices.AddTimes(resource.FromList(list), count)
	devices.Add(resource.Vector{{Name: resource.DevicesOf(class), Value: count}})
	return devices
}
