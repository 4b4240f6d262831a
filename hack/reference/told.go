// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// told says where it is said what an argument of a volcano-scheduler.conf means.
type told struct {
	key string
	// field is the field that it is read into, by its way from what the arguments are decoded to. A word in brackets is a key of a map. Its comment says
	// what the argument means, unless text does. It is empty of an argument that is not kept under a name of its own, which has kind and otherwise, its
	// default, instead.
	field, text     string
	kind, otherwise string
	// ours: Volcano does not have it.
	ours bool
}

const (
	on  = "true"
	off = "false"
)

// filter is an argument that turns a filter off.
func filter(key, name string) told {
	return told{key: key, field: "Filters[" + name + "]", text: "Whether nodes are filtered by " + name}
}

// theirs are arguments of which Volcano's plugin extender has the names of the fields.
func theirs(fields ...string) []told {
	var all []told
	for _, f := range fields {
		name := f
		if of := "Args."; len(f) > len(of) && f[:len(of)] == of {
			name = f[len(of):]
		}
		key := string(name[0]|0x20) + name[1:]
		switch name {
		case "HTTPTimeout":
			key = "httpTimeout"
		case "URLPrefix":
			key = "urlPrefix"
		}
		all = append(all, told{key: "extender." + key, field: f})
	}
	return all
}

// weights are those of the resources of a plugin that packs.
func weights(prefix string) []told {
	return []told{
		{key: prefix + "cpu", field: "Args.Resources[cpu]", text: "The weight of cpu; at least 0"},
		{key: prefix + "memory", field: "Args.Resources[memory]", text: "The weight of memory; at least 0"},
		{key: prefix + "resources", text: "The names of other resources that count, with commas", kind: "text"},
		{key: prefix + "resources.<name>", text: "The weight of one of these; at least 0", kind: "whole number", otherwise: "1"},
	}
}

// cached is an argument of several actions.
var cached = []told{{key: "predicateErrorCacheEnable", field: "PredicateErrorCache"}}

// bundles are the arguments of the actions that evict for gangs.
var bundles = []told{{key: "allowWholeBundle", field: "AllowWholeBundle"}, {key: "maxDomains", field: "MaxDomains"}}

