// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// lent returns a gang that runs on a node of a revocable zone, which is usable at night.
func lent(least, pods int, annotations string) string {
	var b strings.Builder
	b.WriteString("---\napiVersion: v1\nkind: Node\nmetadata: {name: lent, labels: {volcano.sh/revocable-zone: night}}\nstatus: {allocatable: {cpu: '8', memory: 64Gi}}\n")
	fmt.Fprintf(&b, "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: batch, annotations: {%s}}\nspec: {minMember: %d}\n", annotations, least)
	for i := range pods {
		p := pod(fmt.Sprintf("batch-pod-%d", i), "schedulerName: volcano, nodeName: lent", "batch")
		b.WriteString(strings.Replace(p, "group-name: batch", "group-name: batch, volcano.sh/revocable-zone: '*'", 1) + running)
	}
	return b.String()
}

// TestPodsLeaveWhenTheirWindowHasEnded simulates three minutes from noon.
func TestPodsLeaveWhenTheirWindowHasEnded(t *testing.T) {
	t.Parallel()
	const tiers = "tiers:\n- plugins: [{name: gang}, {name: conformance}, {name: tdm, %s arguments: {tdm.revocable-zone.night: '22:00-6:00', tdm.evict.period: %s}}, {name: predicates}]\n"
	for name, tc := range map[string]struct {
		actions, switches, period string
		file                      string
		// left are how many pods run in the end: none comes back.
		left int
	}{
		"one at the start and after each period":    {"allocate, shuffle", "", "1m", lent(5, 5, ""), 2},
		"as many as may be missing":                 {"allocate, shuffle", "", "10m", lent(5, 5, "volcano.sh/jdb-min-available: '2'"), 2},
		"nobody without the action":                 {"allocate", "", "1m", lent(5, 5, ""), 5},
		"nobody when the plugin does not take part": {"allocate, shuffle", "enabledVictim: false,", "1m", lent(5, 5, ""), 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := profile.Read("conf", []byte(fmt.Sprintf("actions: %q\n"+tiers, tc.actions, tc.switches, tc.period)), profile.Only)
			check(t, err)
			r, err := run(t, tc.file, simulate.Options{Config: c, For: 2*time.Minute + 30*time.Second})
			check(t, err)
			got := 0
			for _, p := range r.Pods {
				if p.State == "Running" {
					got++
				}
			}
			if got != tc.left {
				t.Errorf("%d pods run in the end, want %d: %v", got, tc.left, pods(r))
			}
		})
	}
}

// TestPodsThatLeaveComeBackElsewhere gives the job an ordinary node to go to.
func TestPodsThatLeaveComeBackElsewhere(t *testing.T) {
	t.Parallel()
	c, err := profile.Read("conf", []byte("actions: 'allocate, shuffle'\ntiers:\n- plugins: [{name: gang}, {name: tdm, arguments: {tdm.revocable-zone.night: '22:00-6:00'}}, {name: predicates}]\n"), profile.Only)
	check(t, err)
	r, err := run(t, node("n1", 4)+lent(2, 2, ""), simulate.Options{Config: c, For: 2 * time.Minute, Recreate: true})
	check(t, err)
	on := map[string]int{}
	for _, p := range r.Pods {
		on[p.Node+" "+string(p.State)]++
	}
	if diff := cmp.Diff(map[string]int{"n1 Running": 2}, withoutGone(on)); diff != "" {
		t.Errorf("pods by node and state (-want,+got)\n%s\n%v", diff, pods(r))
	}
}

// withoutGone leaves out what is not there any more.
func withoutGone(on map[string]int) map[string]int {
	left := map[string]int{}
	for key, n := range on {
		if strings.HasSuffix(key, " Running") || strings.HasSuffix(key, " Pending") {
			left[key] = n
		}
	}
	return left
}
