// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package votes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const classes = `
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: 1
`

// choosing answers with the candidates of these names.
func choosing(names ...string) func(question, int) string {
	return func(q question, _ int) string {
		var victims []string
		for _, task := range q.Evictees {
			if slices.Contains(names, task.Name) {
				victims = append(victims, fmt.Sprintf(`{"UID": %q}`, task.UID))
			}
		}
		return fmt.Sprintf(`{"status": 1, "victims": [%s]}`, strings.Join(victims, ","))
	}
}

func TestVictimsInsideAQueue(t *testing.T) {
	const alone = "actions: allocate, preempt\ntiers: [{plugins: [{name: gang, enablePreemptable: false}, EXTENDER]}, {plugins: [{name: priority}]}]\n"
	const together = "actions: allocate, preempt\ntiers: [{plugins: [{name: priority}, {name: gang, enablePreemptable: false}, EXTENDER]}]\n"
	objects := classes + node("m", 1) + node("n", 1) + group("a", "default", "low", "m", 1) + group("b", "default", "low", "n", 1) + group("c", "default", "high", "", 1)
	verb := []string{"preemptable"}
	answers := func(of func(question, int) string) map[string]func(question, int) string {
		return map[string]func(question, int) string{"preemptable": of}
	}
	none := []string{"a-0 m", "b-0 n", "c-0 -"}
	for name, tc := range map[string]struct {
		outcome
		placed []string
	}{
		"the extender chooses the first":                        {outcome{tiers: alone, answers: answers(choosing("a-0"))}, []string{"b-0 n", "c-0 m"}},
		"the extender chooses the second":                       {outcome{tiers: alone, answers: answers(choosing("b-0"))}, []string{"a-0 m", "c-0 n"}},
		"it has to agree with the others of its tier":           {outcome{tiers: together, answers: answers(choosing("a-0"))}, []string{"b-0 n", "c-0 m"}},
		"nobody is chosen":                                      {outcome{tiers: alone, answers: answers(choosing())}, none},
		"who is no candidate is not evicted":                    {outcome{tiers: together, answers: answers(always(`{"status": 1, "victims": [{"UID": "other"}]}`))}, none},
		"without an opinion the next tier decides":              {outcome{tiers: alone, answers: answers(always(`{"status": 0}`))}, []string{"a-0 m", "c-0 n"}},
		"a failure keeps everybody":                             {outcome{tiers: together, answers: answers(always("500"))}, none},
		"a failure of an extender that may fail has no opinion": {outcome{tiers: together, arguments: ignorable, answers: answers(always("500"))}, []string{"a-0 m", "c-0 n"}},
		"about others than those with managed resources it has no opinion": {
			outcome{tiers: together, arguments: "extender.managedResources: [x.com/y]", answers: answers(always("500"))}, []string{"a-0 m", "c-0 n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.outcome.verbs, tc.outcome.objects = verb, objects
			placed := slices.DeleteFunc(tc.outcome.play(t), func(line string) bool { return strings.Contains(line, ": ") })
			if diff := cmp.Diff(tc.placed, placed); diff != "" {
				t.Errorf("pods (-want,+got)\n%s", diff)
			}
		})
	}
}

func TestNobodyIsEvictedForAJobThatIsNotReady(t *testing.T) {
	outcome{
		tiers:   "actions: allocate, preempt\ntiers: [{plugins: [{name: priority}, {name: gang, enablePreemptable: false}, EXTENDER]}]\n",
		verbs:   []string{"jobReady"},
		answers: map[string]func(question, int) string{"jobReady": always(`{"status": false}`)},
		objects: classes + node("n", 1) + group("a", "default", "low", "n", 1) + group("c", "default", "high", "", 1),
		want: []string{"a-0 n", "c-0 -", "c: NotEnoughResources: 0/1 tasks in gang schedulable: insufficient cpu, short by 1; 0/1 nodes are available for the next one: 1 Insufficient cpu; " +
			"preempt: the extender at SERVER/jobReady says that the job is not ready"},
		least: map[string]int{"jobReady c": 1},
	}.run(t)
}

func TestVictimsInOtherQueues(t *testing.T) {
	const conf = "actions: allocate, reclaim\ntiers: [{plugins: [{name: priority}, {name: gang}, {name: proportion}, EXTENDER]}]\n"
	o := outcome{
		tiers: conf, verbs: []string{"reclaimable"},
		answers: map[string]func(question, int) string{"reclaimable": choosing("a-1")},
		objects: queue("x") + queue("y") + node("n", 2) + group("a", "x", "", "n", 2) + group("b", "y", "", "", 1),
		want:    []string{"a-0 n", "b-0 n"},
	}
	t.Run("the extender chooses", o.run)
	o.answers = map[string]func(question, int) string{"reclaimable": choosing("a-0")}
	o.want = []string{"a-1 n", "b-0 n"}
	t.Run("the extender chooses another", o.run)
}
