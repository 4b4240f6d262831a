// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package config

// The names in a tier of the plugins that decide on queues and jobs (Volcano pkg/scheduler/plugins/factory.go).
const (
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
)

// PluginReservation is the name in a tier of a plugin that Volcano does not have: room is reserved for jobs that have waited for long.
const PluginReservation = "reservation"

// PluginFragmentation is the name in a tier of a plugin that Volcano does not have: pods go where they leave the least that is of no use.
const PluginFragmentation = "fragmentation"

// The names in a tier of the plugins that decide on nodes (Volcano pkg/scheduler/plugins/factory.go).
const (
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
