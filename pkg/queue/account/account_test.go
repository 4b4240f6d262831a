// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package account_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

func TestAccounts(t *testing.T) {
	golden.Walk(t, "accounts", map[string]func(*golden.Case) string{"accounts": accounts})
}

var modes = map[string]account.Mode{
	"proportion": account.Proportion, "capacity": account.Capacity, "hierarchy": account.Hierarchy,
	"undivided": account.Undivided,
}

// queueOf reads "queue NAME parent= weight= deserved= guarantee= capability=".
func queueOf(l *golden.Line) *model.Queue {
	return &model.Queue{
		Name: l.Word(1), Parent: l.Text("parent", ""), Weight: int32(l.Int("weight", 1)),
		Deserved: l.Amounts("deserved"), Guarantee: l.Amounts("guarantee"), Capability: l.Amounts("capability"),
	}
}

// jobOf reads "job NAME queue= holds= waits= min= in". It is one job of as many tasks as it says: one that holds, one
// that waits.
func jobOf(l *golden.Line) *model.Job {
	holds, waits := l.Amounts("holds"), l.Amounts("waits")
	job := &model.Job{
		Key:      model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: l.Word(1)},
		Queue:    l.Text("queue", "default"),
		Group:    &model.Group{MinMember: 2},
		Admitted: slices.Contains(l.Words(2), "in"),
	}
	if l.Has("min") {
		job.Group.MinResources = l.Amounts("min")
	}
	job.Usage.Allocated = holds
	job.Usage.Requested = holds.Clone()
	job.Usage.Requested.Add(waits)
	if !holds.IsZero() {
		job.Counts.ByStatus[model.Running] = 1
	}
	if !waits.IsZero() {
		job.Counts.ByStatus[model.Pending] = 1
		job.Pending = []model.Demand{{Count: 1, Request: waits}}
	}
	return job
}

// accounts shows what each queue is due, may hold, holds and has promised.
func accounts(c *golden.Case) string {
	book := account.NewBook(modes[c.Options.Text("mode", "proportion")])
	for _, l := range c.Lines {
		switch l.Word(0) {
		case "total":
			book.SetCluster(l.Amounts("of"))
		case "queue":
			book.SetQueue(l.Word(1), queueOf(l))
		case "job":
			job := jobOf(l)
			book.SetJob(job.Key, job)
		case "gone":
			book.SetQueue(l.Word(1), nil)
		default:
			c.Fatalf("no line %q", l.Word(0))
		}
	}
	book.Update()
	table := &golden.Table{}
	table.Row("queue", "due", "limit", "holds", "promised", "share", "fault")
	for _, q := range book.Queues() {
		usage := book.UsageOf(q)
		fault := q.Fault.Message
		if fault == "" {
			fault = "-"
		}
		table.Row(q.Name, golden.Portion(q.Deserved), limitText(q.Real), golden.Portion(usage.Allocated.Portion()),
			golden.Portion(usage.Inqueue.Portion()), fmt.Sprintf("%.4g", q.Share), fault)
	}
	return table.String()
}

func limitText(l resource.Limit) string {
	text := golden.Portion(l.Amounts)
	if l.Unnamed == resource.Unlimited {
		if len(l.Amounts) == 0 {
			return "none"
		}
		text += " others none"
	}
	return text
}
