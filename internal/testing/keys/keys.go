// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package keys finds out which arguments a volcano-scheduler.conf may have, by asking what reads it: an error about a key that no map has
// lists those that the map may have, and one about a value says what it has to be.
package keys

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// Action begins the name of an owner of arguments that is an action, and not a plugin. Metrics is the owner that is a section of the file.
const (
	Action  = "action "
	Metrics = "metrics"
)

// probe is a key that no map has.
const probe = "?"

// opened are arguments of which others depend, with a probe in each of their maps; NAME stands for the name of a resource.
var opened = map[string]string{
	"binpack":                `{"binpack.resources": NAME}`,
	"network-topology-aware": `{"hypernode.binpack.resources": NAME}`,
	"resource-strategy-fit": `{resources: {NAME: {"?": 0}}, sra: {resources: NAME, resourceWeight: {"?": 0}, "?": 0},
		proportional: {resources: NAME, resourceProportion: {"?": 0}, "?": 0}}`,
	"rescheduling": `{strategies: [{name: lowNodeUtilization, params: {thresholds: {"?": 0}, targetThresholds: {"?": 0}, "?": 0}, "?": 0}]}`,
	"extender":     `{extender.tlsConfig: {"?": 0}}`,
}

var (
	quoted = regexp.MustCompile(`"([^"]*)"`)
	index  = regexp.MustCompile(`\[\d+\]`)
)

// All are the keys that are accepted, sorted, by the plugin, action or section that they belong to. Those of a map in a map have the keys of both, with
// a dot. An owner without keys is there.
func All() (map[string][]string, error) {
	all := map[string][]string{Metrics: arguments.MetricsKeys()}
	slices.Sort(all[Metrics])
	for _, name := range arguments.Plugins() {
		values := map[string]runtime.RawExtension{}
		if err := yaml.Unmarshal([]byte(opened[name]), &values); err != nil {
			return nil, fmt.Errorf("reading what opens the maps of %s: %w", name, err)
		}
		values[probe] = runtime.RawExtension{Raw: []byte("0")}
		all[name] = valid(check(name, values))
	}
	for _, action := range config.Actions() {
		owner := Action + string(action)
		all[owner] = valid(check(owner, map[string]runtime.RawExtension{probe: {Raw: []byte("0")}}))
	}
	return all, nil
}

// check is what is wrong with the arguments of an owner.
func check(owner string, values map[string]runtime.RawExtension) field.ErrorList {
	if action, ok := strings.CutPrefix(owner, Action); ok {
		_, errs := arguments.DecodeAction(&config.ActionConfiguration{Name: config.Action(action), Arguments: values}, field.NewPath("entry"))
		return errs
	}
	return arguments.Check(&config.TierPlugin{Name: owner, Arguments: values}, field.NewPath("entry"))
}

// valid are the keys that errors about probes list.
func valid(errs field.ErrorList) []string {
	var keys, maps []string
	for _, e := range errs {
		_, list, ok := strings.Cut(e.Detail, "unknown key; valid are ")
		if !ok {
			continue
		}
		_, at, _ := strings.Cut(index.ReplaceAllString(e.Field, ""), "arguments")
		at = strings.NewReplacer("[", "", "]", ".").Replace(strings.TrimSuffix(at, "["+probe+"]"))
		maps = append(maps, strings.TrimSuffix(at, "."))
		for _, key := range quoted.FindAllStringSubmatch(list, -1) {
			keys = append(keys, at+key[1])
		}
	}
	// A map is told by what is in it.
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return slices.ContainsFunc(maps, func(m string) bool { return m == key || strings.HasPrefix(m, key+".") })
	})
	for i := range keys {
		keys[i] = strings.ReplaceAll(keys[i], "NAME", "<name>")
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
