// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

func TestTopologiesOfTiers(t *testing.T) {
	type result struct {
		Weight int32
		Scores bool
		Gangs  bool
	}
	const tasks, network = "TaskTopology", "NetworkTopology"
	for name, tc := range map[string]struct {
		entry string
		want  map[string]result
	}{
		"not in tiers":                    {"name: priority", nil},
		"tasks":                           {"name: task-topology", map[string]result{tasks: {2, true, false}}},
		"tasks with a weight":             {"name: task-topology, arguments: {task-topology.weight: 10}", map[string]result{tasks: {20, true, false}}},
		"tasks without a weight":          {"name: task-topology, arguments: {task-topology.weight: 0}", nil},
		"tasks that do not score":         {"name: task-topology, enableNodeOrder: false", nil},
		"network":                         {"name: network-topology-aware", map[string]result{network: {2, true, true}}},
		"network with a weight":           {"name: network-topology-aware, arguments: {weight: '10'}", map[string]result{network: {20, true, true}}},
		"network without a weight":        {"name: network-topology-aware, arguments: {weight: 0}", map[string]result{network: {2, false, true}}},
		"network that does not score":     {"name: network-topology-aware, enableNodeOrder: false", map[string]result{network: {2, false, true}}},
		"network that leaves gangs alone": {"name: network-topology-aware, enabledHyperNodeGradient: false", map[string]result{network: {2, true, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := profile.Read("volcano-scheduler.conf", []byte("tiers: [{plugins: [{name: gang}, {"+tc.entry+"}]}]"), profile.Only)
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]result
			p := &c.Profiles[0]
			for _, enabled := range p.Plugins.MultiPoint.Enabled {
				if enabled.Name != tasks && enabled.Name != network {
					continue
				}
				r := result{Weight: enabled.Weight, Scores: !slices.ContainsFunc(p.Plugins.Score.Disabled, func(d schedulerconfig.Plugin) bool { return d.Name == enabled.Name })}
				for _, given := range p.PluginConfig {
					if args, ok := given.Args.(*config.NetworkTopologyArgs); ok {
						r.Gangs = args.Gangs
					}
				}
				got = map[string]result{enabled.Name: r}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}
