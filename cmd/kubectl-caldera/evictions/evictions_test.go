// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/visibility"
)

// filled is a ledger of three decisions.
func filled() *eviction.Ledger {
	ledger := eviction.NewLedger(10, time.Minute)
	now := time.Now().Add(-72 * time.Hour)
	job := func(name string) model.JobKey {
		return model.JobKey{Source: model.FromVolcano, Namespace: "ml", Name: name}
	}
	victim := func(name, of, queue string) *eviction.Victim {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name}}
		return &eviction.Victim{Pod: pod, UID: types.UID(name), Job: job(of), Queue: queue, Node: "n1", Why: "queue " + queue + " is above its due"}
	}
	d := ledger.Begin(now, eviction.Decision{
		Action: eviction.Reclaim, Beneficiary: job("train"), Queue: "research", Members: make([]eviction.Member, 4),
		Victims: []*eviction.Victim{victim("web-0", "web", "prod"), victim("etl-0", "etl", "data")},
		Kept:    []eviction.Kept{{Reason: "of higher priority", Pods: 1}, {Reason: "not preemptable", Pods: 7}},
	})
	for _, v := range d.Victims {
		ledger.Sent(d.ID, v.UID)
		ledger.Leaving(v.UID, now.Add(time.Minute))
		ledger.Gone(v.UID)
	}
	ledger.Started(job("train"), now.Add(30*time.Second))
	d = ledger.Begin(now.Add(24*time.Hour), eviction.Decision{
		Action: eviction.Preempt, Beneficiary: job("urgent"), Queue: "data", Members: make([]eviction.Member, 1),
		Victims: []*eviction.Victim{victim("etl-1", "etl", "data"), victim("etl-2", "etl", "data")},
	})
	ledger.Sent(d.ID, "etl-1")
	ledger.Refused("etl-1", "the budget etl forbids it", now.Add(24*time.Hour+eviction.Protection))
	ledger.Begin(now.Add(48*time.Hour), eviction.Decision{
		Action: eviction.GangReclaim, Beneficiary: job("train"), Queue: "research", Members: make([]eviction.Member, 2),
		Victims: []*eviction.Victim{victim("web-1", "web", "prod")},
	})
	return ledger
}

