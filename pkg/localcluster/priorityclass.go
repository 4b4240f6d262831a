// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// CreatePriorityClass creates a priority class unless one of its name is there, and returns when pods may name it. The API server
// refuses pods whose class its own cache has not seen yet, so one that follows the class at once is refused on a busy machine. What
// tells is a pod that is created without being kept.
func CreatePriorityClass(ctx context.Context, client kubernetes.Interface, class *schedulingv1.PriorityClass) error {
	if _, err := client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("creating priority class %s: %w", class.Name, err)
	}
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "knows-" + class.Name + "-"},
		Spec: corev1.PodSpec{
			PriorityClassName: class.Name, SchedulerName: "none",
			Containers: []corev1.Container{{Name: "none", Image: "none"}},
		},
	}
	var refused error
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		_, refused = client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return !apierrors.IsForbidden(refused), nil
	})
	if err := errors.Join(err, refused); err != nil {
		return fmt.Errorf("waiting until pods may name priority class %s: %w", class.Name, err)
	}
	return nil
}
