// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package config

// The names that a plugin may have in a tier, as Volcano registers them (pkg/scheduler/plugins/factory.go).
const (
	// Plugins that decide on queues and jobs.
	PluginCapacity      = "capacity"
	PluginCDP           = "cdp"
	PluginConformance   = "conformance"
	PluginDRF           = "drf"
	PluginGang          = "gang"
	PluginOvercommit    = "overcommit"
	PluginPDB           = "pdb"
	PluginPriority      = "priority"
	PluginProportion    = "proportion"
	PluginResourceQuota = "resourcequota"
	PluginSLA           = "sla"
	PluginTDM           = "tdm"

	// Plugins that decide on nodes.
	PluginBinpack              = "binpack"
	PluginDeviceShare          = "deviceshare"
	PluginExtender             = "extender"
	PluginNetworkTopologyAware = "network-topology-aware"
	PluginNodeGroup            = "nodegroup"
	PluginNodeOrder            = "nodeorder"
	PluginNumaAware            = "numa-aware"
	PluginPredicates           = "predicates"
	PluginRescheduling         = "rescheduling"
	PluginResourceStrategyFit  = "resource-strategy-fit"
	PluginTaskTopology         = "task-topology"
	PluginUsage                = "usage"
)
