// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// BatchQueueArgs are the arguments of the plugin BatchQueue: Volcano's configuration file (volcano-scheduler.conf) and
// what Caldera adds to it.
type BatchQueueArgs struct {
	metav1.TypeMeta `json:",inline"`

	// Actions are what the scheduler does for a job, in this order: enqueue, allocate, backfill, preempt, reclaim, gangpreempt,
	// gangreclaim, consolidate, shuffle; each at most once, and allocate is one of them.
	// +optional
	Actions []string `json:"actions,omitzero"`
	// Tiers are asked in this order, and the plugins of a tier in theirs. A plugin is in one tier at most.
	// +optional
	Tiers []Tier `json:"tiers,omitzero"`
	// Configurations are the arguments of actions, at most one entry for an action.
	// +optional
	Configurations []ActionConfiguration `json:"configurations,omitzero"`
	// Metrics is the section of Volcano's file that tells where the loads of nodes come from, by its keys. Rescheduling reads it;
	// the plugin Usage has it in its own arguments.
	// +optional
	Metrics map[string]string `json:"metrics,omitempty"`
	// AdmissionTimeout is how long an Inqueue PodGroup may be without pods before it gives its admission back; 0s is for ever, else at
	// least 1s.
	// +optional
	AdmissionTimeout *metav1.Duration `json:"admissionTimeout,omitempty"`
	// StalledAfter is how long nodes must have refused an Inqueue job, or pods of its minimum be missing, for others that fit to be let
	// in on what it was promised; a job that has failed need not be refused. 0s is for ever, and then failures do not count either; else
	// at least 1s.
	// +optional
	StalledAfter *metav1.Duration `json:"stalledAfter,omitempty"`
	// PromiseGrace is how long a job that was let in has a claim to room for its minimum before its pods exist: tasks beyond the
	// minimums of others, and jobs of its queue that come after it, leave it. From 0s, which is not at all, to 10m.
	// +optional
	PromiseGrace *metav1.Duration `json:"promiseGrace,omitempty"`
	// HalfTimeout is how long a gang that was never whole may hold nodes for too few of its members before these are evicted; 0s is for
	// ever, else at least 1s.
	// +optional
	HalfTimeout *metav1.Duration `json:"halfTimeout,omitempty"`
	// BrokenTimeout is how long a gang that was whole and lost members may hold nodes for too few of them before its minimum protects it
	// from evictions no more; 0s is for ever, else at least 1s.
	// +optional
	BrokenTimeout *metav1.Duration `json:"brokenTimeout,omitempty"`
	// ReleaseLost has such a gang evicted after BrokenTimeout even if nobody needs the room.
	// +optional
	ReleaseLost bool `json:"releaseLost,omitempty"`
}

// ActionConfiguration are the arguments of one action.
type ActionConfiguration struct {
	// Name is the action.
	Name string `json:"name"`
	// Arguments are the values to use instead of the defaults.
	// +optional
	Arguments Arguments `json:"arguments,omitzero"`
}

// Tier is a set of plugins that decide together.
type Tier struct {
	// Plugins are entries with a name, switches and arguments, each as in a volcano-scheduler.conf: docs/reference/volcano-arguments.md.
	Plugins []TierPlugin `json:"plugins,omitzero"`
}

// TierPlugin is one plugin in a tier. As in Volcano's file the switches stand beside the name and the arguments:
//
//	name: drf
//	enablePreemptable: false
//	arguments: {}
//
// Every switch may be spelled enableX or enabledX, and its value may be quoted.
type TierPlugin struct {
	// Name is Volcano's name of the plugin.
	Name string
	// Switches are those that were given, spelled enableX.
	Switches map[string]bool
	// Unknown are the keys of the entry that cannot be used, with their values: keys that are no switch, switches whose
	// value is no bool, historical spellings that contradict the regular one, a name that is no string, arguments that
	// are no map. NotAMap is the key of an entry that has no keys.
	Unknown map[string]runtime.RawExtension
	// Arguments are the values to use instead of the plugin's defaults.
	Arguments Arguments
}

// Arguments are values by their keys; a value is any JSON.
type Arguments map[string]runtime.RawExtension
