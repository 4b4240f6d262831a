// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package harm

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
	"k8s.io/client-go/kubernetes"
)

// Refusal is a ValidatingAdmissionPolicy of the API server: it refuses requests for a subresource of pods with such names.
type Refusal struct {
	// Name is that of the policy and its binding.
	Name string
	// Subresource is one of pods, such as pods/binding, and Names a regular expression of the pods' names.
	Subresource, Names string
	// Try makes such a request without effect, for a pod that nobody schedules and whose name is refused.
	Try func(ctx context.Context, kube kubernetes.Interface, namespace, pod string) error
}

// Policy is the policy, which is not in force without its binding.
func (f Refusal) Policy() *admissionv1.ValidatingAdmissionPolicy {
	fail := admissionv1.Fail
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: f.Name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{f.Subresource}},
			}}}},
			Validations: []admissionv1.Validation{{Expression: fmt.Sprintf("!object.metadata.name.matches(%q)", f.Names), Message: f.Name + " refuses it"}},
		},
	}
}

// Binding puts the policy in force, a little after it was created.
func (f Refusal) Binding() *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: f.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}

// lookAgain is how often it is looked at whether a policy is in force.
const lookAgain = 20 * time.Millisecond

// InForce returns when the policy refuses a request for the witness, a pod.
func (f Refusal) InForce(ctx context.Context, kube kubernetes.Interface, namespace, witness string, patience time.Duration) error {
	err := wait.PollUntilContextTimeout(ctx, lookAgain, patience, true, func(ctx context.Context) (bool, error) {
		err := f.Try(ctx, kube, namespace, witness)
		return apierrors.IsInvalid(err) || apierrors.IsForbidden(err), nil
	})
	if err != nil {
		return fmt.Errorf("policy %s is not in force: %w", f.Name, err)
	}
	return nil
}

// TryBinding asks for a pod to be bound, without effect.
func TryBinding(ctx context.Context, kube kubernetes.Interface, namespace, pod string) error {
	return kube.CoreV1().Pods(namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: namespace}, Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// TryEviction asks for a pod to be evicted, without effect.
func TryEviction(ctx context.Context, kube kubernetes.Interface, namespace, pod string) error {
	return kube.PolicyV1().Evictions(namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: namespace}, DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
	})
}
