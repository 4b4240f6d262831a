// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// policyName is that of the policy, which a trouble has one of at most.
const policyName = "chaos-refuses"

// refusal is what a policy of the API server refuses: requests for a subresource of pods with such names.
type refusal struct {
	subresource, names string
	// witness is a pod that nobody schedules, for which such a request is refused as well.
	witness string
	// try makes such a request without effect.
	try func(ctx context.Context, s *stage, witness string) error
}

// Controllers end names with random characters: about half of the pods of the first gang of each round may not be bound. Of the pods that
// take room, the youngest on each node, which goes first, may not be evicted.
var (
	bindings = refusal{subresource: "pods/binding", names: `^gang-[0-9]+-0-.*[bcdfghjklmnpqrs]$`, witness: "gang-0-0-witness-b", try: tryBinding}
	evicting = refusal{subresource: "pods/eviction", names: `^others-.*-3$`, witness: "others-witness-3", try: tryEviction}
)

func tryBinding(ctx context.Context, s *stage, witness string) error {
	return s.kube.CoreV1().Pods(namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: witness, Namespace: namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

func tryEviction(ctx context.Context, s *stage, witness string) error {
	return s.kube.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: witness, Namespace: namespace}, DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
	})
}

// announce creates the policy, which is not in force yet, and the witness.
func (f refusal) announce(ctx context.Context, s *stage) error {
	fail := admissionv1.Fail
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{f.subresource}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: fmt.Sprintf("!object.metadata.name.matches(%q)", f.names), Message: "chaos refuses it"}},
		},
	}
	if _, err := s.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a policy: %w", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: f.witness, Namespace: namespace}, Spec: worker("1")}
	pod.Spec.SchedulerName = "nobody"
	return s.createPod(ctx, pod)
}

// begin puts the policy in force, and returns when it is.
func (f refusal) begin(ctx context.Context, s *stage) error {
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policyName, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	if _, err := s.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("putting the policy in force: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		err := f.try(ctx, s, f.witness)
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err), nil
	})
	if err != nil {
		return fmt.Errorf("the policy is not in force: %w", err)
	}
	return nil
}

// end puts the policy out of force.
func (f refusal) end(ctx context.Context, s *stage) error {
	err := s.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, policyName, metav1.DeleteOptions{})
	if err != nil {
		return fmt.Errorf("ending the policy: %w", err)
	}
	return nil
}

// refuseBinding plays a round in which the first gang cannot be whole, for about half of its pods may not be bound.
func (s *stage) refuseBinding(ctx context.Context, r *round) error {
	if err := bindings.begin(ctx, s); err != nil {
		return err
	}
	return s.meanwhile(ctx, r, func(ctx context.Context) error { return bindings.end(ctx, s) })
}

// refuseEviction plays a round in which some pods may not be evicted. Others are to go instead of them, and nobody for nothing.
func (s *stage) refuseEviction(ctx context.Context, r *round) error {
	if err := s.crowd(ctx, r); err != nil {
		return err
	}
	if err := evicting.begin(ctx, s); err != nil {
		return err
	}
	if err := s.launch(ctx, r, evicted); err != nil {
		return err
	}
	if err := s.follow(ctx, r, s.halves(r), time.Now()); err != nil {
		return err
	}
	s.count(r)
	return evicting.end(ctx, s)
}
