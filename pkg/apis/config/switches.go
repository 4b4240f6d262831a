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

// The switches (Volcano pkg/scheduler/conf/scheduler_conf.go, PluginOption), each with what it turns off.
const (
	// EnableJobOrder: the order of jobs by the plugin.
	EnableJobOrder Switch = "enableJobOrder"
	// EnableHierarchy: the hierarchical mode of drf, capacity and nodegroup.
	EnableHierarchy Switch = "enableHierarchy"
	// EnableJobReady: the vote on whether a job may start.
	EnableJobReady Switch = "enableJobReady"
	// EnableJobPipelined: the vote on whether a job keeps room that others have yet to leave.
	EnableJobPipelined Switch = "enableJobPipelined"
	// EnableTaskOrder: the order of the tasks of a job.
	EnableTaskOrder Switch = "enableTaskOrder"
	// EnablePreemptable: the vote on who may be a victim of preempt.
	EnablePreemptable Switch = "enablePreemptable"
	// EnableReclaimable: the vote on who may be a victim of reclaim.
	EnableReclaimable Switch = "enableReclaimable"
	// EnablePreemptive: the vote on whether a queue may reclaim.
	EnablePreemptive Switch = "enablePreemptive"
	// EnableQueueOrder: the order of queues.
	EnableQueueOrder Switch = "enableQueueOrder"
	// EnableClusterOrder: the order of clusters.
	EnableClusterOrder Switch = "enableClusterOrder"
	// EnablePredicate: the filters of nodes.
	EnablePredicate Switch = "enablePredicate"
	// EnableBestNode: the choice among the best nodes.
	EnableBestNode Switch = "enableBestNode"
	// EnableNodeOrder: the scores of nodes.
	EnableNodeOrder Switch = "enableNodeOrder"
	// EnableTargetJob: the choice of a job for which nodes are reserved.
	EnableTargetJob Switch = "enableTargetJob"
	// EnableReservedNodes: the choice of the nodes that are reserved.
	EnableReservedNodes Switch = "enableReservedNodes"
	// EnableJobEnqueued: both the vote on admission and the notice of it.
	EnableJobEnqueued Switch = "enableJobEnqueued"
	// EnableVictim: the choice of the victims of shuffle.
	EnableVictim Switch = "enableVictim"
	// EnableJobStarving: the vote on whether a job may have others evicted.
	EnableJobStarving Switch = "enableJobStarving"
	// EnableOverused: the vote on whether a queue has enough.
	EnableOverused Switch = "enableOverused"
	// EnableAllocatable: the vote on whether a queue may hold one more task.
	EnableAllocatable Switch = "enableAllocatable"
	// EnableHyperNodeOrder: the scores of HyperNodes.
	EnableHyperNodeOrder Switch = "enableHyperNodeOrder"
	// EnableSubJobReady: the vote on whether a subgroup may start.
	EnableSubJobReady Switch = "enableSubJobReady"
	// EnableSubJobPipelined: the vote on whether a subgroup keeps room that others have yet to leave.
	EnableSubJobPipelined Switch = "enableSubJobPipelined"
	// EnableSubJobOrder: the order of the subgroups of a job.
	EnableSubJobOrder Switch = "enableSubJobOrder"
	// EnableHyperNodeGradient: the choice of the HyperNodes that a job may use.
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
