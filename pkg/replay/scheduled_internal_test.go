// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/replay/trace"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// TestAJobLeavesThoughAPodOfItIsGone: whoever deletes a pod that has no node takes it away at once.
func TestAJobLeavesThoughAPodOfItIsGone(t *testing.T) {
	t.Parallel()
	config, err := profile.Only.Config()
	if err != nil {
		t.Fatal(err)
	}
	tr := &trace.Trace{Nodes: []trace.Node{{Name: "n", MilliCPU: 1000, MemoryMiB: 1024}}, Jobs: []trace.Job{{Workers: 2, MilliCPU: 1000, Duration: time.Hour}}}
	w, err := newScheduled(t.Context(), tr, Options{Config: config, Now: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.stop()
	a := &actor{Job: tr.Jobs[0]}
	if err := w.come(a); err != nil {
		t.Fatal(err)
	}
	if err := w.box.API.Delete(memory.Pods, namespace, a.pod(1)); err != nil {
		t.Fatal(err)
	}
	if err := w.leave(a); err != nil {
		t.Error(err)
	}
	if left := w.box.API.Objects(memory.Pods); len(left) > 0 || len(w.actors) > 0 {
		t.Errorf("%d pods and %d entries are left", len(left), len(w.actors))
	}
}
