// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// confirmations is how often what is left has to fail.
const confirmations = 3

// shrink leaves out of a scenario what is not needed for it to fail: first halves of what happens, then single things, as delta debugging
// does (Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002). It returns nil if the scenario does not fail again,
// or what is left of it does not each time.
func shrink(s *scenario, fails func(*scenario) bool) *scenario {
	if !fails(s) {
		return nil
	}
	small := *s
	for before := -1; before != small.size(); {
		before = small.size()
		small.Faults = fewer(small.Faults, 0, func(left []outage) bool { return fails(small.withFaults(left)) })
		small.Events = fewer(small.Events, 0, func(left []event) bool { return fails(small.withEvents(left)) })
		small.Jobs = fewer(small.Jobs, 1, func(left []job) bool { return fails(small.withJobs(left)) })
		small.Events = slices.DeleteFunc(slices.Clone(small.Events), small.idle)
		small.Nodes = fewer(small.Nodes, 1, func(left []node) bool { return fails(small.withNodes(left)) })
		small.Events = slices.DeleteFunc(slices.Clone(small.Events), small.idle)
		for _, of := range []func(*scenario) *bool{
			func(s *scenario) *bool { return &s.Slow }, func(s *scenario) *bool { return &s.Drowsy }, func(s *scenario) *bool { return &s.Gated },
		} {
			if quick := small; *of(&small) {
				if *of(&quick) = false; fails(&quick) {
					small = quick
				}
			}
		}
	}
	for range confirmations {
		if !fails(&small) {
			return nil
		}
	}
	return &small
}

// fewer leaves out parts of a list, large ones first, as long as it still fails; at least so many stay.
func fewer[T any](list []T, least int, fails func([]T) bool) []T {
	for part := max(1, len(list)/2); ; part /= 2 {
		for i := 0; i < len(list); {
			end := min(len(list), i+part)
			left := slices.Concat(list[:i], list[end:])
			if len(left) >= least && fails(left) {
				list = left
			} else {
				i = end
			}
		}
		if part <= 1 {
			return list
		}
	}
}

func (s *scenario) size() int { return len(s.Faults) + len(s.Events) + len(s.Jobs) + len(s.Nodes) }

func (s *scenario) withFaults(left []outage) *scenario {
	c := *s
	c.Faults = left
	return &c
}

func (s *scenario) withEvents(left []event) *scenario {
	c := *s
	c.Events = left
	return &c
}

func (s *scenario) withJobs(left []job) *scenario {
	c := *s
	c.Jobs = left
	c.Events = slices.DeleteFunc(slices.Clone(s.Events), c.idle)
	return &c
}

func (s *scenario) withNodes(left []node) *scenario {
	c := *s
	c.Nodes = left
	c.Events = slices.DeleteFunc(slices.Clone(s.Events), c.idle)
	return &c
}

// idle reports whether an event happens to a job or a node that is not there.
func (s *scenario) idle(e event) bool {
	switch e.Kind {
	case nodeLost, nodeCordoned, nodeShrunk:
		return !slices.ContainsFunc(s.Nodes, func(n node) bool { return n.Name == e.Target })
	case bindsRefused, podDeleted, podFailed, podBoundByElse, podTouched, groupReplaced, minimumChanged, jobDeleted, pluginErrs:
		return !slices.ContainsFunc(s.Jobs, func(j job) bool { return j.Name == e.Target })
	}
	return false
}
