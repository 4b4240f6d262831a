// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/plugins/gang"
)

// TestWhoseTurnWasOverIsAskedOfNobodyElse: upstream asks the plugins behind this one unless it is told that they cannot help, and that of resource
// claims fails when no node was looked for.
func TestWhoseTurnWasOverIsAskedOfNobodyElse(t *testing.T) {
	if _, status := (&gang.Gang{}).PostFilter(t.Context(), framework.NewCycleState(), &corev1.Pod{}, nil); status.Code() != fwk.UnschedulableAndUnresolvable {
		t.Errorf("the status is %v, want %v", status.Code(), fwk.UnschedulableAndUnresolvable)
	}
}
