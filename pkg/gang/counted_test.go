// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/gang/room"
)

// TestWhatAPlanPlacesHasPlaces: jobs for which the count of places leaves too few are not planned, so it must never leave out a node on
// which a plan would place a task. Nodes that filters refused in a plan that came to nothing stay refused while nothing changes.
func TestWhatAPlanPlacesHasPlaces(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := drawFixture(t, r)
		size := rapid.IntRange(1, 24).Draw(r, "size")
		least := rapid.IntRange(1, size).Draw(r, "least")
		job := w.job(gangOf("train", least, size, "1", append([]func(int, *corev1.Pod){labelledAlike}, drawPods(r)...)...))
		index := room.New(func(string) room.Checks {
			return room.Checks{Resources: true, Affinity: true, Taints: true, Unschedulable: true}
		})
		index.Reset(w.state.Rooms())
		plan := w.plan(t, job)
		places := 0
		for _, d := range job.Pending {
			shape := index.Follow(d.Shape, d.Pod, d.Request)
			index.Veto(shape, plan.Vetoed[d.Shape])
			places += min(d.Count, shape.Places())
		}
		if len(plan.Placements) > 0 && (places < least || len(plan.Vetoed) > 0) {
			r.Fatalf("%d tasks are placed, %d must be, and there are %d places, with vetoes %v", len(plan.Placements), least, places, plan.Vetoed)
		}
		if len(plan.Placements) > 0 || plan.Labels {
			return
		}
		// Others that ask for the same, with labels that nobody selects, are refused, too.
		like := w.job(gangOf("other", least, size, "1", append([]func(int, *corev1.Pod){labelledAlike}, func(i int, p *corev1.Pod) {
			original := job.Tasks[i].Pod
			p.Spec, p.Labels = *original.Spec.DeepCopy(), map[string]string{"job-name": fmt.Sprint("other-", i)}
			maps.Copy(p.Labels, original.Labels)
		})...))
		if again := w.plan(t, like); len(again.Placements) > 0 {
			r.Fatalf("a job is refused, %q, and one that differs in labels is placed", plan.Reason.Text())
		}
	})
}

// TestARefusalTellsWhetherRoomWouldHelp: it does not help pods whose volume claim is missing, whichever plugin finds that out first.
func TestARefusalTellsWhetherRoomWouldHelp(t *testing.T) {
	missing := func(_ int, p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "typo"},
		}}}
	}
	w := newFixture(t, nodeShapes{{count: 2, cpu: "4", memory: "8Gi"}}, nil)
	for name, tc := range map[string]struct {
		gang  gangSpec
		unmet bool
	}{
		"a claim is missing":       {gang: gangOf("typo", 2, 2, "1", missing), unmet: true},
		"the nodes are too small":  {gang: gangOf("large", 2, 2, "8")},
		"none of them is selected": {gang: gangOf("nowhere", 2, 2, "1", func(_ int, p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": "none"} })},
	} {
		t.Run(name, func(t *testing.T) {
			plan := w.plan(t, w.job(tc.gang))
			if len(plan.Placements) > 0 || plan.Unmet != tc.unmet {
				t.Errorf("%d are placed, %q; room would not help: %t, want %t", len(plan.Placements), plan.Reason.Text(), plan.Unmet, tc.unmet)
			}
		})
	}
}
