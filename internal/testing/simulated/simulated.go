// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulated lets tests of plugins play small clusters.
package simulated

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/sandbox"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// Noon is when the time of Settled begins.
var Noon = time.Date(2026, time.August, 15, 12, 0, 0, 0, time.UTC)

// Pods plays the objects of a YAML file for so many rounds with a scheduler of a configuration, and returns the pods that there are in the end,
// by name. The scheduler's errors are in the test's log.
func Pods(t *testing.T, file string, config *schedulerconfig.KubeSchedulerConfiguration, rounds int) []simulate.Pod {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(-1)))
	result, err := simulate.Run(klog.NewContext(t.Context(), logger), objects(t, file), simulate.Options{Config: config, Now: Noon, Rounds: rounds})
	if err != nil {
		t.Fatal(err)
	}
	return result.Pods
}

// Settled is a scheduler on the objects of a YAML file, after it has done all it can. It has the plugins of Volcano's defaults. Time stands still at
// Noon. It ends with the test.
func Settled(t testing.TB, file string) *sandbox.Sandbox {
	t.Helper()
	config, err := profile.Only.Config()
	if err != nil {
		t.Fatal(err)
	}
	box, err := sandbox.New(klog.NewContext(t.Context(), logr.Discard()), objects(t, file), sandbox.Options{Config: config, Now: Noon})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(box.Stop)
	if err := box.Start(); err != nil {
		t.Fatal(err)
	}
	box.Run()
	if err := box.Settle(); err != nil {
		t.Fatal(err)
	}
	return box
}

// objects are those of a YAML file, as a cluster would have them at Noon.
func objects(t testing.TB, file string) []scenario.Object {
	t.Helper()
	read, err := scenario.Read("scenario", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	complete, err := scenario.Complete(read, Noon)
	if err != nil {
		t.Fatal(err)
	}
	return complete
}
