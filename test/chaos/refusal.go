// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/test/harm"
)

// refusal is what a policy of the API server refuses for a while.
type refusal struct {
	harm.Refusal
	// witness is a pod that nobody schedules, for which such a request is refused as well.
	witness string
}

// policyName is that of the policy, which a trouble has one of at most.
const policyName = "chaos-refuses"

// Controllers end names with random characters: about half of the pods of the first gang of each round may not be bound. Of the pods that
// take room, the youngest on each node, which goes first, may not be evicted.
var (
	bindings = refusal{
		harm.Refusal{Name: policyName, Subresource: "pods/binding", Names: `^gang-[0-9]+-0-.*[bcdfghjklmnpqrs]$`, Try: harm.TryBinding}, "gang-0-0-witness-b",
	}
	evicting = refusal{harm.Refusal{Name: policyName, Subresource: "pods/eviction", Names: `^others-.*-3$`, Try: harm.TryEviction}, "others-witness-3"}
)

// announce creates the policy, which is not in force yet, and the witness.
func (f refusal) announce(ctx context.Context, s *stage) error {
	if _, err := s.kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(ctx, f.Policy(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating a policy: %w", err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: f.witness, Namespace: namespace}, Spec: worker("1")}
	pod.Spec.SchedulerName = "nobody"
	return s.createPod(ctx, pod)
}

// begin puts the policy in force, and returns when it is.
func (f refusal) begin(ctx context.Context, s *stage) error {
	if _, err := s.kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, f.Binding(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("putting the policy in force: %w", err)
	}
	return f.InForce(ctx, s.kube, namespace, f.witness, s.Patience)
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
