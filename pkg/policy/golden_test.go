// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

func TestRules(t *testing.T) {
	golden.Walk(t, "rules", map[string]func(*golden.Case) string{"votes": votes, "switches": switches})
}

func TestOrders(t *testing.T) {
	golden.Walk(t, "orders", map[string]func(*golden.Case) string{"jobs": jobs, "queues": queues})
}

func TestLimits(t *testing.T) {
	golden.Walk(t, "limits", map[string]func(*golden.Case) string{"limits": limits})
}

func TestAdmission(t *testing.T) {
	golden.Walk(t, "admission", map[string]func(*golden.Case) string{"admit": admit})
}

// votes combines the votes of each line: "+" permits, "-" rejects, "0" abstains, "|" is between tiers.
func votes(c *golden.Case) string {
	ballots := map[byte]policy.Vote{'+': policy.Permit, '-': policy.Reject, '0': policy.Abstain}
	table := &golden.Table{}
	for _, l := range c.Lines {
		tiers := [][]policy.Ballot{nil}
		for _, word := range l.Words(1) {
			if word == "|" {
				tiers = append(tiers, nil)
				continue
			}
			vote, known := ballots[word[len(word)-1]]
			if !known {
				c.Fatalf("%q is no vote", word)
			}
			b := policy.Ballot{Vote: vote}
			if vote == policy.Reject {
				b.Message = word
			}
			tiers[len(tiers)-1] = append(tiers[len(tiers)-1], b)
		}
		permitted, why := policy.TierVote(tiers)
		table.Row(strings.Join(l.Words(1), " "), permitted, why.Message)
	}
	return table.String()
}

// jobs shows the jobs in order, and what puts each before the next.
func jobs(c *golden.Case) string {
	d := seat(c, tiersOf(c), c.World())
	table := &golden.Table{}
	table.Row("job", "priority", "ready", "share", "deadline", "age")
	for _, j := range d.ranked() {
		deadline := "none"
		if !j.Deadline.IsZero() {
			deadline = j.Deadline.Sub(golden.Begin).String()
		}
		table.Row(j.Key.Name, j.Priority, fmt.Sprintf("%d/%d", j.Counts.Ready()+j.Counts.PendingBestEffort, j.Min()),
			golden.Number(j.Share), deadline, j.Created.Sub(golden.Begin))
	}
	return table.String() + decisions(d.ranked(), func(j *policy.Ranked) string { return j.Key.Name }, d.CompareJobs, d.DecideJobs)
}

// decisions are what puts each in a list before the next. What is said of any two must go with their order.
func decisions[T any](list []T, name func(T) string, compare func(a, b T) int, decide func(a, b T) policy.Decision) string {
	var text strings.Builder
	for i, a := range list {
		for k, b := range list {
			d := decide(a, b)
			if (d.Order < 0) != (compare(a, b) < 0) || i != k && (d.Order == 0 || d.A == "" || d.B == "" || d.Rule == "") {
				fmt.Fprintf(&text, "%s and %s: the order is %d, and %+v\n", name(a), name(b), compare(a, b), d)
			}
			if k == i+1 {
				fmt.Fprintf(&text, "%s before %s (%s): %s: %s, %s\n", name(a), name(b), cmp.Or(d.Plugin, "no plugin"), d.Rule, d.A, d.B)
			}
		}
	}
	return text.String()
}

// queues shows the queues in order, and what puts each before the next.
func queues(c *golden.Case) string {
	d := seat(c, tiersOf(c), c.World())
	table := &golden.Table{}
	table.Row("queue", "priority", "due", "share", "age")
	for _, name := range d.sorted() {
		q := d.Book().Queue(name)
		table.Row(name, q.Spec.Priority, golden.Portion(q.Deserved), golden.Number(q.Share), q.Spec.Created.Sub(golden.Begin))
	}
	var list []*account.Queue
	for _, name := range d.sorted() {
		list = append(list, d.Book().Queue(name))
	}
	return table.String() + decisions(list, func(q *account.Queue) string { return q.Name }, d.CompareQueues, d.DecideQueues)
}

