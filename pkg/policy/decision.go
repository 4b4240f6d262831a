// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/queue/hdrf"
)

// Decision is what puts one job or queue before another one.
type Decision struct {
	// Order is negative when the first one goes first, and zero only for one and itself.
	Order int
	// Plugin is that of the tiers that decides; empty where none has an opinion.
	Plugin string
	// Rule says who goes first, as a sentence without its end. A and B are how the two stand by it.
	Rule, A, B string
}

// jobExplainer says by which of its rules a policy puts one of two jobs first. It is asked of jobs that the policy tells apart.
type jobExplainer interface {
	explainJobs(a, b *Ranked) (rule, x, y string)
}

// queueExplainer says by which of its rules a policy puts one of two queues first. It is asked of queues that the policy tells apart.
type queueExplainer interface {
	explainQueues(a, b *account.Queue) (rule, x, y string)
}

// DecideJobs is CompareJobs with what decides.
func (o *orders) DecideJobs(a, b *Ranked) Decision {
	for _, p := range o.jobs {
		if c := p.by.CompareJobs(a, b); c != 0 {
			d := Decision{Order: c, Plugin: p.plugin}
			if e, ok := p.by.(jobExplainer); ok {
				d.Rule, d.A, d.B = e.explainJobs(a, b)
			}
			return d
		}
	}
	if c := a.Created.Compare(b.Created); c != 0 {
		return Decision{Order: c, Rule: "the older job goes first", A: created(a.Created), B: created(b.Created)}
	}
	return Decision{
		Order: cmp.Compare(a.UID, b.UID), Rule: "of jobs that were created in the same second the one with the smaller UID goes first",
		A: "UID " + string(a.UID), B: "UID " + string(b.UID),
	}
}

// DecideQueues is CompareQueues with what decides.
func (o *orders) DecideQueues(a, b *account.Queue) Decision {
	for _, p := range o.queues {
		if c := p.by.CompareQueues(a, b); c != 0 {
			d := Decision{Order: c, Plugin: p.plugin}
			if e, ok := p.by.(queueExplainer); ok {
				d.Rule, d.A, d.B = e.explainQueues(a, b)
			}
			return d
		}
	}
	d := Decision{Order: compareAge(a, b)}
	d.Rule, d.A, d.B = explainAge(a, b)
	return d
}

func (priority) explainJobs(a, b *Ranked) (rule, x, y string) {
	of := func(j *Ranked) string { return fmt.Sprintf("priority %d", j.Priority) }
	return "the job of higher priority goes first", of(a), of(b)
}

func (gang) explainJobs(a, b *Ranked) (rule, x, y string) {
	of := func(j *Ranked) string {
		return fmt.Sprintf("%d of the %d pods of its minimum", j.Counts.Ready()+j.Counts.PendingBestEffort, j.Min())
	}
	return "a job that has not reached its minimum goes before one that has", of(a), of(b)
}

func (drf) explainJobs(a, b *Ranked) (rule, x, y string) {
	x, y = apart(a.Share, b.Share)
	return "the job that holds the smaller share of the cluster goes first", x + " of the cluster", y + " of the cluster"
}

func (sla) explainJobs(a, b *Ranked) (rule, x, y string) {
	of := func(j *Ranked) string {
		if j.Deadline.IsZero() {
			return "may wait for ever"
		}
		return "may wait until " + at(j.Deadline)
	}
	return "the job whose waiting time is over sooner goes first", of(a), of(b)
}

func (tdm) explainJobs(a, b *Ranked) (rule, x, y string) {
	of := func(j *Ranked) string {
		if may, _ := j.Preemptable(); may {
			return "may be evicted"
		}
		return "may not be evicted"
	}
	return "a job that may not be evicted goes before one that may", of(a), of(b)
}

func explainPriority(a, b *account.Queue) (rule, x, y string) {
	of := func(q *account.Queue) string {
		if q.Spec == nil {
			return named(q) + "does not exist, which counts as spec.priority 0"
		}
		return fmt.Sprintf("%sspec.priority %d", named(q), q.Spec.Priority)
	}
	return "the queue of higher spec.priority goes first", of(a), of(b)
}

