// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	policyName = "chaos-refuses-bindings"
	// refused matches about half of the pods of the first gang of each round: the controller ends names with random characters.
	refused = `^gang-[0-9]+-0-.*[bcdfghjklmnpqrs]$`
	// witness is a pod whose binding is refused as well, which nobody schedules.
	witness = "gang-0-0-witness-b"
)

// refuse creates the policy, which is not in force yet.
func (s *stage) refuse(ctx context.Context) error {
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/binding"}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: fmt.Sprintf("!object.metadata.name.matches(%q)", refused), Message: "chaos refuses it"}},
		},
	}
	if _, err := s.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a policy: %w", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: witness, Namespace: namespace}, Spec: worker("1")}
	pod.Spec.SchedulerName = "nobody"
	return s.createPod(ctx, pod)
}

// refusal plays a round in which the first gang cannot be whole, for about half of its pods may not be bound.
func (s *stage) refusal(ctx context.Context, r *round) error {
	bindings := s.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policyName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	if _, err := bindings.Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("putting the policy in force: %w", err)
	}
	if err := s.enforced(ctx); err != nil {
		return err
	}
	return s.meanwhile(ctx, r, func(ctx context.Context) error {
		if err := bindings.Delete(ctx, policyName, metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("ending the policy: %w", err)
		}
		return nil
	})
}

// enforced returns when the API server refuses bindings.
func (s *stage) enforced(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: witness, Namespace: namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"}}
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		err := s.kube.CoreV1().Pods(namespace).Bind(ctx, binding, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err), nil
	})
	if err != nil {
		return fmt.Errorf("the policy is not in force: %w", err)
	}
	return nil
}
