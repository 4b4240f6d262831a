// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conformance compares what Caldera decides with what Volcano decided in the cases of testdata/cases. The facts
// of a case are those that were the same in all of 60 runs of Volcano.
package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// tolerance is the relative difference up to which two numbers are equal.
const tolerance = 0.001

// Difference is a fact in which two results differ.
type Difference struct {
	// Fact is the path of the fact, "final.started[default/a]" for instance.
	Fact string
	// Want and Got are the values as JSON, Got is empty when there is none.
	Want, Got string
}

// String says it in one line.
func (d Difference) String() string {
	if d.Got == "" {
		return fmt.Sprintf("%s: want %s, got nothing", d.Fact, d.Want)
	}
	return fmt.Sprintf("%s: want %s, got %s", d.Fact, d.Want, d.Got)
}

// Facts are results decoded from JSON: {"initial": {...}, "final": {...}}.
type Facts map[string]any

// placement are the topics in which it matters on which nodes pods are.
var placement = []string{"binpack", "nodegroup", "nodeorder", "rsf", "tasktopology"}

// Topic is the part of a case's name before the number, which says what it is about.
func Topic(name string) string {
	topic, _, _ := strings.Cut(name, "-")
	return topic
}

// Compare returns the facts of want in which got differs, by name. Which facts count depends on the topic; of a chaotic
// case only those of the start count.
func Compare(topic string, chaotic bool, want, got Facts) []Difference {
	facts := []string{"initial.queues", "initial.jobShares"}
	if !chaotic {
		facts = append(facts, "final.started", "final.boundPerJob", "final.boundPerQueue", "final.evictedPerJob")
		if slices.Contains(placement, topic) {
			facts = append(facts, "final.podsPerNodeByJob", "final.boundPerNode", "final.nodeOf")
		} else {
			facts = append(facts, "final.phase")
		}
	}
	var differences []Difference
	for _, fact := range facts {
		part, name, _ := strings.Cut(fact, ".")
		wanted, has := object(want[part])[name]
		if !has {
			continue
		}
		differences = append(differences, compare(fact, wanted, object(got[part])[name])...)
	}
	slices.SortFunc(differences, func(a, b Difference) int { return strings.Compare(a.Fact, b.Fact) })
	return differences
}

// compare returns the differences between two values. What is absent counts as zero among amounts of resources, which
// leave out what there is none of. Null is a number that Volcano does not have, the share of a queue without jobs for
// instance, and is no fact.
func compare(fact string, want, got any) []Difference {
	if want == nil {
		return nil
	}
	fields, ok := want.(map[string]any)
	if !ok {
		if equal(want, got) {
			return nil
		}
		return []Difference{{Fact: fact, Want: text(want), Got: text(got)}}
	}
	have, ok := got.(map[string]any)
	if !ok {
		return []Difference{{Fact: fact, Want: text(want), Got: text(got)}}
	}
	names := maps.Clone(fields)
	amounts := isAmounts(fields)
	if amounts {
		maps.Copy(names, have)
	}
	var differences []Difference
	for name := range names {
		w, g := fields[name], have[name]
		if amounts {
			w, g = orZero(w), orZero(g)
		}
		differences = append(differences, compare(fmt.Sprintf("%s[%s]", fact, name), w, g)...)
	}
	return differences
}

// isAmounts reports whether an object holds amounts of resources.
func isAmounts(o map[string]any) bool {
	_, ok := o["milliCPU"]
	return ok
}

func orZero(v any) any {
	if v == nil {
		return 0.0
	}
	return v
}

// equal compares two values that are no objects.
func equal(want, got any) bool {
	w, numeric := want.(float64)
	g, alike := got.(float64)
	if numeric && alike {
		return math.Abs(w-g) <= tolerance*math.Max(math.Abs(w), math.Abs(g))
	}
	return text(want) == text(got)
}

func object(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

// text writes a value as JSON; nothing for nil.
func text(v any) string {
	if v == nil {
		return ""
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

// Decode reads facts.
func Decode(data []byte) (Facts, error) {
	var f Facts
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("decoding facts: %w", err)
	}
	return f, nil
}

// Merge returns the facts with some replaced by others, down to single values.
func (f Facts) Merge(others Facts) Facts { return merge(f, others) }

func merge(a, b map[string]any) map[string]any {
	merged := maps.Clone(a)
	if merged == nil {
		merged = map[string]any{}
	}
	for name, value := range b {
		if inner, ok := value.(map[string]any); ok {
			value = merge(object(merged[name]), inner)
		}
		merged[name] = value
	}
	return merged
}
