// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// TestTheNextProcessKnowsWhatAGangStartedWith: the condition Scheduled keeps it, also while it is False.
func TestTheNextProcessKnowsWhatAGangStartedWith(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		d := open(t, podGroup(1), member("a", running))
		time.Sleep(collected)
		said := func(when, status string) {
			t.Helper()
			for _, c := range d.podGroup().Status.Conditions {
				if c.Type == volcano.PodGroupScheduled && string(c.Status) == status && c.Message == "started with a minimum of 1 tasks" {
					return
				}
			}
			t.Errorf("%s: conditions are %+v", when, d.podGroup().Status.Conditions)
		}
		said("whole", "True")

		raised := d.podGroup()
		raised.Spec.MinMember = 9
		_, err := d.groups.SchedulingV1beta1().PodGroups("ns").Update(t.Context(), raised, metav1.UpdateOptions{})
		d.check(err)
		d.Waits(train, noPods)
		time.Sleep(3*time.Second + collected)
		said("raised, and short of pods", "False")

		next := newFixture(t, d.podGroup(), member("a", running))
		if job := next.state.Summary(train); job.Partial() || job.Start.Tasks != 1 {
			t.Errorf("after a restart it started with %d tasks, partial: %t", job.Start.Tasks, job.Partial())
		}
		next.Close()
	})
}
