// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"strings"
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestBesideAnOlderAPIServer: the API server has no objects that came since. A scheduler that waited for them would place nothing.
func TestBesideAnOlderAPIServer(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=8,memory=32Gi"}, EmulatedVersion: "1.34"})
	p := start(t, schedulerprocess.Options{Kubeconfig: e.Kubeconfig})
	gang := env.Gang{Name: "train", Min: 4, Size: 4, CPU: "4"}
	e.Create(t, gang)
	env.Eventually(t, time.Minute, e.AllBound(t, gang.Name, gang.Size))
	waits := env.Gang{Name: "waits", Min: 1, Size: 1, CPU: "4"}
	e.Create(t, waits)
	env.Eventually(t, time.Minute, e.Waits(t, waits.Name, "NotEnoughResources"))
	if want := `"Acting as the Kubernetes of the API server, which is older" version="1.34"`; told(t, p, want) != 1 {
		t.Errorf("the log does not say %q once", want)
	}
	if failed := "Failed to watch"; told(t, p, failed) > 0 {
		t.Errorf("the scheduler watches what the API server does not have: its log says %q", failed)
	}
}

// TestWhatToActAsMayBeSaid: a scheduler of whom that is asked for does not ask the API server.
func TestWhatToActAsMayBeSaid(t *testing.T) {
	t.Parallel()
	out, err := run(t, "--emulated-version=1.33", "--master=https://127.0.0.1:1")
	if err == nil {
		t.Fatal("the scheduler started")
	}
	if want := "emulation version 1.33 is not between"; !strings.Contains(out, want) {
		t.Errorf("it does not say %q, but\n%s", want, out)
	}
}
