// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/suggest"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// ValidateBatchQueueArgs checks the arguments of the plugin BatchQueue. Tiers may name policies from outside besides the
// built-in plugins; those check their arguments themselves.
func ValidateBatchQueueArgs(path *field.Path, args *config.BatchQueueArgs, outside ...string) error {
	all := actions(path.Child("actions"), args.Actions)
	entries := entriesOf(path.Child("tiers"), args.Tiers)
	all = append(all, plugins(entries, outside)...)
	all = append(all, conflicts(entries)...)
	all = append(all, configurations(path.Child("configurations"), args.Configurations)...)
	_, metrics := arguments.DecodeMetrics(args.Metrics, path.Child("metrics"))
	all = append(all, metrics...)
	all = append(all, rescheduling(path, args, entries)...)
	all = append(all, forEverOrLong(path.Child("admissionTimeout"), args.AdmissionTimeout)...)
	all = append(all, forEverOrLong(path.Child("stalledAfter"), args.StalledAfter)...)
	if d := args.PromiseGrace.Duration; d < 0 || d > 10*time.Minute {
		all = append(all, field.Invalid(path.Child("promiseGrace"), d.String(), "must be from 0s, which is not at all, to 10m"))
	}
	all = append(all, forEverOrLong(path.Child("halfTimeout"), args.HalfTimeout)...)
	all = append(all, forEverOrLong(path.Child("brokenTimeout"), args.BrokenTimeout)...)
	if args.ReleaseLost && args.BrokenTimeout.Duration == 0 {
		all = append(all, field.Invalid(path.Child("releaseLost"), true, "nothing is released while brokenTimeout is 0s, which is for ever"))
	}
	return all.ToAggregate()
}

// forEverOrLong checks a time that is zero where it never comes.
func forEverOrLong(path *field.Path, d metav1.Duration) field.ErrorList {
	if d.Duration != 0 && d.Duration < time.Second {
		return field.ErrorList{field.Invalid(path, d.Duration.String(), "must be 0s, which is for ever, or at least 1s")}
	}
	return nil
}

// actions checks the list of actions.
func actions(path *field.Path, list []config.Action) field.ErrorList {
	var all field.ErrorList
	for i, action := range list {
		switch at := path.Index(i); {
		case action == "":
			all = append(all, field.Required(at, "name an action, or remove the comma before or after it"))
		case !slices.Contains(config.Actions(), action):
			all = append(all, suggest.Unsupported(at, string(action), config.Actions()))
		case slices.Contains(list[:i], action):
			all = append(all, field.Duplicate(at, action))
		}
	}
	if !slices.Contains(list, config.Allocate) {
		all = append(all, field.Required(path, "add allocate: without it nothing is scheduled"))
	}
	return all
}

// entry is a plugin of a tier and where it is.
type entry struct {
	*config.TierPlugin
	tier int
	path *field.Path
}

func entriesOf(path *field.Path, tiers []config.Tier) []entry {
	var all []entry
	for i := range tiers {
		for j := range tiers[i].Plugins {
			all = append(all, entry{&tiers[i].Plugins[j], i, path.Index(i).Child("plugins").Index(j)})
		}
	}
	return all
}

// plugins checks every plugin for itself.
func plugins(entries []entry, outside []string) field.ErrorList {
	var all field.ErrorList
	known := append(arguments.Plugins(), outside...)
	first := map[string]*field.Path{}
	for _, e := range entries {
		all = append(all, unknown(e)...)
		all = append(all, name(e, known, first)...)
		all = append(all, arguments.Check(e.TierPlugin, e.path)...)
	}
	return all
}

// name checks the name of a plugin, which is one of those that are known; first holds the plugins that came before.
func name(e entry, known []string, first map[string]*field.Path) field.ErrorList {
	path := e.path.Child("name")
	before, listed := first[e.Name]
	switch {
	case unusable(e, "name") || unusable(e, config.NotAMap):
		return nil
	case e.Name == "":
		return field.ErrorList{field.Required(path, "name a plugin")}
	case !slices.Contains(known, e.Name):
		return field.ErrorList{suggest.Unsupported(path, e.Name, known)}
	case listed:
		duplicate := field.Duplicate(path, e.Name)
		duplicate.Detail = fmt.Sprintf("keep one of this and %s", before)
		return field.ErrorList{duplicate}
	}
	first[e.Name] = e.path
	return nil
}

func unusable(e entry, key string) bool {
	_, ok := e.Unknown[key]
	return ok
}

