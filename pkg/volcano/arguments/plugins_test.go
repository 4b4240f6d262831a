// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// values are arguments as a file has them.
func values(t *testing.T, file string) map[string]runtime.RawExtension {
	t.Helper()
	var parsed map[string]runtime.RawExtension
	if err := yaml.UnmarshalStrict([]byte(file), &parsed); err != nil {
		t.Fatal(err)
	}
	return parsed
}

// messages are those of the errors, in their order.
func messages(errs field.ErrorList) []string {
	var list []string
	for _, err := range errs {
		list = append(list, err.Error())
	}
	return list
}

// decodes is one way to write the arguments of a plugin, and what they mean.
type decodes[T any] struct {
	file string
	want T
	errs []string
}

// run decodes the arguments of a plugin that is the first of its tier.
func run[T any](t *testing.T, plugin string, decode func(*config.TierPlugin, *field.Path) (T, field.ErrorList), cases map[string]decodes[T]) {
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			entry := &config.TierPlugin{Name: plugin, Arguments: values(t, tc.file)}
			got, errs := decode(entry, field.NewPath("plugins").Index(0))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decoded (-want,+got)\n%s", diff)
			}
			if diff := cmp.Diff(tc.errs, messages(errs)); diff != "" {
				t.Errorf("errors (-want,+got)\n%s", diff)
			}
			if diff := cmp.Diff(tc.errs, messages(arguments.Check(entry, field.NewPath("plugins").Index(0)))); diff != "" {
				t.Errorf("errors of the check (-want,+got)\n%s", diff)
			}
		})
	}
}

func TestOvercommit(t *testing.T) {
	const limit = "must be a number of at least 1"
	run(t, "overcommit", arguments.DecodeOvercommit, map[string]decodes[arguments.Overcommit]{
		"absent is Volcano's default":    {"", arguments.Overcommit{Factor: 1.2}, nil},
		"a number":                       {"overcommit-factor: 1.5", arguments.Overcommit{Factor: 1.5}, nil},
		"a whole number":                 {"overcommit-factor: 2", arguments.Overcommit{Factor: 2}, nil},
		"a number in quotes":             {`overcommit-factor: "1.5"`, arguments.Overcommit{Factor: 1.5}, nil},
		"nothing over the cluster":       {"overcommit-factor: 1.0", arguments.Overcommit{Factor: 1}, nil},
		"Volcano would silently use 1.2": {"overcommit-factor: 0.99", arguments.Overcommit{Factor: 1.2}, []string{`plugins[0].arguments[overcommit-factor]: Invalid value: 0.99: ` + limit}},
		"a word":                         {"overcommit-factor: much", arguments.Overcommit{Factor: 1.2}, []string{`plugins[0].arguments[overcommit-factor]: Invalid value: "much": ` + limit}},
		"no number":                      {"overcommit-factor: NaN", arguments.Overcommit{Factor: 1.2}, []string{`plugins[0].arguments[overcommit-factor]: Invalid value: "NaN": ` + limit}},
		"without end":                    {"overcommit-factor: Inf", arguments.Overcommit{Factor: 1.2}, []string{`plugins[0].arguments[overcommit-factor]: Invalid value: "Inf": ` + limit}},
		"more than a number can be":      {"overcommit-factor: '1e999'", arguments.Overcommit{Factor: 1.2}, []string{`plugins[0].arguments[overcommit-factor]: Invalid value: "1e999": ` + limit}},
		"a flag":                         {"overcommit-factor: true", arguments.Overcommit{Factor: 1.2}, []string{`plugins[0].arguments[overcommit-factor]: Invalid value: true: ` + limit}},
		"no value":                       {"overcommit-factor:", arguments.Overcommit{Factor: 1.2}, []string{`plugins[0].arguments[overcommit-factor]: Invalid value: null: ` + limit}},
		"a list":                         {"overcommit-factor: [1.5]", arguments.Overcommit{Factor: 1.2}, []string{`plugins[0].arguments[overcommit-factor]: Invalid value: [1.5]: ` + limit}},
		"a mistyped key":                 {"overcomit-factor: 1.5", arguments.Overcommit{Factor: 1.2}, []string{`plugins[0].arguments[overcomit-factor]: Forbidden: unknown key; did you mean "overcommit-factor"?`}},
		"another key":                    {"weight: 10", arguments.Overcommit{Factor: 1.2}, []string{`plugins[0].arguments[weight]: Forbidden: unknown key; valid are "overcommit-factor"`}},
		"all errors are told": {"{zone: a, overcommit-factor: 0, factor: 2}", arguments.Overcommit{Factor: 1.2}, []string{
			`plugins[0].arguments[overcommit-factor]: Invalid value: 0: ` + limit,
			`plugins[0].arguments[factor]: Forbidden: unknown key; valid are "overcommit-factor"`,
			`plugins[0].arguments[zone]: Forbidden: unknown key; valid are "overcommit-factor"`,
		}},
	})
}

