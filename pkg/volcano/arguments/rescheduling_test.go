// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments_test

import (
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

func TestDecodeRescheduling(t *testing.T) {
	with := func(low, target arguments.Utilization) arguments.Rescheduling {
		return arguments.Rescheduling{Interval: 5 * time.Minute, LowNodeUtilization: arguments.LowNodeUtilization{Low: low, Target: target}}
	}
	all := arguments.Utilization{CPU: 100, Memory: 100}
	run(t, "rescheduling", arguments.DecodeRescheduling, map[string]decodes[arguments.Rescheduling]{
		"nothing given": {"{}", with(all, all), nil},
		"all, quoted": {
			`{interval: 2m, metricsPeriod: '10m', strategies: [{name: lowNodeUtilization, params: {thresholds: {cpu: '20', memory: 30}, targetThresholds: {cpu: 50, memory: '60.5'},
			thresholdPriorityClassName: high, nodeFit: true, numberOfNodes: 3}}]}`,
			arguments.Rescheduling{Interval: 2 * time.Minute, LowNodeUtilization: arguments.LowNodeUtilization{
				Low: arguments.Utilization{CPU: 20, Memory: 30}, Target: arguments.Utilization{CPU: 50, Memory: 60.5},
			}},
			nil,
		},
		"one resource only": {
			"{strategies: [{name: lowNodeUtilization, params: {thresholds: {cpu: 20}, targetThresholds: {cpu: 70, memory: 80}}}]}",
			with(arguments.Utilization{CPU: 20, Memory: 100}, arguments.Utilization{CPU: 70, Memory: 80}), nil,
		},
		"no list": {
			"{strategies: lowNodeUtilization}", with(all, all),
			[]string{`plugins[0].arguments[strategies]: Invalid value: "lowNodeUtilization": must be a list of strategies, each with a name, and with params if it has any`},
		},
		"strategies that Volcano documents and does not have": {
			"{strategies: [{name: offlineOnly}, {name: lowNodeUtilisation}, {params: {}}]}", with(all, all),
			[]string{
				`plugins[0].arguments[strategies][0][name]: Unsupported value: "offlineOnly": valid are "lowNodeUtilization"`,
				`plugins[0].arguments[strategies][1][name]: Unsupported value: "lowNodeUtilisation": did you mean "lowNodeUtilization"?`,
				`plugins[0].arguments[strategies][2][name]: Required value: name a strategy, such as lowNodeUtilization`,
			},
		},
		"everything is wrong": {
			`{interval: 0s, metricsPeriod: 5, intervall: 1m, strategies: [{name: lowNodeUtilization, param: {}, params: {thresholds: {cpu: 80, pods: 20},
			targetThresholds: {cpu: 50, memory: 101}, target: {}}}]}`,
			with(arguments.Utilization{CPU: 80, Memory: 100}, arguments.Utilization{CPU: 50, Memory: 100}),
			[]string{
				`plugins[0].arguments[interval]: Invalid value: "0s": must be at least 1s`,
				`plugins[0].arguments[metricsPeriod]: Invalid value: 5: must be a duration with its unit, such as "10m"`,
				`plugins[0].arguments[strategies][0][params][thresholds][pods]: Forbidden: unknown key; valid are "cpu", "memory"`,
				`plugins[0].arguments[strategies][0][params][targetThresholds][memory]: Invalid value: 101: must be a number from 0 to 100`,
				`plugins[0].arguments[strategies][0][params][thresholds][cpu]: Invalid value: 80: must not be above targetThresholds, which is 50: a node would be used too little and too much`,
				`plugins[0].arguments[strategies][0][params][target]: Forbidden: unknown key; valid are "nodeFit", "numberOfNodes", "targetThresholds", "thresholdPriorityClassName", "thresholds"`,
				`plugins[0].arguments[strategies][0][param]: Forbidden: unknown key; did you mean "params"?`,
				`plugins[0].arguments[intervall]: Forbidden: unknown key; did you mean "interval"?`,
			},
		},
	})
}