// unknown refuses the keys that an entry cannot have.
func unknown(e entry) field.ErrorList {
	var all field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(e.Unknown)) {
		value := e.Unknown[key]
		regular, isSwitch := config.SwitchOf(key)
		_, err := arguments.Bool(value)
		switch path := e.path.Child(key); {
		case key == config.NotAMap:
			all = append(all, field.Invalid(e.path, value,
				"must be a map with the name of a plugin, and its switches and arguments if it has any"))
		case key == "name":
			all = append(all, field.Invalid(path, value, "must be a string"))
		case key == "arguments":
			all = append(all, field.Invalid(path, value, "must be a map"))
		case isSwitch && err != nil:
			all = append(all, field.Invalid(path, value, err.Error()))
		case isSwitch:
			all = append(all, field.Invalid(path, value,
				fmt.Sprintf("contradicts %s: %t, which is the same switch; keep one of them", regular, e.Switches[regular])))
		default:
			all = append(all, suggest.UnknownKey(path, key, keys()))
		}
	}
	return all
}

// keys are those that an entry may have.
func keys() []string {
	all := []string{"name", "arguments"}
	for _, s := range config.Switches() {
		all = append(all, string(s))
	}
	return all
}

// conflicts reports plugins that contradict each other.
func conflicts(entries []entry) field.ErrorList {
	var all field.ErrorList
	for i, e := range entries {
		for _, other := range entries[:i] {
			all = append(all, conflict(e, other)...)
			all = append(all, conflict(other, e)...)
		}
	}
	return all
}

// conflict reports a contradiction of e to another plugin. Volcano refuses proportion beside a hierarchical drf of the same
// tier only (pkg/scheduler/util.go); queue shares computed in two ways are no better for being in different tiers.
func conflict(e, other entry) field.ErrorList {
	switch hierarchical := e.Name == config.PluginDRF && e.Enabled(config.EnableHierarchy); {
	case e.Name == config.PluginCapacity && other.Name == config.PluginProportion:
		return field.ErrorList{field.Invalid(e.path.Child("name"), e.Name,
			fmt.Sprintf("conflicts with proportion at %s: both say what a queue may have; remove one of them", other.path))}
	case hierarchical && other.Name == config.PluginProportion,
		hierarchical && other.Name == config.PluginCapacity && e.tier == other.tier:
		return field.ErrorList{field.Invalid(e.path.Child(string(config.EnableHierarchy)), true,
			fmt.Sprintf("conflicts with %s at %s: both order the queues; turn it off or remove %s", other.Name, other.path, other.Name))}
	}
	return nil
}

// configurations checks the arguments of actions.
func configurations(path *field.Path, list []config.ActionConfiguration) field.ErrorList {
	var all field.ErrorList
	first := map[config.Action]*field.Path{}
	for i := range list {
		c, at := &list[i], path.Index(i)
		before, listed := first[c.Name]
		switch name := at.Child("name"); {
		case c.Name == "":
			all = append(all, field.Required(name, "name an action"))
			continue
		case !slices.Contains(config.Actions(), c.Name):
			all = append(all, suggest.Unsupported(name, string(c.Name), config.Actions()))
			continue
		case listed:
			duplicate := field.Duplicate(name, c.Name)
			duplicate.Detail = fmt.Sprintf("Volcano would use %s only; keep one of them", before)
			all = append(all, duplicate)
		default:
			first[c.Name] = at
		}
		_, errs := arguments.DecodeAction(c, at)
		all = append(all, errs...)
	}
	return all
}

// rescheduling reports what the plugin of that name lacks to have anybody evicted, if it is asked to. Volcano's does nothing
// then, and says nothing.
func rescheduling(path *field.Path, args *config.BatchQueueArgs, entries []entry) field.ErrorList {
	i := slices.IndexFunc(entries, func(e entry) bool { return e.Name == config.PluginRescheduling && e.Enabled(config.EnableVictim) })
	if i < 0 || !slices.Contains(args.Actions, config.Shuffle) {
		return nil
	}
	var all field.ErrorList
	e := entries[i]
	if len(args.Metrics) == 0 {
		all = append(all, field.Required(path.Child("metrics"),
			fmt.Sprintf("rescheduling at %s evicts by the loads of nodes; add the section metrics with a type and an address, or remove rescheduling", e.path)))
	}
	decoded, errs := arguments.DecodeRescheduling(e.TierPlugin, e.path)
	if len(errs) == 0 && decoded.LowNodeUtilization.Idle() {
		all = append(all, field.Required(e.path.Child("arguments").Key("strategies"),
			"name lowNodeUtilization with targetThresholds below 100 for cpu or memory, or remove rescheduling: no load is above 100"))
	}
	return all
}