func TestSLA(t *testing.T) {
	const unit = `must be a duration with its unit, such as "10m"`
	run(t, "sla", arguments.DecodeSLA, map[string]decodes[arguments.SLA]{
		"absent is for ever":        {"", arguments.SLA{}, nil},
		"a duration":                {"sla-waiting-time: 1h30m", arguments.SLA{WaitingTime: 90 * time.Minute}, nil},
		"a duration in quotes":      {`sla-waiting-time: "876000h"`, arguments.SLA{WaitingTime: 876000 * time.Hour}, nil},
		"no time":                   {"sla-waiting-time: 0s", arguments.SLA{}, []string{`plugins[0].arguments[sla-waiting-time]: Invalid value: "0s": must be more than 0s`}},
		"less than no time":         {"sla-waiting-time: -1h", arguments.SLA{}, []string{`plugins[0].arguments[sla-waiting-time]: Invalid value: "-1h": must be more than 0s`}},
		"a number without its unit": {"sla-waiting-time: 600", arguments.SLA{}, []string{`plugins[0].arguments[sla-waiting-time]: Invalid value: 600: ` + unit}},
		"a unit of another kind":    {"sla-waiting-time: 1d", arguments.SLA{}, []string{`plugins[0].arguments[sla-waiting-time]: Invalid value: "1d": ` + unit}},
		"a mistyped key":            {"sla-wating-time: 1h", arguments.SLA{}, []string{`plugins[0].arguments[sla-wating-time]: Forbidden: unknown key; did you mean "sla-waiting-time"?`}},
	})
}

const badHalfLife = `must be 0s or a duration from 1m0s to 2160h0m0s, such as "24h"`

func TestProportion(t *testing.T) {
	const badWeight = "must be a number from 0 to 10"
	usable := arguments.Proportion{Total: arguments.Usable, UsageWeight: 1}
	with := func(halfLife time.Duration, weight float64) arguments.Proportion {
		return arguments.Proportion{Total: arguments.Usable, UsageHalfLife: halfLife, UsageWeight: weight}
	}
	run(t, "proportion", arguments.DecodeProportion, map[string]decodes[arguments.Proportion]{
		"absent":         {"", usable, nil},
		"as Volcano":     {"total: Allocatable", arguments.Proportion{Total: arguments.Allocatable, UsageWeight: 1}, nil},
		"what is usable": {`total: "Usable"`, usable, nil},
		"another total": {"total: allocatable", usable, []string{
			`plugins[0].arguments[total]: Invalid value: "allocatable": must be "Usable" or "Allocatable"`,
		}},
		"what was held counts":            {"{usageHalfLife: 24h, usageWeight: 2.5}", with(24*time.Hour, 2.5), nil},
		"what was held counts, in quotes": {`{usageHalfLife: "1m", usageWeight: "0"}`, with(time.Minute, 0), nil},
		"it does not count":               {"usageHalfLife: 0", usable, nil},
		"it does not count, with a unit":  {"usageHalfLife: 0s", usable, nil},
		"too short":                       {"usageHalfLife: 59s", usable, []string{`plugins[0].arguments[usageHalfLife]: Invalid value: "59s": ` + badHalfLife}},
		"too long":                        {"usageHalfLife: 2161h", usable, []string{`plugins[0].arguments[usageHalfLife]: Invalid value: "2161h": ` + badHalfLife}},
		"no unit":                         {"usageHalfLife: 24", usable, []string{`plugins[0].arguments[usageHalfLife]: Invalid value: 24: ` + badHalfLife}},
		"too much":                        {"usageWeight: 11", usable, []string{`plugins[0].arguments[usageWeight]: Invalid value: 11: ` + badWeight}},
		"too little":                      {"usageWeight: -1", usable, []string{`plugins[0].arguments[usageWeight]: Invalid value: -1: ` + badWeight}},
		"Volcano's has none": {"weight: 1", usable, []string{
			`plugins[0].arguments[weight]: Forbidden: unknown key; valid are "total", "usageHalfLife", "usageWeight"`,
		}},
	})
}

