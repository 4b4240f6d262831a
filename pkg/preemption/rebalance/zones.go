// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// Vacate chooses the pods that run on nodes of revocable zones outside the windows of those: of each job at most as many as its
// PodGroup lets be missing at once, those that are evicted first everywhere. That a gang falls below its minimum is no reason
// to stay, because the node is not its to use; its PodGroup can say how many have to stay, by volcano.sh/jdb-min-available.
// Nodes of zones without a window are left alone. Source: Volcano pkg/scheduler/plugins/tdm/tdm.go; there the pods of a job are
// chosen in no order.
func Vacate(zones map[string]arguments.Window, now time.Time, nodes []Node, protection *policy.Protection) []Choice {
	byJob := map[model.JobKey][]Choice{}
	for i := range nodes {
		zone := nodes[i].Labels[model.RevocableZoneKey]
		window, configured := zones[zone]
		if !configured || window.Contains(now) {
			continue
		}
		why := fmt.Sprintf("tdm: revocable zone %s of node %s is usable at %s only", zone, nodes[i].Name, window)
		for _, v := range nodes[i].Running {
			byJob[v.Job.Key] = append(byJob[v.Job.Key], Choice{Victim: v, Why: why})
		}
	}
	var chosen []Choice
	for _, key := range slices.SortedFunc(maps.Keys(byJob), model.JobKey.Compare) {
		all := byJob[key]
		slices.SortFunc(all, func(a, b Choice) int { return protection.Compare(a.Task, b.Task) })
		left := all[0].Job.EvictableAtOnce()
		for _, c := range all {
			if left > 0 && protection.Protects(c.Victim) == "" {
				protection.Take(c.Victim)
				chosen = append(chosen, c)
				left--
			}
		}
	}
	return chosen
}
