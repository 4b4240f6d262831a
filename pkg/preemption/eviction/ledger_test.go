// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

func TestLedger(t *testing.T) {
	golden.Walk(t, "ledger", map[string]func(*golden.Case) string{"ledger": story})
}

// story performs the lines one after the other and shows what each returned and what the ledger holds in the end. Pods
// are named job-number.
func story(c *golden.Case) string {
	ledger := eviction.NewLedger(c.Options.Int("size", 10), c.Options.Duration("cooldown", time.Minute))
	said := &golden.Table{}
	for _, l := range c.Lines {
		now := golden.Begin.Add(l.Duration("at", 0))
		if answer := perform(c, ledger, l, now); answer != "" {
			said.Row(strings.Join(l.Words(0), " ")+":", answer)
		}
	}
	return said.String() + decisions(ledger) + figures(ledger)
}

func job(name string) model.JobKey {
	return model.JobKey{Source: model.FromVolcano, Namespace: "team", Name: name}
}

// uids are the UIDs of pods of which each is named like its UID.
func victims(names, queue string) []*eviction.Victim {
	var list []*eviction.Victim
	for name := range strings.SplitSeq(names, ",") {
		of, _, _ := strings.Cut(name, "-")
		list = append(list, &eviction.Victim{
			Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}, UID: types.UID(name), Job: job(of), Queue: queue,
			Node: "n1", Request: resource.Vector{{Name: "cpu", Value: 1000}}, Why: "lower priority",
		})
	}
	return list
}

// perform performs one line.
func perform(c *golden.Case, ledger *eviction.Ledger, l *golden.Line, now time.Time) string {
	who := l.Word(1)
	uid := types.UID(who)
	switch l.Word(0) {
	case "shuffle":
		d := ledger.Begin(now, eviction.Decision{Action: eviction.Shuffle, Victims: victims(l.Text("victims", ""), l.Text("from", "a"))})
		return fmt.Sprintf("decision %d", d.ID)
	case "begin":
		d := ledger.Begin(now, eviction.Decision{
			Action: l.Text("action", eviction.Reclaim), Beneficiary: job(who), Queue: l.Text("for", "b"),
			Members: []eviction.Member{{Namespace: "team", Name: who + "-0", Request: resource.Vector{{Name: "cpu", Value: int64(l.Int("cpu", 1)) * 1000}}}},
			Victims: victims(l.Text("victims", ""), l.Text("from", "a")),
		})
		return fmt.Sprintf("decision %d", d.ID)
	case "sent":
		return fmt.Sprint(ledger.Sent(uint64(l.Int("of", 1)), uid))
	case "leaving":
		ledger.Leaving(uid, golden.Begin.Add(l.Duration("until", time.Minute)))
	case "gone":
		ledger.Gone(uid)
	case "refused":
		return "spared " + names(ledger.Refused(uid, "the budget forbids it", now.Add(eviction.Protection)))
	case "refusal":
		return moment(ledger.Refusal(uid))
	case "started":
		return "spared " + names(ledger.Started(job(who), now))
	case "cancel":
		return "spared " + names(ledger.Cancel(job(who), now))
	case "open":
		d, ok := ledger.Open(job(who))
		if !ok {
			return "none"
		}
		return fmt.Sprintf("decision %d", d.ID)
	case "outstanding":
		left, next := ledger.Outstanding(job(who), now)
		return fmt.Sprintf("%d, next %s", left, moment(next))
	case "cooldown":
		return moment(ledger.Cooldown(who, l.Word(2), now))
	default:
		c.Fatalf("%q is nothing that can be done", l.Word(0))
	}
	return ""
}

func names(victims []*eviction.Victim) string {
	if len(victims) == 0 {
		return "nobody"
	}
	var list []string
	for _, v := range victims {
		list = append(list, fmt.Sprintf("%s (%s)", v.UID, v.State))
	}
	return strings.Join(list, " ")
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Sub(golden.Begin).String()
}

// decisions shows what is remembered.
func decisions(ledger *eviction.Ledger) string {
	table := &golden.Table{}
	for _, d := range ledger.Decisions() {
		var states []string
		for _, v := range d.Victims {
			state := string(v.State)
			if v.Evicted {
				state += "!"
			}
			states = append(states, fmt.Sprintf("%s=%s", v.UID, state))
		}
		table.Row(d.ID, moment(d.Time), d.Beneficiary.Name, d.Outcome, moment(d.Ended), strings.Join(states, " "), d.Problem)
	}
	return table.String()
}

// figures shows the sums.
func figures(ledger *eviction.Ledger) string {
	f := ledger.Figures()
	var flows []string
	for flow, n := range maps.All(f.Evictions) {
		flows = append(flows, fmt.Sprintf("%s %s->%s %d", flow.Action, flow.From, flow.For, n))
	}
	slices.Sort(flows)
	return fmt.Sprintf("evicted [%s], wasted %d, cycles %d, %s requested, %s evicted", strings.Join(flows, ", "), f.Wasted, f.Cycles,
		golden.Vector(f.Requested), golden.Vector(f.Evicted))
}