func TestCapacity(t *testing.T) {
	const (
		level = "must be a whole number of at least 0"
		flag  = "must be true or false"
	)
	run(t, "capacity", arguments.DecodeCapacity, map[string]decodes[arguments.Capacity]{
		"absent is Volcano's default": {"", arguments.Capacity{}, nil},
		"all of them": {
			"{ancestorReclaimLevel: 2, capacity.DynamicResourceAllocationEnable: true, capacity.DRAConsumableCapacityEnable: false}",
			arguments.Capacity{AncestorReclaimLevel: new(2), DynamicResourceAllocation: new(true), DRAConsumableCapacity: new(false)},
			nil,
		},
		"all of them in quotes": {
			`{ancestorReclaimLevel: "2", capacity.DynamicResourceAllocationEnable: "False", capacity.DRAConsumableCapacityEnable: "true"}`,
			arguments.Capacity{AncestorReclaimLevel: new(2), DynamicResourceAllocation: new(false), DRAConsumableCapacity: new(true)},
			nil,
		},
		"Volcano would silently use level 0": {"ancestorReclaimLevel: -1", arguments.Capacity{}, []string{`plugins[0].arguments[ancestorReclaimLevel]: Invalid value: -1: ` + level}},
		"half a level":                       {"ancestorReclaimLevel: 1.5", arguments.Capacity{}, []string{`plugins[0].arguments[ancestorReclaimLevel]: Invalid value: 1.5: ` + level}},
		"values of other kinds": {
			"{ancestorReclaimLevel: {}, capacity.DynamicResourceAllocationEnable: 1, capacity.DRAConsumableCapacityEnable: maybe}",
			arguments.Capacity{},
			[]string{
				`plugins[0].arguments[ancestorReclaimLevel]: Invalid value: {}: ` + level,
				`plugins[0].arguments[capacity.DynamicResourceAllocationEnable]: Invalid value: 1: ` + flag,
				`plugins[0].arguments[capacity.DRAConsumableCapacityEnable]: Invalid value: "maybe": ` + flag,
			},
		},
		"what was held counts": {"usageHalfLife: 168h", arguments.Capacity{UsageHalfLife: 168 * time.Hour}, nil},
		"held for no time":     {"usageHalfLife: -1h", arguments.Capacity{}, []string{`plugins[0].arguments[usageHalfLife]: Invalid value: "-1h": ` + badHalfLife}},
		"a weight, which is proportion's": {"usageWeight: 1", arguments.Capacity{}, []string{
			`plugins[0].arguments[usageWeight]: Forbidden: unknown key; valid are "ancestorReclaimLevel", "capacity.DRAConsumableCapacityEnable", "capacity.DynamicResourceAllocationEnable", "usageHalfLife"`,
		}},
		"a key in another case": {"ancestorreclaimlevel: 1", arguments.Capacity{}, []string{`plugins[0].arguments[ancestorreclaimlevel]: Forbidden: unknown key; did you mean "ancestorReclaimLevel"?`}},
		"a key without its prefix": {"DRAConsumableCapacityEnable: true", arguments.Capacity{}, []string{
			`plugins[0].arguments[DRAConsumableCapacityEnable]: Forbidden: unknown key; did you mean "capacity.DRAConsumableCapacityEnable"?`,
		}},
	})
}

