// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

var begin = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// decision is one with so many victims.
func decision(id uint64, victims int) eviction.Decision {
	d := eviction.Decision{
		ID: id, Time: begin, Action: eviction.Reclaim, Beneficiary: model.JobKey{Source: model.FromNative, Namespace: "ml", Name: "train"}, Queue: "research",
		Members: []eviction.Member{{UID: "m", Namespace: "ml", Name: "train-0", Node: "n1", Request: resource.Vector{{Name: "cpu", Value: 1500}}}},
		Kept:    []eviction.Kept{{Reason: "higher priority", Pods: 3}}, Outcome: eviction.Started, Ended: begin.Add(time.Minute), Problem: "a problem",
	}
	for i := range victims {
		// Names that do not repeat: nothing of them is saved by compression.
		uid := types.UID(fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()))
		d.Victims = append(d.Victims, &eviction.Victim{
			Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ml", Name: fmt.Sprintf("victim-%d-%s", i, uid), UID: uid,
				OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: "victims", UID: "j", Controller: new(true)}},
			}},
			UID: uid, Job: model.JobKey{Source: model.FromOwner, Namespace: "ml", Name: "job/victims"}, Queue: "prod", Node: "n1", Why: "above its due",
			Request: resource.Vector{{Name: "cpu", Value: 1000}}, Budgeted: true, State: eviction.Gone, Deadline: begin.Add(time.Second), Evicted: true, MovesTo: "n2",
		})
	}
	return d
}

func TestWhatIsWrittenCanBeRead(t *testing.T) {
	want := []eviction.Decision{decision(1, 2), decision(2, 0)}
	content, err := encode(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(content)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-written,+read)\n%s", diff)
	}
}

// A ConfigMap has 1 MiB at most. Of the largest decisions fewer pods are written down, and none is left out.
func TestWhatIsTooLongIsCutDown(t *testing.T) {
	content, err := encode([]eviction.Decision{decision(1, 3), decision(2, 20_000), decision(3, 5)})
	if err != nil {
		t.Fatal(err)
	}
	if len(content) > most {
		t.Errorf("%d bytes are written, want %d at most", len(content), most)
	}
	got, err := decode(content)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || len(got[0].Victims) != 3 || len(got[1].Victims) < 2_000 || len(got[2].Victims) != 5 {
		t.Errorf("what is read has %d decisions, with %d, %d and %d victims", len(got), len(got[0].Victims), len(got[1].Victims), len(got[2].Victims))
	}
}

func TestWhatCannotBeReadIsTold(t *testing.T) {
	other, err := compress(file{Format: format + 1})
	if err != nil {
		t.Fatal(err)
	}
	for want, content := range map[string][]byte{"is no ledger": []byte("by hand"), "has the format 2, and this scheduler reads 1": other} {
		if _, err := decode(content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

// The ConfigMaps are used by turns, and none before all others were.
func TestDecisionsGoRound(t *testing.T) {
	for id, want := range map[uint64][2]uint64{1: {0, 0}, Each: {0, 0}, Each + 1: {1, 0}, Volumes * Each: {Volumes - 1, 0}, Volumes*Each + 1: {0, 1}} {
		if volume, edition := volumeOf(id); [2]uint64{volume, edition} != want {
			t.Errorf("decision %d is in %d, the %d. time; want %v", id, volume, edition, want)
		}
	}
}
