// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"strings"
	"testing"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/pkg/features"
)

// TestUpstreamsOwnGangSchedulingIsRefused: it would place the members of PodGroups by itself, in no order of ours.
func TestUpstreamsOwnGangSchedulingIsRefused(t *testing.T) {
	if err := refuseWorkloads(utilfeature.DefaultFeatureGate); err != nil {
		t.Errorf("it is refused though it is off: %v", err)
	}
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.GenericWorkload, true)
	if err := refuseWorkloads(utilfeature.DefaultFeatureGate); err == nil || !strings.Contains(err.Error(), "GenericWorkload") {
		t.Errorf("it is told %v, want the gate's name", err)
	}
}