func TestTDM(t *testing.T) {
	const times = `must be two times of day, such as "22:00-6:30"`
	clock := func(hours, minutes time.Duration) time.Duration { return hours*time.Hour + minutes*time.Minute }
	zone := func(start, end time.Duration) arguments.TDM {
		return arguments.TDM{EvictPeriod: time.Minute, RevocableZones: map[string]arguments.Window{"rz1": {start, end}}}
	}
	none := arguments.TDM{EvictPeriod: time.Minute}
	run(t, "tdm", arguments.DecodeTDM, map[string]decodes[arguments.TDM]{
		"absent is Volcano's default":       {"", none, nil},
		"a part of the day":                 {"tdm.revocable-zone.rz1: 10:00-21:30", zone(clock(10, 0), clock(21, 30)), nil},
		"over midnight":                     {"tdm.revocable-zone.rz1: 22:00-06:00", zone(clock(22, 0), clock(6, 0)), nil},
		"an hour of one digit":              {`tdm.revocable-zone.rz1: "0:00-0:01"`, zone(0, clock(0, 1)), nil},
		"the whole day":                     {`tdm.revocable-zone.rz1: "0:00-0:00"`, zone(0, 0), nil},
		"blanks around it, as Volcano does": {`tdm.revocable-zone.rz1: " 1:00-23:59 "`, zone(clock(1, 0), clock(23, 59)), nil},
		"several zones": {
			"{tdm.revocable-zone.rz1: 1:00-2:00, tdm.revocable-zone.a.b: 3:00-4:00, tdm.evict.period: 1ms}",
			arguments.TDM{EvictPeriod: time.Millisecond, RevocableZones: map[string]arguments.Window{
				"rz1": {clock(1, 0), clock(2, 0)}, "a.b": {clock(3, 0), clock(4, 0)},
			}},
			nil,
		},
		"always":                     {"tdm.evict.period: 0s", arguments.TDM{}, nil},
		"less than always":           {"tdm.evict.period: -1s", none, []string{`plugins[0].arguments[tdm.evict.period]: Invalid value: "-1s": must be at least 0s`}},
		"one time":                   {"tdm.revocable-zone.rz1: '10:00'", none, []string{`plugins[0].arguments[tdm.revocable-zone.rz1]: Invalid value: "10:00": ` + times}},
		"three times":                {"tdm.revocable-zone.rz1: 1:00-2:00-3:00", none, []string{`plugins[0].arguments[tdm.revocable-zone.rz1]: Invalid value: "1:00-2:00-3:00": ` + times}},
		"an hour the day has not":    {"tdm.revocable-zone.rz1: 22:00-24:00", none, []string{`plugins[0].arguments[tdm.revocable-zone.rz1]: Invalid value: "22:00-24:00": ` + times}},
		"a minute of one digit":      {"tdm.revocable-zone.rz1: 1:0-2:00", none, []string{`plugins[0].arguments[tdm.revocable-zone.rz1]: Invalid value: "1:0-2:00": ` + times}},
		"Volcano panics at a number": {"tdm.revocable-zone.rz1: 10", none, []string{`plugins[0].arguments[tdm.revocable-zone.rz1]: Invalid value: 10: ` + times}},
		"no zone":                    {"tdm.revocable-zone.: 1:00-2:00", none, []string{`plugins[0].arguments[tdm.revocable-zone.]: Required value: name a zone after the last dot`}},
		"a mistyped key":             {"tdm.revokable-zone.rz1: 1:00-2:00", none, []string{`plugins[0].arguments[tdm.revokable-zone.rz1]: Forbidden: unknown key; did you mean "tdm.revocable-zone.<zone>"?`}},
		"a good zone beside a bad one is read": {
			"{tdm.revocable-zone.rz1: 1:00-2:00, tdm.revocable-zone.rz2: never, tdm.evict.periods: 1s}", zone(clock(1, 0), clock(2, 0)),
			[]string{
				`plugins[0].arguments[tdm.revocable-zone.rz2]: Invalid value: "never": ` + times,
				`plugins[0].arguments[tdm.evict.periods]: Forbidden: unknown key; did you mean "tdm.evict.period"?`,
			},
		},
	})
}

