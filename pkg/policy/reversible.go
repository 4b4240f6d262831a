// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// Reversible says how the job of a victim, its pods created again, could take the room of a gained task back by some
// configured action, once all of taken and gained has come about; empty when none could. It is to be asked when all of
// them were taken and gained. What protects for a time only (disruption budgets, cooldowns) does not count: it would put
// the circle off and not end it.
//
// Volcano does not ask: where shares are equal, or a queue is within its due of one resource and beyond that of another,
// its jobs evict each other in turn.
func (t *Trial) Reversible(taken []model.Victim, gained []*model.Task) (why string) {
	if len(gained) == 0 || len(t.rules.actions) == 0 || t.ruleSet.moves != nil {
		return ""
	}
	winner := t.own.job.Supposing(model.Running, gained...)
	var seen []model.JobKey
	for _, v := range taken {
		if slices.Contains(seen, v.Job.Key) {
			continue
		}
		seen = append(seen, v.Job.Key)
		lost := tasksOf(taken, v.Job.Key)
		loser := v.Job.Supposing(model.Pending, lost...)
		if v.Job.Key == winner.Key {
			winner = winner.Supposing(model.Pending, lost...)
			loser = winner
		}
		if !t.rules.Starving(loser) {
			continue
		}
		for _, action := range t.rules.actions {
			if action == config.Consolidate {
				// It takes nobody's room.
				continue
			}
			if back := t.reversed(action, loser, winner); back.takes(lost, winner, gained) {
				return fmt.Sprintf("job %s could take the room back from job %s by %s", loser.Key, winner.Key, action)
			}
		}
	}
	return ""
}

// tasksOf returns the tasks of one job.
func tasksOf(victims []model.Victim, job model.JobKey) []*model.Task {
	var tasks []*model.Task
	for _, v := range victims {
		if v.Job.Key == job {
			tasks = append(tasks, v.Task)
		}
	}
	return tasks
}

// reversed is a trial of the loser in the state that this one has come to. It shares the accounts.
func (t *Trial) reversed(action config.Action, loser, winner *model.Job) *Trial {
	back := newTrial(t.rules, t.orders, action, loser, EvictionWorld{Now: t.world.Now})
	// What somebody outside would choose then is not known.
	back.abstain()
	back.accounts = t.accounts
	if t.tree != nil {
		back.tree = t.contest().Clone()
		back.tree.SetJob(leafOf(winner.Key), winner.Queue, winner.Usage.Allocated, winner.Usage.Requested)
	}
	back.begin(loser)
	return back
}

// takes reports whether the beneficiary of this trial, with these tasks waiting, could have one of the gained tasks of the
// winner evicted. Tasks that nobody tells apart are tried once.
func (t *Trial) takes(lost []*model.Task, winner *model.Job, gained []*model.Task) bool {
	for i, task := range lost {
		alike := func(o *model.Task) bool { return slices.Equal(o.Charge, task.Charge) }
		if slices.ContainsFunc(lost[:i], alike) || t.Seek(task.Charge) != (model.Reason{}) {
			continue
		}
		for again := true; again; again = t.Relax() {
			if t.takesAny(winner, gained) {
				return true
			}
		}
	}
	return false
}

// takesAny reports whether one of the gained tasks, or all of the winner, could be evicted by the present ground.
func (t *Trial) takesAny(winner *model.Job, gained []*model.Task) bool {
	of := make(map[types.UID]*model.Task, len(winner.Tasks))
	for _, task := range winner.Tasks {
		of[task.UID] = task
	}
	type kind struct {
		class       model.Class
		role        string
		priority    int32
		preemptable bool
	}
	tried := map[kind]bool{}
	for _, g := range gained {
		k := kind{g.Class, g.Role, g.Priority, g.Preemptable()}
		if tried[k] {
			continue
		}
		tried[k] = true
		v := model.Victim{Task: of[g.UID], Job: winner}
		if t.Candidate(v) == "" && t.Evaluate(v) == "" {
			return true
		}
	}
	return t.WholeJobs() && t.takesWhole(winner)
}

// takesWhole reports whether all of a job could be evicted together.
func (t *Trial) takesWhole(job *model.Job) bool {
	var all []model.Victim
	for _, task := range job.Tasks {
		v := model.Victim{Task: task, Job: job}
		if task.Status.HoldsNode() && t.Candidate(v) == "" {
			all = append(all, v)
		}
	}
	return len(all) > 1 && t.Evaluate(all...) == ""
}
