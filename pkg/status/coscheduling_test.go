// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// TestCoschedulingStatus: what a PodGroup of scheduler-plugins says of a gang with a minimum of two.
func TestCoschedulingStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		pending, bound, running, succeeded, failed int
		min                                        int
		before                                     coscheduling.PodGroupPhase
		want                                       string
	}{
		"no pods yet":                      {min: 2, want: "Pending 0 0 0"},
		"too few":                          {min: 2, running: 1, before: coscheduling.PodGroupRunning, want: "Pending 1 0 0"},
		"all wait":                         {min: 2, pending: 2, want: "Scheduling 0 0 0"},
		"they have nodes and do not run":   {min: 2, bound: 2, want: "Scheduling 0 0 0"},
		"one runs":                         {min: 2, bound: 1, running: 1, want: "Scheduling 1 0 0"},
		"the minimum runs":                 {min: 2, pending: 3, running: 2, want: "Running 2 0 0"},
		"one has finished":                 {min: 2, running: 1, succeeded: 1, want: "Running 1 1 0"},
		"the minimum has finished":         {min: 2, running: 1, succeeded: 2, want: "Finished 1 2 0"},
		"one has failed":                   {min: 2, running: 1, failed: 1, want: "Failed 1 0 1"},
		"one has failed, others still may": {min: 3, pending: 2, failed: 1, want: "Scheduling 0 0 1"},
		"what is over stays so":            {min: 2, pending: 2, before: coscheduling.PodGroupFailed, want: "Failed 0 0 0"},
		"no minimum":                       {pending: 1, want: "Running 0 0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			job := &model.Job{Group: &model.Group{MinMember: tc.min}}
			for s, n := range map[model.Status]int{
				model.Pending: tc.pending, model.Bound: tc.bound, model.Running: tc.running, model.Succeeded: tc.succeeded, model.Failed: tc.failed,
			} {
				job.Counts.ByStatus[s] = n
			}
			got := status.CoschedulingStatus(job, coscheduling.PodGroupStatus{Phase: tc.before})
			if said := fmt.Sprintf("%s %d %d %d", got.Phase, got.Running, got.Succeeded, got.Failed); said != tc.want {
				t.Errorf("it says %q, want %q", said, tc.want)
			}
		})
	}
}

// TestTheStatusOfLabelledPodGroupsIsWritten once for each change, and again when the API server did not take it.
func TestTheStatusOfLabelledPodGroupsIsWritten(t *testing.T) {
	listFirst(t)
	synctest.Test(t, func(t *testing.T) {
		owned := func(p *corev1.Pod) {
			p.Labels = map[string]string{model.CoschedulingLabel: "train"}
			p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "work"}}
		}
		d := open(t, &coscheduling.PodGroup{
			TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.x-k8s.io/v1alpha1", Kind: "PodGroup"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "train", UID: "u"}, Spec: coscheduling.PodGroupSpec{MinMember: 1},
		}, newPod("a", owned))
		says := func(want string, writes int) {
			t.Helper()
			time.Sleep(2 * collected)
			g, err := d.labelled.SchedulingV1alpha1().PodGroups("ns").Get(t.Context(), "train", metav1.GetOptions{})
			d.check(err)
			if said := fmt.Sprintf("%s by %s, %d running", g.Status.Phase, g.Status.OccupiedBy, g.Status.Running); said != want {
				t.Errorf("it says %q, want %q", said, want)
			}
			patches := 0
			for _, a := range d.labelled.Actions() {
				if a.Matches("patch", "podgroups") && a.GetSubresource() == "status" {
					patches++
				}
			}
			if patches != writes {
				t.Errorf("%d writes, want %d", patches, writes)
			}
		}
		says("Scheduling by ns/work, 0 running", 1)
		refused := false
		d.labelled.PrependReactor("patch", "podgroups", func(clienttesting.Action) (bool, runtime.Object, error) {
			first := !refused
			refused = true
			return first, nil, apierrors.NewServiceUnavailable("later")
		})
		pod := newPod("a", owned)
		pod.Spec.NodeName, pod.Status.Phase = "n", corev1.PodRunning
		_, err := d.kube.CoreV1().Pods("ns").Update(t.Context(), pod, metav1.UpdateOptions{})
		d.check(err)
		says("Running by ns/work, 1 running", 3)
	})
}
