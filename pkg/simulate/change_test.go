// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/internal/testing/simulated"
	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
	"github.com/caldera-scheduler/caldera/pkg/simulate/report"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// twoNodes are nodes of which the first has a job of three pods, with room for two of them on the second.
func twoNodes(t *testing.T) []scenario.Object {
	t.Helper()
	var b strings.Builder
	b.WriteString(`
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: '4', memory: 8Gi}}}
---
{apiVersion: v1, kind: Node, metadata: {name: n2}, status: {allocatable: {cpu: '2', memory: 8Gi}}}
---
{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: runs, namespace: ml}, spec: {minMember: 1}, status: {phase: Running}}
`)
	for i := range 3 {
		fmt.Fprintf(&b, `---
apiVersion: v1
kind: Pod
metadata:
  name: runs-%d
  namespace: ml
  annotations: {scheduling.k8s.io/group-name: runs}
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: runs, uid: u, controller: true}]
spec: {schedulerName: volcano, nodeName: n1, containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}
status: {phase: Running}
`, i)
	}
	read, err := scenario.Read("nodes", []byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := scenario.Complete(read, simulated.Noon)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestChangesAreMadeWhenNothingMoreHappens(t *testing.T) {
	t.Parallel()
	config, err := profile.Only.Config()
	if err != nil {
		t.Fatal(err)
	}
	run := func(rounds int, changes ...change.Change) *simulate.Result {
		result, err := simulate.Run(klog.NewContext(t.Context(), logr.Discard()), twoNodes(t),
			simulate.Options{Config: config, Now: simulated.Noon, Rounds: rounds, Changes: changes})
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	drain := change.Drain{Node: "n1", Now: metav1.NewTime(simulated.Noon)}
	without, with := run(0), run(0, drain)
	if placed := with.Jobs[0].Placed; placed != 2 || !with.Settled {
		t.Errorf("after a node was drained %d pods have nodes, want the 2 that fit on the other; settled: %t", placed, with.Settled)
	}
	// Whoever looks too early is told that more happens.
	if early := run(1, drain); early.Settled {
		t.Error("before the node was drained nothing more is said to happen")
	}
	var out strings.Builder
	if err := report.Compare(&out, "table", report.Comparison{Without: without, With: with}); err != nil {
		t.Fatal(err)
	}
	const want = `Something else happens to 1 job; 0 are as without the changes.

JOB       QUEUE     WITHOUT           WITH                                         NODES
ml/runs   default   3/3 pods placed   2/3 pods placed, waits: NotEnoughResources   n2 (2)
`
	if out.String() != want {
		t.Errorf("the comparison is\n%s\nwant\n%s", &out, want)
	}
	out.Reset()
	if err := report.Compare(&out, "table", report.Comparison{Without: without, With: run(0, change.Together{})}); err != nil {
		t.Fatal(err)
	}
	if want := "The changes change nothing for any of 1 job.\n"; out.String() != want {
		t.Errorf("the comparison is %q, want %q", &out, want)
	}
	if err := report.Compare(&out, "conformance", report.Comparison{}); err == nil || !strings.Contains(err.Error(), "use table or json") {
		t.Errorf("a format that cannot compare is answered by %v", err)
	}
}
