// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package suspend

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	volcanobatch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
	bus "volcano.sh/apis/pkg/apis/bus/v1alpha1"
)

// manager is who has written a field, for whoever asks.
const manager = "kubectl-caldera"

// past are the words for what was done to an object.
var past = map[bool]string{true: "suspended", false: "resumed"}

// already are the words for an object that needs no change.
var already = map[bool]string{true: "is suspended already", false: "is not suspended"}

// set suspends an object or resumes it, and says what was done.
func (c *cluster) set(ctx context.Context, s *switchable, suspend bool, dryRun string) (said string, err error) {
	if suspend && s.refuses != nil {
		if why := s.refuses(s.Unstructured); why != "" {
			return "", fmt.Errorf("%s cannot be suspended: %s", s, why)
		}
	}
	if s.GroupKind == volcanoJob {
		return c.command(ctx, s, suspend, dryRun)
	}
	field := strings.Join(s.field, ".")
	is, _, err := unstructured.NestedBool(s.Object, s.field...)
	if err != nil {
		return "", fmt.Errorf("reading %s of %s: %w", field, s, err)
	}
	if is == suspend {
		return s.short() + " " + already[suspend], nil
	}
	if dryRun != onlyPrinted {
		if err := c.patch(ctx, s, suspend, dryRun); err != nil {
			return "", fmt.Errorf("setting %s of %s: %w", field, s, err)
		}
	}
	return fmt.Sprintf("%s %s%s: %s is %t", s.short(), past[suspend], suffix(dryRun), field, suspend), nil
}

// patch sets the field. An object that was created again since then has another uid, and is left alone. A field that the cluster does not know
// is refused, where it would be dropped without a word.
func (c *cluster) patch(ctx context.Context, s *switchable, suspend bool, dryRun string) error {
	patch := map[string]any{"metadata": map[string]any{"uid": string(s.GetUID())}}
	if err := unstructured.SetNestedField(patch, suspend, s.field...); err != nil {
		return err
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = c.client.Resource(s.resource).Namespace(c.namespace).Patch(ctx, s.GetName(), types.MergePatchType, data, metav1.PatchOptions{
		FieldManager: manager, FieldValidation: metav1.FieldValidationStrict, DryRun: dry(dryRun),
	})
	return err
}

// commandOf is what Volcano's controllers are to be told to do with a job; or what is said instead, if it is as it is to be.
func commandOf(s *switchable, suspend bool) (action bus.Action, instead string, err error) {
	phase, _, err := unstructured.NestedString(s.Object, "status", "state", "phase")
	if err != nil {
		return "", "", fmt.Errorf("reading the phase of %s: %w", s, err)
	}
	switch volcanobatch.JobPhase(phase) {
	case volcanobatch.Aborted, volcanobatch.Aborting:
		if suspend {
			return "", s.short() + " " + already[true], nil
		}
		return bus.ResumeJobAction, "", nil
	case volcanobatch.Completed, volcanobatch.Completing, volcanobatch.Terminated, volcanobatch.Terminating, volcanobatch.Failed:
		return "", "", fmt.Errorf("%s is %s: it can be neither suspended nor resumed", s, phase)
	}
	if !suspend {
		return "", s.short() + " " + already[false], nil
	}
	return bus.AbortJobAction, "", nil
}

// command tells Volcano's controllers to abort a job or to resume it, as vcctl does.
func (c *cluster) command(ctx context.Context, s *switchable, suspend bool, dryRun string) (said string, err error) {
	action, instead, err := commandOf(s, suspend)
	if err != nil || instead != "" {
		return instead, err
	}
	target := metav1.NewControllerRef(s, s.GroupVersionKind())
	order := &bus.Command{
		TypeMeta: metav1.TypeMeta{APIVersion: bus.SchemeGroupVersion.String(), Kind: "Command"},
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: s.GetName() + "-" + strings.ToLower(string(action)) + "-", Namespace: c.namespace, OwnerReferences: []metav1.OwnerReference{*target},
		},
		Action: string(action), TargetObject: target,
	}
	if dryRun != onlyPrinted {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(order)
		if err != nil {
			return "", err
		}
		_, err = c.client.Resource(bus.SchemeGroupVersion.WithResource("commands")).Namespace(c.namespace).
			Create(ctx, &unstructured.Unstructured{Object: content}, metav1.CreateOptions{FieldManager: manager, DryRun: dry(dryRun)})
		if err != nil {
			return "", fmt.Errorf("sending the command %s to %s: %w", action, s, err)
		}
	}
	return fmt.Sprintf("%s %s%s: Volcano's controllers have the command %s", s.short(), past[suspend], suffix(dryRun), action), nil
}
