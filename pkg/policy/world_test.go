// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"cmp"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// fixture is the policies of a case, which know its world.
type fixture struct {
	*policy.Set
	*golden.World
}

// take removes the lines that begin with a word from a case and returns them.
func take(c *golden.Case, word string) []*golden.Line {
	var taken, rest []*golden.Line
	for _, l := range c.Lines {
		if l.Word(0) == word {
			taken = append(taken, l)
		} else {
			rest = append(rest, l)
		}
	}
	c.Lines = rest
	return taken
}

// pluginOf reads "plugin NAME [on= off= factor= wait= levels=]"; switches are separated by commas.
func pluginOf(l *golden.Line) config.TierPlugin {
	p := config.TierPlugin{Name: l.Word(1), Switches: map[config.Switch]bool{}, Arguments: map[string]runtime.RawExtension{}}
	for _, name := range l.Split("on", ",") {
		p.Switches[config.Switch(name)] = true
	}
	for _, name := range l.Split("off", ",") {
		p.Switches[config.Switch(name)] = false
	}
	if l.Has("factor") {
		p.Arguments["overcommit-factor"] = runtime.RawExtension{Raw: []byte(l.Text("factor", ""))}
	}
	if l.Has("levels") {
		p.Arguments["ancestorReclaimLevel"] = runtime.RawExtension{Raw: []byte(l.Text("levels", ""))}
	}
	if l.Has("wait") {
		p.Arguments["sla-waiting-time"] = quoted(l.Text("wait", ""))
	}
	return p
}

func quoted(text string) runtime.RawExtension {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return runtime.RawExtension{Raw: raw}
}

// tiersOf takes the lines of plugins, which are in the tier that they name, else in the first.
func tiersOf(c *golden.Case) []config.Tier {
	var tiers []config.Tier
	for _, l := range take(c, "plugin") {
		for l.Int("tier", 1) > len(tiers) {
			tiers = append(tiers, config.Tier{})
		}
		of := &tiers[l.Int("tier", 1)-1]
		of.Plugins = append(of.Plugins, pluginOf(l))
	}
	return tiers
}

// seat compiles the tiers and tells the policies of a world.
func seat(c *golden.Case, tiers []config.Tier, w *golden.World) fixture {
	return seatArgs(c, config.BatchQueueArgs{Tiers: tiers}, w)
}

// seatArgs compiles a configuration and tells the policies of a world.
func seatArgs(c *golden.Case, args config.BatchQueueArgs, w *golden.World) fixture {
	set, err := policy.Compile(&args)
	if err != nil {
		c.Fatalf("%v", err)
	}
	d := fixture{set, w}
	d.SetCluster(w.State.Totals().Allocatable)
	for _, name := range w.Queues {
		d.SetQueue(name, w.State.Queue(name))
	}
	for _, key := range w.Jobs {
		d.SetJob(key, w.State.Job(key))
	}
	d.Update()
	return d
}

// ownHalf is what a job holds that does not count by what its queue is due; nil of nobody.
func (d fixture) ownHalf(job string) resource.Vector {
	if job == "" {
		return nil
	}
	return d.State.Job(golden.KeyOf(job)).OwnHalf()
}

// onNodes are the tasks on nodes, by job.
func (d fixture) onNodes() []model.Victim {
	var all []model.Victim
	for _, key := range d.Jobs {
		job := d.State.Job(key)
		for _, task := range job.Tasks {
			if task.Status.HoldsNode() {
				all = append(all, model.Victim{Task: task, Job: job})
			}
		}
	}
	slices.SortFunc(all, func(a, b model.Victim) int { return cmp.Compare(a.Task.Pod.Name, b.Task.Pod.Name) })
	return all
}

// ranked are the jobs in order.
func (d fixture) ranked() []*policy.Ranked {
	var jobs []*policy.Ranked
	for _, key := range d.Jobs {
		jobs = append(jobs, d.Rank(d.State.Job(key)))
	}
	slices.SortStableFunc(jobs, d.CompareJobs)
	return jobs
}

// sorted are the queues in order.
func (d fixture) sorted() []string {
	names := slices.Clone(d.Queues)
	slices.SortStableFunc(names, func(a, b string) int { return d.CompareQueues(d.Book().Queue(a), d.Book().Queue(b)) })
	return names
}

// admit asks for a job so long after the beginning, and lets it in if nobody rejects it.
func (d fixture) admit(key model.JobKey, l *golden.Line) model.Reason {
	now := golden.Begin
	if l != nil {
		now = now.Add(l.Duration("now", 0))
	}
	world := policy.World{Used: d.State.Totals().Used, Quotas: d.State.Quotas, Now: now}
	reason := d.Admit(world, d.Rank(d.State.Job(key)))
	if reason == (model.Reason{}) {
		d.State.Admit(key, true)
		d.SetJob(key, d.State.Job(key))
		d.Update()
	}
	return reason
}

// said is what a reason says, "yes" when there is none.
func said(r model.Reason) string {
	if r == (model.Reason{}) {
		return "yes"
	}
	if r.FromNodes {
		return "no, more nodes help: " + r.Message
	}
	return "no: " + r.Message
}
