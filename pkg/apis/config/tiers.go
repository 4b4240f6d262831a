// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// BatchQueueArgs are the arguments of the plugin BatchQueue: Volcano's configuration file (volcano-scheduler.conf) and
// what Caldera adds to it.
type BatchQueueArgs struct {
	metav1.TypeMeta

	// Actions are what the scheduler does for a job, in this order; each at most once, and allocate is one of them.
	Actions []Action
	// Tiers are asked in this order, and the plugins of a tier in theirs. A plugin is in one tier at most.
	Tiers []Tier
	// Configurations are the arguments of actions, at most one entry for an action. An action without one has the
	// defaults.
	Configurations []ActionConfiguration
	// Metrics is the section of Volcano's file that tells where the loads of nodes come from; package arguments decodes it. Of
	// a KubeSchedulerConfiguration only rescheduling reads it: the plugin Usage has it in its own arguments.
	Metrics map[string]string
	// AdmissionTimeout is how long an Inqueue PodGroup may be without pods before it gives its admission back; 0 is for
	// ever, else at least 1s.
	AdmissionTimeout metav1.Duration
	// StalledAfter is how long nodes must have refused an Inqueue job, or pods of its minimum be missing, for others that fit to be let in on
	// what it was promised; a job that has failed need not be refused. 0 is for ever, and then failures do not count either; else at least 1s.
	StalledAfter metav1.Duration
	// PromiseGrace is how long a job that was let in has a claim to room for its minimum before its pods exist: tasks beyond the minimums of
	// others, and jobs of its queue that come after it, leave it. From 0s, which is not at all, to 10m.
	PromiseGrace metav1.Duration
	// HalfTimeout is how long a gang that was never whole may hold nodes for too few of its members before these are evicted; 0 is for
	// ever, else at least 1s.
	HalfTimeout metav1.Duration
	// BrokenTimeout is how long a gang that was whole and lost members may hold nodes for too few of them before its minimum protects it
	// from evictions no more; 0 is for ever, else at least 1s.
	BrokenTimeout metav1.Duration
	// ReleaseLost has such a gang evicted after BrokenTimeout even if nobody needs the room.
	ReleaseLost bool
}

// Action is a step of the scheduling cycle, in Volcano's name.
type Action string

// The actions that Volcano registers (pkg/scheduler/actions/factory.go).
const (
	Enqueue     Action = "enqueue"
	Allocate    Action = "allocate"
	Backfill    Action = "backfill"
	Preempt     Action = "preempt"
	Reclaim     Action = "reclaim"
	GangPreempt Action = "gangpreempt"
	GangReclaim Action = "gangreclaim"
	Shuffle     Action = "shuffle"
)

// Consolidate is the action that moves pods to other nodes, so that what is idle here and there becomes room for a job. Volcano has none like it.
const Consolidate Action = "consolidate"

// Complete is the action by which broken gangs give way to the one that is completed first. It is nobody's to configure: it comes before
// any action that evicts.
const Complete Action = "complete"

// Evicts reports whether the action has pods evicted to make room for others.
func (a Action) Evicts() bool {
	switch a {
	case Preempt, Reclaim, GangPreempt, GangReclaim, Consolidate:
		return true
	}
	return false
}

// Actions are all actions there are.
func Actions() []Action {
	return []Action{Enqueue, Allocate, Backfill, Preempt, Reclaim, GangPreempt, GangReclaim, Shuffle, Consolidate}
}

// ActionConfiguration are the arguments of one action.
type ActionConfiguration struct {
	// Name is the action.
	Name Action
	// Arguments are the values as given, any JSON; package arguments decodes them.
	Arguments map[string]runtime.RawExtension
}

// Tier is a set of plugins that decide together.
type Tier struct {
	Plugins []TierPlugin
}

// TierPlugin is one plugin in a tier.
type TierPlugin struct {
	// Name is Volcano's name of the plugin.
	Name string
	// Switches are those of the per-hook switches that were given; Enabled knows the defaults of the others.
	Switches map[Switch]bool
	// Unknown are the keys of the entry that cannot be used, with their values as given: keys that are no switch,
	// switches whose value is no bool, historical spellings that contradict the regular one, a name that is no string,
	// arguments that are no map. An entry that has no keys is the value of NotAMap. Validation refuses them; they are
	// kept so that all errors of a configuration are told at once.
	Unknown map[string]runtime.RawExtension
	// Arguments are the values as given, any JSON; package arguments decodes them.
	Arguments map[string]runtime.RawExtension
}

// NotAMap is the key in TierPlugin.Unknown of an entry that is no map.
const NotAMap = ""

// Enabled tells whether the plugin takes part in a hook. A switch that was not given is on, as in Volcano
// (pkg/scheduler/plugins/defaults.go), except EnableHierarchy and EnableClusterOrder.
func (p *TierPlugin) Enabled(s Switch) bool {
	if on, given := p.Switches[s]; given {
		return on
	}
	return s != EnableHierarchy && s != EnableClusterOrder
}
