// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reclaim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/internal/testing/simulated"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

const preempting = `
actions: "allocate, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
`

const classes = `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: 10
`

// gang is a PodGroup with pods of one core each. The first ones run on node n. It is never released.
func gang(name, class string, least, pods, placed int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s, annotations: {caldera.dev/half-timeout: 0s}}\nspec: {minMember: %d, priorityClassName: %s}\n", name, least, class)
	for i := range pods {
		node, phase := "''", "Pending"
		if i < placed {
			node, phase = "n", "Running"
		}
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s-%d, annotations: {scheduling.k8s.io/group-name: %s, volcano.sh/preemptable: 'true'}}\n"+
			"spec: {schedulerName: volcano, nodeName: %s, priorityClassName: %s, containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}\nstatus: {phase: %s}\n",
			name, i, name, node, class, phase)
	}
	return b.String()
}

// TestWhoIsCompletedEvictsForAllItsMembersOrNobody: a half gang places its members as they fit, but has nobody evicted for a part of them.
func TestWhoIsCompletedEvictsForAllItsMembersOrNobody(t *testing.T) {
	for name, tc := range map[string]struct {
		low  int
		want []string
	}{
		"if all who may go do, one member waits still": {2, []string{"half-0", "low-0", "low-1"}},
		"if they do, all fit":                          {3, []string{"half-0", "half-1", "half-2", "half-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := classes + fmt.Sprintf("---\napiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: '%d', memory: 64Gi}}\n", tc.low+1) +
				gang("half", "high", 4, 4, 1) + gang("low", "low", 0, tc.low, tc.low)
			if diff := cmp.Diff(tc.want, placed(t, file)); diff != "" {
				t.Errorf("on the node (-want,+got)\n%s", diff)
			}
		})
	}
}

// placed simulates a cluster, and returns the pods that have nodes in the end, in the order of their names.
func placed(t *testing.T, file string) []string {
	t.Helper()
	config, err := profile.Read("conf", []byte(preempting), profile.Only)
	if err != nil {
		t.Fatal(err)
	}
	var on []string
	for _, p := range simulated.Pods(t, file, config, 6) {
		if p.Node != "" {
			on = append(on, p.Name)
		}
	}
	return on
}