// limits answers "ask QUEUE for= [by=JOB] [borrowing] [twice] [released=]": may the queue take so much, for a job of it, and after that so much
// again, and after other queues gave up as much, one after the other; and shows
// which queues are overused and which jobs outgrow what their queues are due.
func limits(c *golden.Case) string {
	asks := take(c, "ask")
	d := seat(c, tiersOf(c), c.World())
	table := &golden.Table{}
	for _, l := range asks {
		q, ask := d.Book().Queue(l.Word(1)), l.Amounts("for")
		borrowing := slices.Contains(l.Words(2), "borrowing")
		own := d.ownHalf(l.Text("by", ""))
		answer := d.Refuses(q, own, ask, borrowing)
		budget := d.Budget(q, own, borrowing)
		if other := budget.Refuses(ask); other != answer {
			c.Fatalf("the budget of %s says %q, its policies %q", q.Name, said(other), said(answer))
		}
		table.Row(strings.Join(l.Words(1), " "), golden.Vector(ask), said(answer))
		if slices.Contains(l.Words(2), "twice") {
			rest := budget.Clone()
			rest.Take(ask)
			table.Row("  and again", golden.Vector(ask), said(rest.Refuses(ask)))
			for _, name := range l.Split("released", ",") {
				rest.Release(name, ask)
				table.Row("  and so much released by "+name, golden.Vector(ask), said(rest.Refuses(ask)))
			}
			if other := budget.Refuses(ask); other != answer {
				c.Fatalf("what was taken of a clone is gone from the budget of %s: %q", q.Name, said(other))
			}
		}
	}
	for _, name := range d.Queues {
		if reason := d.Overused(d.Book().Queue(name), nil); reason != (model.Reason{}) {
			table.Row("overused", name, reason.Message)
		}
	}
	for _, key := range d.Jobs {
		job := d.State.Job(key)
		if d.Outgrows(d.Book().Queue(job.Queue), job) {
			table.Row("outgrows", key.Name, golden.Vector(job.Need()))
		}
		q, own := d.Book().Queue(job.Queue), job.OwnHalf()
		if held := d.Overused(q, nil) != (model.Reason{}); own != nil && held && d.Overused(q, own) == (model.Reason{}) {
			table.Row("not overused but for", key.Name, golden.Vector(own))
		}
	}
	return table.String()
}

// admit lets jobs in one after the other. "create" gives a job more pods before the next is asked for.
func admit(c *golden.Case) string {
	var steps []*golden.Line
	for _, l := range c.Lines {
		if word := l.Word(0); word == "ask" || word == "create" || word == "used" {
			steps = append(steps, l)
		}
	}
	take(c, "ask")
	take(c, "create")
	take(c, "used")
	d := stageOf(c, argsOf(c)).fixture
	table := &golden.Table{}
	for _, l := range steps {
		key := golden.KeyOf(l.Word(1))
		switch l.Word(0) {
		case "ask":
			table.Row(key.Name, said(d.admit(key, l)))
		case "create":
			for range l.Int("pods", 1) {
				d.AddPod(key, "waiting", l.List("of"), golden.Begin)
			}
			d.SetJob(key, d.State.Job(key))
			d.Update()
		case "used":
			d.State.UpsertQuota(&model.Quota{
				Namespace: golden.Namespace, Name: l.Word(1), Hard: l.Amounts("hard"), Used: l.Amounts("of"),
			})
		}
	}
	return table.String()
}

// switches shows, for each switch of the plugins that changes anything, which answers it changes.
func switches(c *golden.Case) string {
	tiers := tiersOf(c)
	before := answers(seat(c, tiers, c.World()))
	table := &golden.Table{}
	for i := range tiers {
		for k := range tiers[i].Plugins {
			for _, s := range config.Switches() {
				p := &tiers[i].Plugins[k]
				given := p.Switches
				p.Switches = maps.Clone(given)
				p.Switches[s] = !p.Enabled(s)
				after := answers(seat(c, tiers, c.World()))
				p.Switches = given
				var changed []string
				for n := range before {
					if before[n] != after[n] {
						changed = append(changed, hooks[n])
					}
				}
				if changed != nil {
					table.Row(p.Name, s, strings.Join(changed, ", "))
				}
			}
		}
	}
	return table.String()
}

// hooks name the answers.
var hooks = []string{"job order", "task order", "queue order", "overused", "limits", "admission", "gangs", "starving", "victims inside", "victims across", "entitled"}

// answers are what the policies say to each hook.
func answers(d fixture) []string {
	said := make([]string, len(hooks))
	for _, j := range d.ranked() {
		said[0] += " " + j.Key.Name
	}
	said[1] = fmt.Sprint(d.CompareTasks(&model.Task{Priority: 1}, &model.Task{Priority: 2}))
	said[2] = fmt.Sprint(d.sorted())
	for _, name := range d.Queues {
		q := d.Book().Queue(name)
		said[3] += d.Overused(q, nil).Message + ";"
		said[4] += d.Refuses(q, nil, resource.Vector{{Name: "cpu", Value: 1000}}, false).Message + ";"
	}
	for _, key := range d.Jobs {
		if j := d.State.Job(key); !j.Admitted {
			said[5] += d.admit(key, nil).Message + ";"
		}
	}
	said[6] = fmt.Sprint(d.Gangs)
	for _, key := range d.Jobs {
		job := d.State.Job(key)
		said[7] += fmt.Sprint(d.Starving(job))
		inside, across := d.Trial(config.Preempt, job, policy.EvictionWorld{}), d.Trial(config.Reclaim, job, policy.EvictionWorld{})
		for _, v := range d.onNodes() {
			said[8] += decide(inside, v) + ";"
			said[9] += decide(across, v) + ";"
		}
		said[10] += across.Entitled(job.Need()).Message
	}
	return said
}