// shown is what the command writes of a ledger.
func shown(t *testing.T, ledger *eviction.Ledger, keep selection, details bool) string {
	t.Helper()
	decisions := visibility.New(visibility.Source{Ledger: ledger, Clock: clock.RealClock{}}).Evictions("")
	decisions = slices.DeleteFunc(decisions, func(d v1alpha1.EvictionDecision) bool { return !keep.matches(&d.Status) })
	var out strings.Builder
	if err := write(&out, decisions, details || keep.name != "", time.Now()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestDecisionsAreListed(t *testing.T) {
	const (
		newest = "24h   gangreclaim   ml/train    research   prod        0/1       Pending\n"
		middle = "2d    preempt       ml/urgent   data       data        0/2       Cancelled\n"
		oldest = "3d    reclaim       ml/train    research   data,prod   2/2       Started\n"
	)
	const details = `3d ago: reclaim for ml/train in queue research, to start 4 pods; 2/2 evicted: Started after 30s
  VICTIM     JOB      QUEUE   NODE   STATE   RULE
  ml/web-0   ml/web   prod    n1     Gone    queue prod is above its due
  ml/etl-0   ml/etl   data    n1     Gone    queue data is above its due
  1 pod kept: of higher priority
  7 pods kept: not preemptable
`
	const refused = `2d ago: preempt for ml/urgent in queue data, to start 1 pod; 0/2 evicted: Cancelled after 0s
  evicting pod ml/etl-1 was refused: the budget etl forbids it
  VICTIM     JOB      QUEUE   NODE   STATE     RULE
  ml/etl-1   ml/etl   data    n1     Refused   queue data is above its due
  ml/etl-2   ml/etl   data    n1     Spared    queue data is above its due
`
	const pending = `24h ago: gangreclaim for ml/train in queue research, to start 2 pods; 0/1 evicted: Pending
  VICTIM     JOB      QUEUE   NODE   STATE     RULE
  ml/web-1   ml/web   prod    n1     Planned   queue prod is above its due
`
	const head = "AGE   ACTION        JOB         QUEUE      FROM        VICTIMS   OUTCOME\n"
	const nothing = "No such evictions are remembered.\n"
	ledger := filled()
	for name, tc := range map[string]struct {
		keep    selection
		details bool
		want    string
	}{
		"all":                            {want: head + newest + middle + oldest},
		"with all details":               {details: true, want: pending + "\n" + refused + "\n" + details},
		"for a job":                      {keep: selection{namespace: "ml", name: "urgent"}, want: refused},
		"taken from a job":               {keep: selection{namespace: "ml", name: "etl"}, want: refused + "\n" + details},
		"of a job in another namespace":  {keep: selection{namespace: "prod", name: "urgent"}, want: nothing},
		"of a job of nobody":             {keep: selection{namespace: "ml", name: "nobody"}, want: nothing},
		"of a queue that lost and got":   {keep: selection{queue: "data"}, details: true, want: refused + "\n" + details},
		"of a job and a queue":           {keep: selection{namespace: "ml", name: "train", queue: "data"}, want: details},
		"of a queue nothing was done in": {keep: selection{queue: "idle"}, want: nothing},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, shown(t, ledger, tc.keep, tc.details)); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestEvictionsForNobodyHaveNoJob(t *testing.T) {
	ledger := eviction.NewLedger(10, time.Minute)
	now := time.Now().Add(-72 * time.Hour)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "web-0"}}
	d := ledger.Begin(now, eviction.Decision{Action: eviction.Shuffle, Victims: []*eviction.Victim{{
		Pod: pod, UID: "web-0", Job: model.JobKey{Source: model.FromVolcano, Namespace: "ml", Name: "web"}, Queue: "prod", Node: "n1", Why: "node n1 is full",
	}}})
	ledger.Sent(d.ID, "web-0")
	ledger.Leaving("web-0", now.Add(time.Minute))
	ledger.Gone("web-0")
	for want, keep := range map[string]selection{
		"AGE   ACTION    JOB   QUEUE   FROM   VICTIMS   OUTCOME\n3d    shuffle   -     -       prod   1/1       Done\n": {},
		"3d ago: shuffle; 1/1 evicted: Done\n  VICTIM     JOB      QUEUE   NODE   STATE   RULE\n" +
			"  ml/web-0   ml/web   prod    n1     Gone    node n1 is full\n": {namespace: "ml", name: "web"},
	} {
		if diff := cmp.Diff(want, shown(t, ledger, keep, false)); diff != "" {
			t.Errorf("(-want,+got)\n%s", diff)
		}
	}
}

func TestMovesSayWhereTo(t *testing.T) {
	ledger := eviction.NewLedger(10, time.Minute)
	big := model.JobKey{Source: model.FromVolcano, Namespace: "ml", Name: "big"}
	ledger.Begin(time.Now().Add(-time.Hour), eviction.Decision{
		Action: eviction.Consolidate, Beneficiary: big, Queue: "research", Members: []eviction.Member{{UID: "big-0", Name: "big-0"}},
		Victims: []*eviction.Victim{{
			Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "web-0"}}, UID: "web-0", MovesTo: "n2",
			Job: model.JobKey{Source: model.FromVolcano, Namespace: "ml", Name: "web"}, Queue: "prod", Node: "n1", Why: "consolidate",
		}},
	})
	got := shown(t, ledger, selection{namespace: "ml", name: "big"}, false)
	want := "60m ago: consolidate for ml/big in queue research, to start 1 pod; 0/1 evicted: Pending\n  VICTIM     JOB      QUEUE   NODE       STATE     RULE\n" +
		"  ml/web-0   ml/web   prod    n1 to n2   Planned   consolidate\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
}

func TestOtherNamespacesAreCounted(t *testing.T) {
	now := time.Now()
	decisions := []v1alpha1.EvictionDecision{{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))},
		Status: v1alpha1.EvictionDecisionStatus{
			Action: "reclaim", Job: &v1alpha1.JobReference{Namespace: "ml", Name: "train", Queue: "research"}, Pods: 2, OtherVictims: 3, Outcome: "Started",
		},
	}}
	const table = "AGE   ACTION    JOB        QUEUE      FROM   VICTIMS     OUTCOME\n60m   reclaim   ml/train   research   -      0/0 and 3   Started\n"
	const details = "60m ago: reclaim for ml/train in queue research, to start 2 pods; 0/0 and 3 evicted: Started\n" +
		"  VICTIM   JOB   QUEUE   NODE   STATE   RULE\n  and 3 pods of other namespaces\n"
	for want, all := range map[string]bool{table: false, details: true} {
		var out strings.Builder
		if err := write(&out, decisions, all, now); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want,+got)\n%s", diff)
		}
	}
}