func TestZoneThatNoNodeCanHave(t *testing.T) {
	entry := &config.TierPlugin{Name: "tdm", Arguments: values(t, "tdm.revocable-zone.a/b: 1:00-2:00")}
	got, errs := arguments.DecodeTDM(entry, nil)
	if len(errs) != 1 || errs[0].Field != "arguments[tdm.revocable-zone.a/b]" || errs[0].BadValue != "a/b" {
		t.Errorf("errors are %v, want one for the zone a/b", errs)
	}
	if len(got.RevocableZones) != 0 {
		t.Errorf("zones are %v, want none", got.RevocableZones)
	}
}

func TestPluginsWithoutArguments(t *testing.T) {
	for _, name := range []string{"priority", "gang", "conformance", "drf", "pdb", "cdp", "resourcequota"} {
		t.Run(name, func(t *testing.T) {
			path := field.NewPath("plugins").Index(0)
			if errs := arguments.Check(&config.TierPlugin{Name: name}, path); len(errs) != 0 {
				t.Errorf("without arguments: %v", errs)
			}
			want := []string{
				"plugins[0].arguments[b]: Forbidden: " + name + " takes no arguments; remove it",
				"plugins[0].arguments[weight]: Forbidden: " + name + " takes no arguments; remove it",
			}
			got := messages(arguments.Check(&config.TierPlugin{Name: name, Arguments: values(t, "{weight: 1, b: 2}")}, path))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want,+got)\n%s", diff)
			}
		})
	}
}

// invalid is the error about an argument of the only plugin.
func invalid(key, value, problem string) []string {
	return []string{"plugins[0].arguments[" + key + "]: Invalid value: " + value + ": " + problem}
}

func TestDecodeReservation(t *testing.T) {
	standard := arguments.Reservation{
		After: 30 * time.Minute, Holders: 1, BackfillWithin: 10 * time.Minute, Trust: arguments.Enforced, GiveUpAfter: 24 * time.Hour,
	}
	run(t, "reservation", arguments.DecodeReservation, map[string]decodes[arguments.Reservation]{
		"nothing": {"{}", standard, nil},
		"everything": {
			"{reservation.after: 0s, reservation.holders: 16, reservation.backfillWithin: 24h, reservation.trust: Declared, reservation.giveUpAfter: 0s}",
			arguments.Reservation{Holders: 16, BackfillWithin: 24 * time.Hour, Trust: arguments.Declared},
			nil,
		},
		"a long wait":         {"reservation.after: 721h", standard, invalid("reservation.after", `"721h"`, "must be from 0s to 720h")},
		"a wait without unit": {"reservation.after: 30", standard, invalid("reservation.after", "30", `must be a duration with its unit, such as "10m"`)},
		"nobody":              {"reservation.holders: 0", standard, invalid("reservation.holders", "0", "must be a whole number from 1 to 16")},
		"less than no time":   {"reservation.backfillWithin: -1s", standard, invalid("reservation.backfillWithin", `"-1s"`, "must be from 0s to 24h")},
		"for a year":          {"reservation.giveUpAfter: 8760h", standard, invalid("reservation.giveUpAfter", `"8760h"`, "must be from 0s, which is never, to 720h")},
		"blind trust": {
			"reservation.trust: Predicted", standard, invalid("reservation.trust", `"Predicted"`, `must be "Enforced" or "Declared"`),
		},
		"a mistyped key": {
			"reservation.hodlers: 2", standard,
			[]string{`plugins[0].arguments[reservation.hodlers]: Forbidden: unknown key; did you mean "reservation.holders"?`},
		},
	})
}
