// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

// Pods is the resource of pods.
var Pods = corev1.SchemeGroupVersion.WithResource("pods")

// budgets is the resource of PodDisruptionBudgets.
var budgets = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")

func podOf(o object) (*corev1.Pod, bool) {
	pod, ok := o.(*corev1.Pod)
	return pod, ok
}

// bind gives a pod its node (k8s.io/kubernetes pkg/registry/core/pod/storage, assignPod).
func (a *API) bind(ns string, binding *corev1.Binding) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	stored, ok := a.resource(Pods).objects[types.NamespacedName{Namespace: ns, Name: binding.Name}]
	if !ok {
		return apierrors.NewNotFound(Pods.GroupResource(), binding.Name)
	}
	pod := stored.DeepCopyObject().(*corev1.Pod)
	conflict := func(format string, args ...any) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, binding.Name, fmt.Errorf(format, args...))
	}
	switch {
	case binding.UID != "" && binding.UID != pod.UID:
		return conflict("its UID is %s, not %s", pod.UID, binding.UID)
	case pod.DeletionTimestamp != nil:
		return conflict("it is being deleted")
	case pod.Spec.NodeName != "":
		return conflict("it is already assigned to node %q", pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) > 0:
		return conflict("it has scheduling gates")
	}
	pod.Spec.NodeName = binding.Target.Name
	a.setTrue(pod, corev1.PodCondition{Type: corev1.PodScheduled})
	a.bound = append(a.bound, pod.UID)
	return a.replace(Pods, pod)
}

// setTrue sets a condition of a pod to True; of one that is True already the time stays.
func (a *API) setTrue(pod *corev1.Pod, c corev1.PodCondition) {
	c.Status, c.LastTransitionTime = corev1.ConditionTrue, metav1.NewTime(a.clock.Now())
	i, before := podutil.GetPodCondition(&pod.Status, c.Type)
	switch {
	case before == nil:
		pod.Status.Conditions = append(pod.Status.Conditions, c)
		return
	case before.Status == c.Status:
		c.LastTransitionTime = before.LastTransitionTime
	}
	pod.Status.Conditions[i] = c
}

// evict deletes a pod unless its PodDisruptionBudget forbids it (k8s.io/kubernetes pkg/registry/core/pod/storage,
// EvictionREST). The budget's status belongs to its controller, and there is none: it stays as it is.
func (a *API) evict(ns, name string, options *metav1.DeleteOptions) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	stored, ok := a.resource(Pods).objects[types.NamespacedName{Namespace: ns, Name: name}]
	if !ok {
		return apierrors.NewNotFound(Pods.GroupResource(), name)
	}
	if options == nil {
		options = &metav1.DeleteOptions{}
	}
	if err := precondition(Pods, stored, options.Preconditions); err != nil {
		return err
	}
	pod := stored.DeepCopyObject().(*corev1.Pod)
	if err := a.budgetAllows(pod); err != nil {
		return err
	}
	if pod.DeletionTimestamp == nil {
		a.setTrue(pod, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
		})
		if err := a.replace(Pods, pod); err != nil {
			return err
		}
	}
	a.deletePod(a.resource(Pods).objects[nameOf(pod)].(*corev1.Pod), options.GracePeriodSeconds)
	return nil
}

// budgetAllows says whether a pod may be disrupted now. Pods that run nothing may always.
func (a *API) budgetAllows(pod *corev1.Pod) error {
	if pod.Status.Phase == corev1.PodPending || podutil.IsPodTerminal(pod) || pod.DeletionTimestamp != nil {
		return nil
	}
	for _, o := range a.sorted(budgets) {
		budget := o.(*policyv1.PodDisruptionBudget)
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil {
			return apierrors.NewInternalError(fmt.Errorf("reading the selector of PodDisruptionBudget %s/%s: %w", budget.Namespace, budget.Name, err))
		}
		if budget.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels)) && budget.Status.DisruptionsAllowed <= 0 {
			return apierrors.NewTooManyRequests(fmt.Sprintf(
				"Cannot evict pod as it would violate the pod's disruption budget %s.", budget.Name), 0)
		}
	}
	return nil
}

// deletePod deletes a pod for a client: at once if nothing of it can be running, else by marking it. It is called with
// the lock held.
func (a *API) deletePod(pod *corev1.Pod, grace *int64) {
	if !a.disrupted[pod.UID] {
		a.disrupted[pod.UID] = true
		a.disruptions = append(a.disruptions, pod)
	}
	if pod.Spec.NodeName == "" || podutil.IsPodTerminal(pod) || grace != nil && *grace == 0 {
		a.write(Pods, pod, nil)
		return
	}
	if pod.DeletionTimestamp != nil {
		return
	}
	after := pod.DeepCopy()
	now := metav1.NewTime(a.clock.Now())
	after.DeletionTimestamp = &now
	after.DeletionGracePeriodSeconds = grace
	if grace == nil {
		after.DeletionGracePeriodSeconds = pod.Spec.TerminationGracePeriodSeconds
	}
	a.write(Pods, pod, after)
}
