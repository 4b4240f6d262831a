// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

func TestActions(t *testing.T) {
	moves := arguments.Moves{MaxPods: 16, MaxPerHour: 60, Cooldown: time.Hour, MaxAge: time.Hour}
	// with are Volcano's defaults but for some of them.
	with := func(change func(*arguments.Action)) arguments.Action {
		a := arguments.Action{
			PredicateErrorCache: true, TopologyAwareWorkers: 16, MinCandidateNodesPercentage: 10,
			MinCandidateNodesAbsolute: 1, MaxCandidateNodesAbsolute: 100, MaxDomains: 8, AllowWholeBundle: true, Moves: moves,
		}
		if change != nil {
			change(&a)
		}
		return a
	}
	noCache := func(a *arguments.Action) { a.PredicateErrorCache = false }
	for name, tc := range map[string]struct {
		action config.Action
		file   string
		want   arguments.Action
		errs   []string
	}{
		"allocate without arguments":              {"allocate", "", with(nil), nil},
		"allocate without its cache":              {"allocate", "predicateErrorCacheEnable: false", with(noCache), nil},
		"backfill without its cache, in quotes":   {"backfill", `predicateErrorCacheEnable: "false"`, with(noCache), nil},
		"reclaim without its cache":               {"reclaim", "predicateErrorCacheEnable: false", with(noCache), nil},
		"preempt, as tools write it":              {"preempt", `enableTopologyAwarePreemption: "true"`, with(func(a *arguments.Action) { a.TopologyAwarePreemption = true }), nil},
		"gangpreempt without arguments":           {"gangpreempt", "", with(nil), nil},
		"gangreclaim with its arguments":          {"gangreclaim", "{maxDomains: 3, allowWholeBundle: false}", with(func(a *arguments.Action) { a.MaxDomains, a.AllowWholeBundle = 3, false }), nil},
		"gangpreempt that tries nothing":          {"gangpreempt", "maxDomains: 0", with(nil), []string{`configurations[0].arguments[maxDomains]: Invalid value: 0: must be a whole number of at least 1`}},
		"gangpreempt with what belongs elsewhere": {"gangpreempt", "predicateErrorCacheEnable: true", with(nil), []string{`configurations[0].arguments[predicateErrorCacheEnable]: Forbidden: unknown key; valid are "allowWholeBundle", "maxDomains"`}},
		"enqueue with an argument of old":         {"enqueue", "overcommit-factor: 1.5", with(nil), []string{`configurations[0].arguments[overcommit-factor]: Forbidden: enqueue takes no arguments; remove it`}},
		"shuffle with an argument":                {"shuffle", "period: 1m", with(nil), []string{`configurations[0].arguments[period]: Forbidden: shuffle takes no arguments; remove it`}},
		"allocate with a mistyped key":            {"allocate", "predicateErrorCacheEnabled: true", with(nil), []string{`configurations[0].arguments[predicateErrorCacheEnabled]: Forbidden: unknown key; did you mean "predicateErrorCacheEnable"?`}},
		"consolidate without arguments":           {"consolidate", "", with(nil), nil},
		"consolidate with its arguments": {
			"consolidate", "{maxPods: 1, maxMovesPerHour: 0, cooldown: 0s, maxAge: 0s}",
			with(func(a *arguments.Action) { a.Moves = arguments.Moves{MaxPods: 1} }), nil,
		},
		"consolidate with nothing right": {
			"consolidate", "{maxPods: 101, maxMovesPerHour: -1, cooldown: 721h, maxAge: 1, maxpods: 2}", with(nil),
			[]string{
				`configurations[0].arguments[maxPods]: Invalid value: 101: must be a whole number from 1 to 100`,
				`configurations[0].arguments[maxMovesPerHour]: Invalid value: -1: must be a whole number from 0 to 10000`,
				`configurations[0].arguments[cooldown]: Invalid value: "721h": must be from 0s to 720h`,
				`configurations[0].arguments[maxAge]: Invalid value: 1: must be a duration with its unit, such as "10m"`,
				`configurations[0].arguments[maxpods]: Forbidden: unknown key; did you mean "maxPods"?`,
			},
		},
		"preempt with all its arguments": {
			"preempt",
			"{predicateErrorCacheEnable: false, enableTopologyAwarePreemption: true, topologyAwarePreemptWorkerNum: 2," +
				" minCandidateNodesPercentage: 100, minCandidateNodesAbsolute: 0, maxCandidateNodesAbsolute: 5}",
			arguments.Action{
				TopologyAwarePreemption: true, TopologyAwareWorkers: 2, MinCandidateNodesPercentage: 100,
				MaxCandidateNodesAbsolute: 5, MaxDomains: 8, AllowWholeBundle: true, Moves: moves,
			},
			nil,
		},
		"preempt with nothing right": {
			"preempt",
			"{predicateErrorCacheEnable: 1, enableTopologyAwarePreemption: yes please, topologyAwarePreemptWorkerNum: 0," +
				" minCandidateNodesPercentage: 101, minCandidateNodesAbsolute: -1, maxCandidateNodesAbsolute: all, maxDomains: 1}",
			with(nil),
			[]string{
				`configurations[0].arguments[predicateErrorCacheEnable]: Invalid value: 1: must be true or false`,
				`configurations[0].arguments[enableTopologyAwarePreemption]: Invalid value: "yes please": must be true or false`,
				`configurations[0].arguments[topologyAwarePreemptWorkerNum]: Invalid value: 0: must be a whole number of at least 1`,
				`configurations[0].arguments[minCandidateNodesPercentage]: Invalid value: 101: must be a whole number from 0 to 100`,
				`configurations[0].arguments[minCandidateNodesAbsolute]: Invalid value: -1: must be a whole number of at least 0`,
				`configurations[0].arguments[maxCandidateNodesAbsolute]: Invalid value: "all": must be a whole number of at least 1`,
				`configurations[0].arguments[maxDomains]: Forbidden: unknown key; valid are "enableTopologyAwarePreemption",` +
					` "maxCandidateNodesAbsolute", "minCandidateNodesAbsolute", "minCandidateNodesPercentage",` +
					` "predicateErrorCacheEnable", "topologyAwarePreemptWorkerNum"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			entry := &config.ActionConfiguration{Name: tc.action, Arguments: values(t, tc.file)}
			got, errs := arguments.DecodeAction(entry, field.NewPath("configurations").Index(0))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decoded (-want,+got)\n%s", diff)
			}
			if diff := cmp.Diff(tc.errs, messages(errs)); diff != "" {
				t.Errorf("errors (-want,+got)\n%s", diff)
			}
		})
	}
}
