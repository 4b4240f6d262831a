// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulated lets tests of plugins play small clusters.
package simulated

import (
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
)

// Pods plays the objects of a YAML file for so many rounds with a scheduler of a configuration, and returns the pods that there are in the end,
// by name. The scheduler's errors are in the test's log.
func Pods(t *testing.T, file string, config *schedulerconfig.KubeSchedulerConfiguration, rounds int) []simulate.Pod {
	t.Helper()
	now := time.Date(2026, time.August, 15, 12, 0, 0, 0, time.UTC)
	read, err := scenario.Read("scenario", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := scenario.Complete(read, now)
	if err != nil {
		t.Fatal(err)
	}
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(-1)))
	result, err := simulate.Run(klog.NewContext(t.Context(), logger), objects, simulate.Options{Config: config, Now: now, Rounds: rounds})
	if err != nil {
		t.Fatal(err)
	}
	return result.Pods
}
