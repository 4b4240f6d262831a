// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/leader"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
	"github.com/caldera-scheduler/caldera/pkg/volcano/schedulerconf"
)

const (
	confName     = "volcano-scheduler.conf"
	whatHappens  = "the first minutes"
	rightsOnTop  = "rights"
	mostRounds   = 20
	namesTold    = 4
	rbacOptional = "kubectl apply -f manifests/rbac-optional/"
	leaveItOut   = "leave it out: --volcano-conf takes it for a mistake. kubectl caldera convert does so"
)

// configuration says what becomes of the scheduler's configuration, and what Caldera would do with it to what is there.
func (c *cluster) configuration(ctx context.Context) []Finding {
	if c.conf.data == nil {
		return []Finding{{State: Unknown, What: confName, Found: "no vc-scheduler mounts one by --scheduler-conf", Do: "name it by --conf"}}
	}
	mistake := func(err error) []Finding {
		return []Finding{{State: Stops, What: c.conf.source, Found: err.Error(), Do: "mend it, or give another one by --conf"}}
	}
	if profile.IsConfiguration(c.conf.data) {
		return mistake(fmt.Errorf("it is a KubeSchedulerConfiguration, want a %s", confName))
	}
	args, ignored, err := schedulerconf.ParseLenient(c.conf.data)
	if err != nil {
		return mistake(err)
	}
	base := profile.Second
	if c.only {
		base = profile.Only
	}
	scheduler, err := base.Config()
	if err == nil {
		err = profile.SetVolcano(c.conf.source, scheduler, args)
	}
	if err != nil {
		return mistake(err)
	}
	return slices.Concat(c.lines(profile.Report(args, ignored)), rights(args), c.firstMinutes(ctx, scheduler))
}

// lines says what becomes of each line of the configuration that is not the same here.
func (c *cluster) lines(report []profile.Line) []Finding {
	same := 0
	var all []Finding
	for _, l := range report {
		f := Finding{State: Differs, What: l.Field, Found: strings.TrimPrefix(l.Value+": "+string(l.Fate), ": "), Do: l.Note}
		switch l.Fate {
		case profile.Same:
			same++
			continue
		case profile.Ignored:
			f.State = ToDo
			f.Do = strings.TrimPrefix(l.Note+"; "+leaveItOut, "; ")
		case profile.Changed, profile.Unsupported:
		}
		all = append(all, f)
	}
	first := Finding{State: OK, What: confName, Found: fmt.Sprintf("%s: %d of %s the same here", c.conf.source, same, leader.Count(len(report), "line is", "lines are"))}
	return append([]Finding{first}, all...)
}

// rights are the roles that a configuration needs besides those that are always installed (manifests/rbac-optional).
func rights(args *config.BatchQueueArgs) []Finding {
	files := map[string]string{}
	for i := range args.Tiers {
		for j := range args.Tiers[i].Plugins {
			p := &args.Tiers[i].Plugins[j]
			switch _, remembers := p.Arguments["usageHalfLife"]; {
			case p.Name == "deviceshare":
				files["deviceshare.yaml"] = "deviceshare writes on pods which cards they have"
			case p.Name == "reservation":
				files["queue-notes.yaml"] = "reservation writes on queues what is reserved"
			case remembers:
				files["queue-notes.yaml"] = "usageHalfLife writes on queues what they have held"
			}
		}
	}
	var all []Finding
	for _, file := range slices.Sorted(maps.Keys(files)) {
		all = append(all, Finding{State: ToDo, What: rightsOnTop, Found: files[file], Do: rbacOptional + file})
	}
	return all
}

// firstMinutes has Caldera's scheduler place in memory what the cluster holds.
func (c *cluster) firstMinutes(ctx context.Context, scheduler *schedulerconfig.KubeSchedulerConfiguration) []Finding {
	if c.objects == nil {
		return nil
	}
	unknown := func(err error) []Finding { return []Finding{{State: Unknown, What: whatHappens, Found: err.Error()}} }
	objects, err := scenario.Complete(c.objects, c.now)
	if err != nil {
		return unknown(err)
	}
	result, err := simulate.Run(ctx, objects, simulate.Options{Config: scheduler, Now: c.now, Rounds: mostRounds})
	if err != nil {
		return unknown(err)
	}
	return happening(result)
}

// happening tells what a simulation did.
func happening(r *simulate.Result) []Finding {
	bound, waiting := 0, 0
	for i := range r.Pods {
		if r.Pods[i].Round > 0 {
			bound++
		}
	}
	var victims, misplaced []string
	for i := range r.Jobs {
		j := &r.Jobs[i]
		if j.Waits != nil {
			waiting++
			if j.Waits.Kind == model.QueueMisconfigured {
				misplaced = append(misplaced, j.Namespace+"/"+j.Name+": "+j.Waits.Message)
			}
		}
		if j.Evicted > 0 {
			victims = append(victims, fmt.Sprintf("%d of %s/%s", j.Evicted, j.Namespace, j.Name))
		}
	}
	all := []Finding{{State: OK, What: whatHappens, Found: fmt.Sprintf("of what is there Caldera places %s; %s on",
		leader.Count(bound, "more pod", "more pods"), leader.Count(waiting, "job waits", "jobs wait"))}}
	if len(victims) > 0 {
		all = append(all, Finding{State: Differs, What: whatHappens, Found: "for others it evicts " + some(victims), Do: "kubectl caldera simulate --live says for whom"})
	}
	if len(misplaced) > 0 {
		all = append(all, Finding{State: ToDo, What: "queues", Found: "there are jobs that their queue keeps for ever: " + some(misplaced), Do: "mend the queue, or name another one"})
	}
	return all
}

// some are a few of many, and how many more there are.
func some(all []string) string {
	if len(all) > namesTold {
		return fmt.Sprintf("%s and %d more", strings.Join(all[:namesTold], ", "), len(all)-namesTold)
	}
	return strings.Join(all, ", ")
}
