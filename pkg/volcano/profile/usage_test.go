// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// tiers are a volcano-scheduler.conf with the plugin usage.
func tiers(usage string) string {
	return "actions: allocate\nmetrics: {type: prometheus, address: 'http://p:9090', interval: 20s, tls.insecureSkipVerify: true}\n" +
		"tiers: [{plugins: [{name: gang}, " + usage + "]}]\n"
}

func TestUsageOfTiers(t *testing.T) {
	type result struct {
		Weight        int32
		Filter, Score bool
		CPUThreshold  float64
		Address       string
	}
	disabled := func(set *schedulerconfig.PluginSet) bool {
		return slices.ContainsFunc(set.Disabled, func(p schedulerconfig.Plugin) bool { return p.Name == "Usage" })
	}
	for name, tc := range map[string]struct {
		file string
		want []result
	}{
		"defaults":     {tiers("{name: usage}"), []result{{5, true, true, 80, "http://p:9090"}}},
		"arguments":    {tiers("{name: usage, arguments: {usage.weight: 2, thresholds: {cpu: 90}}}"), []result{{2, true, true, 90, "http://p:9090"}}},
		"score only":   {tiers("{name: usage, enablePredicate: false}"), []result{{5, false, true, 80, "http://p:9090"}}},
		"filter only":  {tiers("{name: usage, enableNodeOrder: false}"), []result{{5, true, false, 80, "http://p:9090"}}},
		"no weight":    {tiers("{name: usage, arguments: {usage.weight: 0}}"), []result{{1, true, false, 80, "http://p:9090"}}},
		"neither":      {tiers("{name: usage, enablePredicate: false, enableNodeOrder: false}"), nil},
		"not in tiers": {tiers("{name: priority}"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := profile.Read("volcano-scheduler.conf", []byte(tc.file), profile.Only)
			if err != nil {
				t.Fatal(err)
			}
			p := &c.Profiles[0]
			var got []result
			for _, enabled := range p.Plugins.MultiPoint.Enabled {
				if enabled.Name == "Usage" {
					got = append(got, result{Weight: enabled.Weight, Filter: !disabled(&p.Plugins.Filter), Score: !disabled(&p.Plugins.Score)})
				}
			}
			for _, plugin := range p.PluginConfig {
				if args, ok := plugin.Args.(*config.UsageArgs); ok {
					got[0].CPUThreshold, got[0].Address = args.CPUThreshold, args.Metrics.Address
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

func TestUsageOfTiersNeedsMetrics(t *testing.T) {
	_, err := profile.Read("volcano-scheduler.conf", []byte("tiers: [{plugins: [{name: gang}, {name: usage}]}]"), profile.Only)
	const want = "metrics: Required value: usage at tiers[0].plugins[1] does nothing without it; add the section metrics with a type and an address, or remove usage"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v, want one that says %q", err, want)
	}
}
