// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
)

// creators is how many requests are in flight while many objects are made.
const creators = 16

// clients are those of one cluster.
type clients struct {
	kube   kubernetes.Interface
	groups volcanoclient.Interface
}

func newClients(config *rest.Config) (clients, error) {
	groups, err := volcanoclient.NewForConfig(config)
	if err != nil {
		return clients{}, fmt.Errorf("building a client: %w", err)
	}
	// Protobuf, which the schedulers use too: the API server encodes each change once, and the measurement stays light.
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return clients{}, fmt.Errorf("building a client: %w", err)
	}
	return clients{kube: kube, groups: groups}, nil
}

// put makes objects, in order.
func (c clients) put(ctx context.Context, objects ...runtime.Object) error {
	for _, o := range objects {
		if err := c.putOne(ctx, o); err != nil {
			return fmt.Errorf("creating a %T: %w", o, err)
		}
	}
	return nil
}

// putAll makes n lists of objects, many lists at a time.
func (c clients) putAll(ctx context.Context, n int, of func(i int) []runtime.Object) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, creators, n, func(i int) {
		if err := c.put(ctx, of(i)...); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

func (c clients) putOne(ctx context.Context, object runtime.Object) (err error) {
	var create metav1.CreateOptions
	switch o := object.(type) {
	case *corev1.Pod:
		_, err = c.kube.CoreV1().Pods(o.Namespace).Create(ctx, o, create)
	case *corev1.Namespace:
		_, err = c.kube.CoreV1().Namespaces().Create(ctx, o, create)
	case *corev1.PersistentVolume:
		_, err = c.kube.CoreV1().PersistentVolumes().Create(ctx, o, create)
	case *corev1.PersistentVolumeClaim:
		_, err = c.kube.CoreV1().PersistentVolumeClaims(o.Namespace).Create(ctx, o, create)
	case *corev1.ResourceQuota:
		var made *corev1.ResourceQuota
		if made, err = c.kube.CoreV1().ResourceQuotas(o.Namespace).Create(ctx, o, create); err == nil {
			made.Status = o.Status
			_, err = c.kube.CoreV1().ResourceQuotas(o.Namespace).UpdateStatus(ctx, made, metav1.UpdateOptions{})
		}
	case *schedulingv1.PriorityClass:
		err = localcluster.CreatePriorityClass(ctx, c.kube, o)
	case *resourcev1.DeviceClass:
		_, err = c.kube.ResourceV1().DeviceClasses().Create(ctx, o, create)
	case *resourcev1.ResourceClaim:
		_, err = c.kube.ResourceV1().ResourceClaims(o.Namespace).Create(ctx, o, create)
	case *resourcev1.ResourceClaimTemplate:
		_, err = c.kube.ResourceV1().ResourceClaimTemplates(o.Namespace).Create(ctx, o, create)
	case *admissionv1.ValidatingAdmissionPolicy:
		_, err = c.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, o, create)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		_, err = c.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, o, create)
	case *volcano.Queue:
		_, err = c.groups.SchedulingV1beta1().Queues().Create(ctx, o, create)
	case *volcano.PodGroup:
		_, err = c.groups.SchedulingV1beta1().PodGroups(o.Namespace).Create(ctx, o, create)
	default:
		err = fmt.Errorf("no client makes such objects")
	}
	return err
}

// remove deletes a pod at once.
func (c clients) remove(ctx context.Context, namespace, name string) error {
	return c.kube.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
}
