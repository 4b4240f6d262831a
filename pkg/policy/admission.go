// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"strings"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// overcommit is Volcano's plugin of that name: it lets jobs in as long as what is used and promised stays within the
// cluster times a factor.
type overcommit struct {
	// factor is at least 1.
	factor float64
	limit  resource.Limit
}

// FollowJob does nothing: the limit does not depend on jobs.
func (*overcommit) FollowJob(model.JobKey, *model.Job) {}

// FollowCluster computes the limit.
func (p *overcommit) FollowCluster(total resource.Vector) { p.limit.Amounts = total.Times(p.factor) }

// FollowQueues does nothing: the limit does not depend on queues.
func (*overcommit) FollowQueues([]*account.Queue) {}

func (p *overcommit) Admit(w World, j *Ranked) (Vote, model.Reason) {
	claim, limit := j.Claim(), p.limit
	taken := w.Used.Clone()
	taken.Add(w.Inqueue)
	over := limit.Refuses(claim, taken)
	if len(over) > 0 && p.due(w, claim) {
		return Permit, model.Reason{}
	}
	if len(over) > 0 {
		// What the job could have others evicted for counts as available.
		left := taken.Clone()
		left.Sub(w.reclaimable(nil))
		over = limit.Refuses(claim, left)
	}
	if len(over) == 0 {
		return Permit, model.Reason{}
	}
	return Reject, w.notAdmitted("cluster ", over, true, func() string {
		details := make([]string, len(over))
		for i, name := range over {
			bound, _ := limit.Of(name)
			details[i] = fmt.Sprintf("overused %s (%s used or promised, %s asked for, %g times the cluster is %s)", name,
				format(name, taken.Get(name)), format(name, claim.Get(name)), p.factor, format(name, int64(bound)))
		}
		return "resource in cluster is overused: " + strings.Join(details, ", ")
	})
}

// due reports whether the queue deserves what it holds and has promised, and the claim on top. However much was promised to
// others, such a job can run once its queue has its due. In Volcano jobs that were let in and cannot start keep it out.
func (*overcommit) due(w World, claim resource.Vector) bool {
	due := resource.Limit{Amounts: w.Queue.Deserved, Unnamed: resource.OnlyDevices}
	return len(w.Queue.Deserved) > 0 && len(due.Refuses(claim, w.committed(&w.Queue.Own))) == 0
}

// quota is Volcano's plugin resourcequota: it lets a job in only if its minimum fits the quotas of its namespace. Unlike
// Volcano's it remembers what it let in until the pods exist, which is when the quotas themselves count them.
type quota struct {
	// promised is, by namespace, what admitted jobs will ask of the quotas once their pods exist.
	promised map[string]*resource.Vector
	jobs     map[model.JobKey]resource.Vector
	// freed is called when a promise shrinks.
	freed func()
}

func newQuota() *quota {
	return &quota{promised: map[string]*resource.Vector{}, jobs: map[model.JobKey]resource.Vector{}}
}

// FollowJob keeps the promises.
func (p *quota) FollowJob(key model.JobKey, job *model.Job) {
	of := p.promised[key.Namespace]
	if of == nil {
		of = &resource.Vector{}
		p.promised[key.Namespace] = of
	}
	before := p.jobs[key]
	of.Sub(before)
	delete(p.jobs, key)
	if job != nil && job.Admitted {
		if ask := Missing(job); ask != nil {
			p.jobs[key] = ask
			of.Add(ask)
		}
	}
	if of.IsZero() {
		delete(p.promised, key.Namespace)
	}
	if before.Exceeding(p.jobs[key]) != nil {
		p.freed()
	}
}

// Missing is what the job's minimum will ask of the quotas on top of what they count: the part of minResources that its
// pods that do not exist yet have in its minimum. Nil for a job that asks for nothing more.
func Missing(job *model.Job) resource.Vector {
	if job.Group == nil || job.Group.MinQuota == nil || job.Counts.Total() >= job.Min() {
		return nil
	}
	ask := job.Group.MinQuota
	if exist := job.Counts.Total(); exist > 0 {
		part := float64(job.Min()-exist) / float64(job.Min())
		ask = ask.Clone()
		for i := range ask {
			ask[i].Value = int64(math.Ceil(float64(ask[i].Value) * part))
		}
	}
	return ask
}

// FollowCluster does nothing: quotas do not depend on the cluster.
func (p *quota) FollowCluster(resource.Vector) {}

// FollowQueues does nothing: quotas do not depend on queues.
func (p *quota) FollowQueues([]*account.Queue) {}

func (p *quota) Admit(w World, j *Ranked) (Vote, model.Reason) {
	// Pods that exist were let in by the quotas themselves.
	request := Missing(j.Job)
	if request == nil {
		return Abstain, model.Reason{}
	}
	var promised resource.Vector
	if of := p.promised[j.Key.Namespace]; of != nil {
		promised = *of
	}
	for _, q := range w.Quotas(j.Key.Namespace) {
		for _, hard := range q.Hard {
			ask := request.Get(hard.Name)
			used := q.Used.Get(hard.Name) + promised.Get(hard.Name)
			if ask > 0 && used+ask > hard.Value {
				return Reject, model.Reason{
					Kind: model.NotAdmitted, Subject: "quota " + q.Name + " " + string(hard.Name),
					Message: fmt.Sprintf("resource quota insufficient: ResourceQuota %s/%s: requested %s of %s, used or promised %s, limited to %s",
						q.Namespace, q.Name, format(hard.Name, ask), hard.Name, format(hard.Name, used), hard.Format()),
				}
			}
		}
	}
	return Abstain, model.Reason{}
}
