// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// placed is a job that waits at a place.
func placed(name, queue string, inQueue, ofQueues int32) *v1alpha1.JobView {
	return &v1alpha1.JobView{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}, Status: v1alpha1.JobViewStatus{
		Queue: queue, Waiting: true, Phase: v1alpha1.JobInqueue, Position: &v1alpha1.Position{InQueue: inQueue, Queue: ofQueues},
	}}
}

func TestWhoGoesFirstIsWritten(t *testing.T) {
	const rule = "the queue that holds less of what it is due goes first"
	for name, tc := range map[string]struct {
		a, b *v1alpha1.JobView
		p    dispatch.Precedence
		want string
	}{
		"in one queue": {
			a: placed("a", "q", 2, 1), b: placed("b", "q", 1, 1),
			p: dispatch.Precedence{Decision: policy.Decision{Order: 1, Plugin: "priority", Rule: "the job of higher priority goes first", A: "priority 0", B: "priority 5"}},
			want: "ml/b goes before ml/a\n\nBETWEEN      jobs of queue q\nDECIDED BY   plugin priority\nRULE         the job of higher priority goes first\n" +
				"ml/b         priority 5\nml/a         priority 0\n",
		},
		"of two queues": {
			a: placed("a", "q", 3, 1), b: placed("b", "r", 1, 2),
			p: dispatch.Precedence{Decision: policy.Decision{Order: -1, Plugin: "capacity", Rule: rule, A: "0.1", B: "0.2"}, Queues: true},
			want: "ml/a goes before ml/b\n\nBETWEEN      queues q and r\nDECIDED BY   plugin capacity\nRULE         " + rule + "\nml/a         0.1\nml/b         0.2\n\n" +
				"2 jobs of queue q come before ml/a.\nWhat queues hold changes with each job that starts or ends, and so may this.\n",
		},
		"other than the places say": {
			a: placed("a", "q", 2, 1), b: placed("b", "q", 1, 1), p: dispatch.Precedence{Decision: policy.Decision{Order: -1, Rule: "the older job goes first", A: "x", B: "y"}},
			want: "ml/a goes before ml/b\n\nBETWEEN      jobs of queue q\nDECIDED BY   no plugin tells them apart\nRULE         the older job goes first\nml/a         x\nml/b         y\n\n" +
				"The scheduler that leads had them the other way round when it last looked: something has changed since, or counts that is known to it alone.\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if err := writeOrder(&out, tc.a, tc.b, &tc.p); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestJobsThatDoNotWaitHaveNoPlace(t *testing.T) {
	waits, runs := placed("waits", "q", 1, 1), placed("runs", "q", 1, 1)
	runs.Status.Waiting, runs.Status.Phase = false, v1alpha1.JobRunning
	const one = "ml/runs does not wait (Running): it has no place in the order: only jobs that wait have."
	for name, tc := range map[string]struct {
		a, b *v1alpha1.JobView
		want string
	}{
		"the first": {runs, waits, one}, "the second": {waits, runs, one}, "both wait": {waits, waits, ""},
		"neither": {runs, runs, "Neither ml/runs nor ml/runs waits: only jobs that wait have a place in the order."},
	} {
		if wait, said := notWaiting(tc.a, tc.b); said != tc.want || wait != (tc.want == "") {
			t.Errorf("%s: %t, %s", name, wait, said)
		}
	}
}
