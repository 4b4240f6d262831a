// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
)

// Switch turns one hook of a plugin on or off. Volcano spells some of its switches enableX and others enabledX; here
// every name begins with "enable".
type Switch string

// The switches (Volcano pkg/scheduler/conf/scheduler_conf.go, PluginOption).
const (
	EnableJobOrder          Switch = "enableJobOrder"
	EnableHierarchy         Switch = "enableHierarchy" // the hierarchical mode of drf, capacity and nodegroup
	EnableJobReady          Switch = "enableJobReady"
	EnableJobPipelined      Switch = "enableJobPipelined"
	EnableTaskOrder         Switch = "enableTaskOrder"
	EnablePreemptable       Switch = "enablePreemptable" // who may be a victim of preempt
	EnableReclaimable       Switch = "enableReclaimable" // who may be a victim of reclaim
	EnablePreemptive        Switch = "enablePreemptive"  // whether a queue may reclaim
	EnableQueueOrder        Switch = "enableQueueOrder"
	EnableClusterOrder      Switch = "enableClusterOrder"
	EnablePredicate         Switch = "enablePredicate"
	EnableBestNode          Switch = "enableBestNode"
	EnableNodeOrder         Switch = "enableNodeOrder"
	EnableTargetJob         Switch = "enableTargetJob"
	EnableReservedNodes     Switch = "enableReservedNodes"
	EnableJobEnqueued       Switch = "enableJobEnqueued" // both the vote on admission and the notice of it
	EnableVictim            Switch = "enableVictim"      // the victims of shuffle
	EnableJobStarving       Switch = "enableJobStarving"
	EnableOverused          Switch = "enableOverused"
	EnableAllocatable       Switch = "enableAllocatable"
	EnableHyperNodeOrder    Switch = "enableHyperNodeOrder"
	EnableSubJobReady       Switch = "enableSubJobReady"
	EnableSubJobPipelined   Switch = "enableSubJobPipelined"
	EnableSubJobOrder       Switch = "enableSubJobOrder"
	EnableHyperNodeGradient Switch = "enableHyperNodeGradient"
)

var switches = []Switch{
	EnableJobOrder, EnableHierarchy, EnableJobReady, EnableJobPipelined, EnableTaskOrder, EnablePreemptable,
	EnableReclaimable, EnablePreemptive, EnableQueueOrder, EnableClusterOrder, EnablePredicate, EnableBestNode,
	EnableNodeOrder, EnableTargetJob, EnableReservedNodes, EnableJobEnqueued, EnableVictim, EnableJobStarving,
	EnableOverused, EnableAllocatable, EnableHyperNodeOrder, EnableSubJobReady, EnableSubJobPipelined,
	EnableSubJobOrder, EnableHyperNodeGradient,
}

// Switches are all switches there are.
func Switches() []Switch { return slices.Clone(switches) }

// SwitchOf is the switch that a key of a plugin's entry names, in either of Volcano's spellings.
func SwitchOf(key string) (Switch, bool) {
	if rest, historical := strings.CutPrefix(key, "enabled"); historical {
		key = "enable" + rest
	}
	s := Switch(key)
	return s, slices.Contains(switches, s)
}
