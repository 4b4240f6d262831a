// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package names holds the names of the plugins, for those who must name a plugin without importing it.
package names

// The names of the plugins in a KubeSchedulerConfiguration.
const (
	BatchQueue          = "BatchQueue"
	Gang                = "Gang"
	Binpack             = "Binpack"
	Fragmentation       = "Fragmentation"
	NodeGroup           = "NodeGroup"
	ResourceStrategyFit = "ResourceStrategyFit"
	NetworkTopology     = "NetworkTopology"
	TaskTopology        = "TaskTopology"
	MostRequested       = "MostRequested"
	Extender            = "Extender"
	TDM                 = "TDM"
	Reclaim             = "Reclaim"
	Usage               = "Usage"
	NUMAAware           = "NUMAAware"
	DeviceShare         = "DeviceShare"
	GangPreemption      = "GangPreemption"
)

// All are the names of all plugins.
var All = []string{
	BatchQueue, Gang, Binpack, Fragmentation, NodeGroup, ResourceStrategyFit, NetworkTopology, TaskTopology, MostRequested, Extender, TDM, Reclaim, Usage,
	NUMAAware, DeviceShare, GangPreemption,
}