// meanings are in the order of the page: by plugins, sections and actions.
var meanings = map[string][]told{
	"binpack": append(weights("binpack."), told{key: "binpack.weight", field: "Weight"}),
	"capacity": {
		{key: "ancestorReclaimLevel", field: "AncestorReclaimLevel"},
		{key: "capacity.DRAConsumableCapacityEnable", field: "DRAConsumableCapacity"},
		{key: "capacity.DynamicResourceAllocationEnable", field: "DynamicResourceAllocation"},
		{key: "usageHalfLife", field: "UsageHalfLife", ours: true},
	},
	"deviceshare": {
		{key: "deviceshare.AscendHAMiVNPUEnable", kind: "bool", otherwise: off},
		{key: "deviceshare.AscendMindClusterVNPUEnable", kind: "bool", otherwise: off},
		{key: "deviceshare.GPUExclusiveRules", field: "Args.ExclusiveRules"},
		{key: "deviceshare.GPUNumberEnable", text: "Whether pods get whole cards, by volcano.sh/gpu-number", kind: "bool", otherwise: off},
		{key: "deviceshare.GPUSharingEnable", text: "Whether pods get memory of one card, by volcano.sh/gpu-memory", kind: "bool", otherwise: off},
		{key: "deviceshare.KnownGeometriesCMName", kind: "text"},
		{key: "deviceshare.KnownGeometriesCMNamespace", kind: "text"},
		{key: "deviceshare.NodeLockEnable", field: "Args.NodeLock"},
		{key: "deviceshare.SchedulePolicy", field: "Args.SchedulePolicy"},
		{key: "deviceshare.ScheduleWeight", field: "Weight"},
		{key: "deviceshare.VGPUEnable", text: "Whether pods get memory and cores of cards, by volcano.sh/vgpu-number and others", kind: "bool", otherwise: off},
	},
	"extender": append(theirs("Args.AllocateFuncVerb", "Args.DeallocateFuncVerb", "Args.HTTPTimeout", "Args.Ignorable", "JobEnqueueableVerb", "JobEnqueuedVerb", "JobReadyVerb",
		"Args.ManagedResources", "OnSessionCloseVerb", "OnSessionOpenVerb", "Args.PredicateVerb", "PreemptableVerb", "Args.PrioritizeVerb", "QueueOverusedVerb",
		"ReclaimableVerb", "Args.URLPrefix"),
		told{key: "extender.maxScore", field: "Args.MaxScore", ours: true},
		told{key: "extender.tlsConfig.caFile", field: "Args.TLSConfig.CAFile", ours: true},
		told{key: "extender.tlsConfig.certFile", field: "Args.TLSConfig.CertFile", ours: true},
		told{key: "extender.tlsConfig.insecure", field: "Args.TLSConfig.Insecure", ours: true},
		told{key: "extender.tlsConfig.keyFile", field: "Args.TLSConfig.KeyFile", ours: true},
		told{key: "extender.tlsConfig.serverName", field: "Args.TLSConfig.ServerName", ours: true},
	),
	"fragmentation": {
		{key: "fragmentation.halfLife", field: "Args.HalfLife", ours: true},
		{key: "fragmentation.modelLabel", field: "Args.ModelLabel", ours: true},
		{key: "fragmentation.resource", field: "Args.Resource", ours: true},
		{key: "fragmentation.weight", field: "Weight", ours: true},
	},
	"network-topology-aware": append(weights("hypernode.binpack."),
		told{key: "hypernode.binpack.normal-pod.enable", field: "Args.NormalPods"},
		told{key: "hypernode.binpack.normal-pod.fading", field: "Args.Fading"},
		told{key: "hypernode.gradient.evict.max-hypernodes", field: "Args.EvictingHyperNodes"},
		told{key: "weight", field: "Weight"},
	),
	"nodegroup": {{key: "enablePreferredOrder", field: "Args.EnablePreferredOrder"}, {key: "strict", field: "Args.Strict"}},
	"nodeorder": {
		{key: "balancedresource.weight", field: "BalancedResource"},
		{key: "imagelocality.weight", field: "ImageLocality"},
		{key: "leastrequested.weight", field: "LeastRequested"},
		{key: "mostrequested.weight", field: "MostRequested"},
		{key: "nodeaffinity.weight", field: "NodeAffinity"},
		{key: "podaffinity.weight", field: "PodAffinity"},
		{key: "podtopologyspread.weight", field: "PodTopologySpread"},
		{key: "tainttoleration.weight", field: "TaintToleration"},
	},
	"numa-aware": {{key: "weight", text: "The weight of the score; at least 0, which turns it off", kind: "whole number", otherwise: "1"}},
	"overcommit": {{key: "overcommit-factor", field: "Factor"}},
	"predicates": {
		{key: "dynamicresources.filterTimeoutSeconds", field: "DevicesFilterTimeout"},
		{key: "predicate.CacheEnable", kind: "bool", otherwise: on},
		{key: "predicate.DynamicResourceAllocationEnable", kind: "bool", otherwise: on},
		filter("predicate.NodeAffinityEnable", "NodeAffinity"),
		filter("predicate.NodePortsEnable", "NodePorts"),
		filter("predicate.NodeVolumeLimitsEnable", "NodeVolumeLimits"),
		filter("predicate.PodAffinityEnable", "InterPodAffinity"),
		filter("predicate.PodTopologySpreadEnable", "PodTopologySpread"),
		filter("predicate.TaintTolerationEnable", "TaintToleration"),
		filter("predicate.VolumeBindingEnable", "VolumeBinding"),
		filter("predicate.VolumeZoneEnable", "VolumeZone"),
		{key: "volumebinding.bindTimeoutSeconds", field: "VolumeBindingTimeout"},
		{key: "volumebinding.shape", field: "VolumeBindingShape"},
		{key: "volumebinding.weight", field: "VolumeBindingWeight"},
	},
	"proportion": {
		{key: "total", field: "Total", ours: true},
		{key: "usageHalfLife", field: "UsageHalfLife", ours: true},
		{key: "usageWeight", field: "UsageWeight", ours: true},
	},
	"rescheduling": {
		{key: "interval", field: "Interval"},
		{key: "metricsPeriod", kind: "duration"},
		{key: "strategies.name", text: "The strategy: lowNodeUtilization is the only one", kind: "text", otherwise: "required"},
		{key: "strategies.params.nodeFit", kind: "any"},
		{key: "strategies.params.numberOfNodes", kind: "any"},
		{
			key: "strategies.params.targetThresholds.cpu", field: "LowNodeUtilization.Target.CPU",
			text: "Pods are moved from nodes whose load of cpu is above that, in percent",
		},
		{
			key: "strategies.params.targetThresholds.memory", field: "LowNodeUtilization.Target.Memory",
			text: "Pods are moved from nodes whose load of memory is above that, in percent",
		},
		{key: "strategies.params.thresholdPriorityClassName", kind: "any"},
		{
			key: "strategies.params.thresholds.cpu", field: "LowNodeUtilization.Low.CPU",
			text: "Pods are moved to nodes whose load of cpu is below that, in percent; not above the target",
		},
		{
			key: "strategies.params.thresholds.memory", field: "LowNodeUtilization.Low.Memory",
			text: "Pods are moved to nodes whose load of memory is below that, in percent; not above the target",
		},
	},
	"reservation": {
		{key: "reservation.after", field: "After", ours: true},
		{key: "reservation.backfillWithin", field: "BackfillWithin", ours: true},
		{key: "reservation.giveUpAfter", field: "GiveUpAfter", ours: true},
		{key: "reservation.holders", field: "Holders", ours: true},
		{key: "reservation.trust", field: "Trust", ours: true},
	},
	"resource-strategy-fit": {
		{key: "proportional.enable", text: "Whether cores and memory are kept free for idle devices", kind: "bool", otherwise: off},
		{key: "proportional.resourceProportion.<name>.cpu", text: "How many cores are kept free for each idle device; at least 0", kind: "number", otherwise: "1"},
		{
			key:  "proportional.resourceProportion.<name>.memory",
			text: "How many gigabytes of 10^9 bytes are kept free for each idle device; at least 0", kind: "number", otherwise: "1",
		},
		{key: "proportional.resources", text: "The names of these devices, with commas", kind: "text"},
		{key: "resourceStrategyFitWeight", field: "Args.FitWeight"},
		{key: "resources.<name>.type", field: "Args.Resources[cpu].Type"},
		{key: "resources.<name>.weight", field: "Args.Resources[cpu].Weight"},
		{key: "sra.enable", text: "Whether nodes with scarce resources are left to those who ask for them", kind: "bool", otherwise: off},
		{key: "sra.resourceWeight.<name>", text: "The weight of one of these; at least 0", kind: "whole number", otherwise: "1"},
		{key: "sra.resources", text: "The names of scarce resources, with commas", kind: "text"},
		{key: "sra.weight", field: "Args.ScarcityWeight", otherwise: "required with `sra.enable`"},
	},
	"sla":           {{key: "sla-waiting-time", field: "WaitingTime", otherwise: "none"}},
	"task-topology": {{key: "task-topology.weight", text: "The weight of the score; at least 0, which turns it off", kind: "whole number", otherwise: "1"}},
	"tdm": {
		{key: "tdm.evict.period", field: "EvictPeriod"},
		{key: "tdm.revocable-zone.<zone>", field: "RevocableZones", kind: "text"},
	},
	"usage": {
		{key: "cpu.weight", field: "Args.CPUWeight"},
		{key: "estimator.be_cpu", field: "Args.Estimator.BestEffort[cpu]", text: "How much cpu a pod without requests uses; without a unit, millicores"},
		{key: "estimator.be_mem", field: "Args.Estimator.BestEffort[memory]", text: "How much memory a pod without requests uses; without a unit, mebibytes"},
		{key: "estimator.burst_ratio", field: "Args.Estimator.BurstRatio"},
		{key: "estimator.request_ratio", field: "Args.Estimator.RequestRatio"},
		{key: "estimator.risk_factor", field: "Args.Estimator.RiskFactor"},
		{key: "estimator.risk_threshold", field: "Args.Estimator.RiskThreshold"},
		{key: "memory.weight", field: "Args.MemoryWeight"},
		{key: "thresholds.cpu", field: "Args.CPUThreshold"},
		{key: "thresholds.mem", field: "Args.MemoryThreshold", text: "The load of memory above which a node takes no more pods; 0 to 100 percent"},
		{key: "usage.weight", field: "Weight"},
	},
	"metrics": {
		{key: "address", field: "Address"},
		{key: "elasticsearch.hostnameFieldName", field: "Elasticsearch.HostnameField"},
		{key: "elasticsearch.index", field: "Elasticsearch.Index"},
		{key: "elasticsearch.password", field: "Elasticsearch.Password"},
		{key: "elasticsearch.username", field: "Elasticsearch.Username"},
		{key: "interval", field: "Interval"},
		{key: "prometheus.nodeLabel", field: "NodeLabel", ours: true},
		{key: "timeout", field: "Timeout", ours: true},
		{key: "tls.insecureSkipVerify", field: "InsecureSkipVerify"},
		{key: "type", field: "Type", otherwise: "required"},
	},
	"action allocate": cached, "action backfill": cached, "action reclaim": cached,
	"action consolidate": {
		{key: "cooldown", field: "Moves.Cooldown", ours: true},
		{key: "maxAge", field: "Moves.MaxAge", ours: true},
		{key: "maxMovesPerHour", field: "Moves.MaxPerHour", ours: true},
		{key: "maxPods", field: "Moves.MaxPods", ours: true},
	},
	"action gangpreempt": bundles, "action gangreclaim": bundles,
	"action preempt": {
		{key: "enableTopologyAwarePreemption", field: "TopologyAwarePreemption"},
		{key: "maxCandidateNodesAbsolute", field: "MaxCandidateNodesAbsolute"},
		{key: "minCandidateNodesAbsolute", field: "MinCandidateNodesAbsolute"},
		{key: "minCandidateNodesPercentage", field: "MinCandidateNodesPercentage"},
		cached[0],
		{key: "topologyAwarePreemptWorkerNum", field: "TopologyAwareWorkers"},
	},
}