func explainAge(a, b *account.Queue) (rule, x, y string) {
	of := func(q *account.Queue) (time.Time, string) {
		if q.Spec == nil {
			return time.Time{}, named(q) + "does not exist"
		}
		return q.Spec.Created, named(q) + created(q.Spec.Created)
	}
	since, x := of(a)
	until, y := of(b)
	if since.Equal(until) {
		return "of queues that were created in the same second the one whose name comes first goes first", x, y
	}
	return "the older queue goes first", x, y
}

// explainShares says how much of their due two queues hold.
func explainShares(a, b *account.Queue) (rule, x, y string) {
	x, y = apart(a.Share, b.Share)
	return "the queue that holds less of what it is due goes first", named(a) + "holds " + x + " of its due", named(b) + "holds " + y + " of its due"
}

// explainDue goes with compareDue.
func explainDue(a, b *account.Queue) (rule, x, y string) {
	switch {
	case a.Share >= 1 && b.Share >= 1 && a.LatelyShare != b.LatelyShare:
		x, y = apart(a.LatelyShare, b.LatelyShare)
		return "of queues that hold what they are due the one goes first that has held less of it lately",
			named(a) + "held " + x + " of its due lately", named(b) + "held " + y + " of its due lately"
	case a.Share != b.Share:
		return explainShares(a, b)
	}
	of := func(q *account.Queue) string {
		if q.Due() {
			return named(q) + "is due something"
		}
		return named(q) + "is due nothing"
	}
	return "of queues that hold equal parts of what they are due the one goes first that is due anything", of(a), of(b)
}

func (proportion) explainQueues(a, b *account.Queue) (rule, x, y string) {
	if comparePriority(a, b) != 0 {
		return explainPriority(a, b)
	}
	return explainShares(a, b)
}

func (p capacity) explainQueues(a, b *account.Queue) (rule, x, y string) {
	switch {
	case comparePriority(a, b) != 0:
		return explainPriority(a, b)
	case !p.tree:
		return explainDue(a, b)
	case a.Leaf() != b.Leaf():
		of := func(q *account.Queue) string {
			if q.Leaf() {
				return named(q) + "has no queues below it"
			}
			return named(q) + "has queues below it"
		}
		return "a queue without others below it goes first", of(a), of(b)
	}
	return explainBranches(a, b)
}

// explainBranches goes with compareBranches.
func explainBranches(a, b *account.Queue) (rule, x, y string) {
	p, q := account.Branches(a, b)
	switch {
	case p == q:
		above, below := named(a)+"is above", named(b)+"is below"
		if p != a {
			above, below = named(a)+"is below", named(b)+"is above"
		}
		return "a queue goes before those below it", above, below
	case compareDue(p, q) != 0:
		return explainDue(p, q)
	}
	return explainAge(p, q)
}

func (p *hierarchical) explainQueues(a, b *account.Queue) (rule, x, y string) {
	s, t, parted := p.tree.Part(a.Name, b.Name)
	if !parted {
		return "of queues on branches that are equally far behind the one with the shorter path goes first", "queue " + a.Name, "queue " + b.Name
	}
	of := func(s hdrf.Standing) string {
		return "branch " + strings.TrimPrefix(strings.Join(s.Path, "/"), "/") + " "
	}
	if s.Saturated != t.Saturated {
		can := map[bool]string{false: "can get more", true: "can get no more of use"}
		return "the branch whose jobs can get more goes first", of(s) + can[s.Saturated], of(t) + can[t.Saturated]
	}
	x, y = apart(s.Share/s.Weight, t.Share/t.Weight)
	return "the branch that holds less of the cluster for its weight goes first",
		fmt.Sprintf("%sholds %s of the cluster for each unit of its weight, %g", of(s), x, s.Weight),
		fmt.Sprintf("%sholds %s of the cluster for each unit of its weight, %g", of(t), y, t.Weight)
}

// named begins what is said of a queue.
func named(q *account.Queue) string { return "queue " + q.Name + " " }

// created says when something was created.
func created(t time.Time) string { return "created " + at(t) }

// at writes a time. The API server keeps seconds.
func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// apart writes two shares with as many digits as it takes to tell them apart.
func apart(x, y float64) (a, b string) {
	for digits := 3; digits < 17; digits++ {
		a, b = strconv.FormatFloat(x, 'g', digits, 64), strconv.FormatFloat(y, 'g', digits, 64)
		if a != b || x == y {
			return a, b
		}
	}
	return strconv.FormatFloat(x, 'g', -1, 64), strconv.FormatFloat(y, 'g', -1, 64)
}
