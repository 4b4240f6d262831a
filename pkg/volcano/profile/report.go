// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// Fate is what becomes of a line of a volcano-scheduler.conf.
type Fate string

// The fates.
const (
	// Same: it does what it does in Volcano.
	Same Fate = "same"
	// Changed: it does something else, for a reason.
	Changed Fate = "changed"
	// Unsupported: it does nothing.
	Unsupported Fate = "unsupported"
	// Ignored: it does nothing in Volcano either.
	Ignored Fate = "ignored by Volcano"
)

// Line is what becomes of one thing that a volcano-scheduler.conf says.
type Line struct {
	// Field is where it says so, such as tiers[0].plugins[1].arguments[binpack.cpu], and Value what.
	Field string `json:"field"`
	Value string `json:"value,omitempty"`
	Fate  Fate   `json:"fate"`
	// Note says why, and what to expect instead; empty if there is nothing to say.
	Note string `json:"note,omitempty"`
}

// Report tells what becomes of everything that a volcano-scheduler.conf says, in the order of the file. What Volcano ignores
// comes last.
func Report(args *config.BatchQueueArgs, ignored field.ErrorList) []Line {
	var lines []Line
	add := func(at *field.Path, value string, f fate) {
		lines = append(lines, Line{Field: at.String(), Value: value, Fate: f.Fate, Note: f.note})
	}
	for i, action := range args.Actions {
		add(field.NewPath("actions").Index(i), string(action), known(actionFates, string(action)))
	}
	for i := range args.Tiers {
		for j := range args.Tiers[i].Plugins {
			p := &args.Tiers[i].Plugins[j]
			at := field.NewPath("tiers").Index(i).Child("plugins").Index(j)
			add(at.Child("name"), p.Name, known(pluginFates, p.Name))
			for _, s := range slices.Sorted(maps.Keys(p.Switches)) {
				add(at.Child(string(s)), boolean(p.Switches[s]), known(switchFates, string(s)))
			}
			for _, key := range slices.Sorted(maps.Keys(p.Arguments)) {
				add(at.Child("arguments").Key(key), string(p.Arguments[key].Raw), known(argumentFates, key))
			}
		}
	}
	for i := range args.Configurations {
		c := &args.Configurations[i]
		for _, key := range slices.Sorted(maps.Keys(c.Arguments)) {
			at := field.NewPath("configurations").Index(i).Child("arguments").Key(key)
			add(at, string(c.Arguments[key].Raw), known(argumentFates, key))
		}
	}
	for _, e := range ignored {
		_, suggestion, _ := strings.Cut(e.Detail, "; ")
		lines = append(lines, Line{Field: e.Field, Fate: Ignored, Note: suggestion})
	}
	return lines
}

// fate is a Fate with its reason.
type fate struct {
	Fate
	note string
}

// known is the fate of a name in a table; what is in none is the same.
func known(table map[string]fate, name string) fate {
	if f, ok := table[name]; ok {
		return f
	}
	return fate{Fate: Same}
}

func boolean(b bool) string {
	if b {
		return "true"
	}
	return "false"
}

var actionFates = map[string]fate{
	"enqueue":     {Changed, "what a job could reclaim or preempt counts as room, so that a full cluster does not keep it out; without minResources the pods of its minimum count"},
	"allocate":    {Changed, "a gang is planned as a whole, and starts whole or not at all; there is no period"},
	"preempt":     {Changed, "nobody is evicted unless the whole gang fits then; victims that are not needed stay; Eviction API"},
	"reclaim":     {Changed, "as preempt; tiers that only protect do not decide who goes (docs/evictions.md)"},
	"gangpreempt": {Changed, "as preempt; every guard is asked"},
	"gangreclaim": {Changed, "as reclaim; every guard is asked"},
	"consolidate": {Changed, "Volcano has none like it: pods are moved to other nodes (docs/evictions.md)"},
	"shuffle":     {Changed, "only tdm and rescheduling choose; conformance, pdb, cdp and gang protect, and nobody is evicted because of pdb (docs/evictions.md)"},
}

var pluginFates = map[string]fate{
	"gang":                   {Changed, "members that have succeeded count toward the minimum, and role minimums when victims are chosen"},
	"proportion":             {Changed, "what jobs can use is divided, not what all nodes have (total: Allocatable divides that); on room that nobody else can use a gang larger than its queue's due starts"},
	"capacity":               {Changed, "a fault in the tree of queues stops the queues concerned, not the cluster; without ancestorReclaimLevel what siblings leave of what the queue above them deserves is due, too"},
	"drf":                    {Changed, "shares are current after every placement; in a flat hierarchy queues may become equal by reclaim"},
	"sla":                    {Changed, "in an earlier tier than gang, an overdue job has room reserved for all of its minimum, and does not keep what it has found (docs/waiting.md)"},
	"tdm":                    {Changed, "windows may begin before midnight and end after; without the action shuffle nobody is evicted when one ends"},
	"predicates":             {Changed, "kube-scheduler's own filters, with NodeVolumeLimits, VolumeRestrictions and NodeResourcesFit"},
	"nodeorder":              {Same, "kube-scheduler's own scores"},
	"binpack":                {Changed, "scores are whole numbers from 0 to 100 before they are weighed: near ties may come out otherwise"},
	"resource-strategy-fit":  {Changed, "as binpack"},
	"nodegroup":              {Same, "weights in the profile are 66 times Volcano's, so that -1 to 150 points fit"},
	"task-topology":          {Changed, "running tasks count for anti-affinity, too, and what is taken back is counted back; wrong annotations are told in an event"},
	"usage":                  {Changed, "what is not known is never 0 percent; metrics are read for all nodes at once, and count for 5 minutes from their own time"},
	"extender":               {Changed, "job and queue verbs are asked in the background; failures that are not ignorable stop what they are about (docs/volcano-compat.md)"},
	"rescheduling":           {Changed, "pods are moved only to nodes that can take them; loads that are not known are never 0 percent; nothing without the action shuffle"},
	"numa-aware":             {Changed, "which CPUs a new pod has is worked out from the pods on its node until the exporter tells; init containers count"},
	"deviceshare":            {Changed, "cards are chosen without the plugin predicates; a pod's score is the mean of its cards, not their sum; reasons say what is missing"},
	"network-topology-aware": {Changed, "a tier that no HyperNode has keeps a hard gang waiting, with a reason"},
}

// deaf says of a switch that nothing listens to it.
const deaf = "no plugin of Volcano listens to it"

var switchFates = map[string]fate{
	string(config.EnableBestNode):        {Same, deaf},
	string(config.EnableTargetJob):       {Same, deaf},
	string(config.EnableReservedNodes):   {Same, deaf},
	string(config.EnableClusterOrder):    {Same, deaf},
	string(config.EnableVictim):          {Changed, "of conformance, pdb, cdp and gang it turns their protection from shuffle off"},
	string(config.EnableHyperNodeOrder):  {Unsupported, "HyperNodes of a tier are compared by how full they would be whatever it says"},
	string(config.EnableSubJobReady):     {Unsupported, "subgroups are placed whole wherever the plugin gang has jobs start whole"},
	string(config.EnableSubJobPipelined): {Unsupported, "room is kept for whole subgroups wherever the plugin gang has jobs start whole"},
	string(config.EnableSubJobOrder):     {Unsupported, "subgroups that are begun come first, then those that the job needs, by the values of their labels"},
}

var argumentFates = map[string]fate{
	"predicate.CacheEnable":                     {Changed, "has no effect: pods that are alike are filtered once anyway"},
	"predicate.DynamicResourceAllocationEnable": {Ignored, "the feature gate DynamicResourceAllocation decides, as in Volcano"},
	"predicateErrorCacheEnable":                 {Changed, "has no effect: pods that are alike are filtered once anyway"},
	"enableTopologyAwarePreemption":             {Changed, "has no effect: the search for victims always runs the profile's filters on whole nodes"},
	"topologyAwarePreemptWorkerNum":             {Changed, "has no effect"},
	"minCandidateNodesPercentage":               {Changed, "has no effect: at least 100 nodes are compared"},
	"minCandidateNodesAbsolute":                 {Changed, "has no effect"},
	"maxCandidateNodesAbsolute":                 {Changed, "has no effect"},
	"deviceshare.SchedulePolicy":                {Changed, "spread scores cards that nobody uses, which in Volcano score 0; it is for vGPUs only"},
	"deviceshare.NodeLockEnable":                {Changed, "a pod waits for the lock before it is bound, and is not refused; it is for vGPUs only"},
	"deviceshare.AscendMindClusterVNPUEnable":   {Unsupported, "parts of Ascend NPUs are not given out; use whole NPUs, or dynamic resource allocation"},
	"deviceshare.AscendHAMiVNPUEnable":          {Unsupported, "parts of Ascend NPUs are not given out; use whole NPUs, or dynamic resource allocation"},
	"deviceshare.KnownGeometriesCMName":         {Unsupported, "it is about MIG: cards in MIG mode are not used; the cards and resources are those of the device plugin's defaults"},
	"deviceshare.KnownGeometriesCMNamespace":    {Unsupported, "it is about MIG: cards in MIG mode are not used"},
	"maxDomains":                                {Changed, "hypernode.gradient.evict.max-hypernodes of network-topology-aware is what counts, for every action that evicts"},
	"tdm.evict.period":                          {Same, "at least 1s"},
	"metricsPeriod":                             {Changed, "has no effect: loads are means of 10 minutes, whatever it says"},
	"strategies":                                {Changed, "thresholdPriorityClassName, nodeFit and numberOfNodes have no effect, as in Volcano; room and requests are always looked at"},
	"capacity.DynamicResourceAllocationEnable":  {Changed, "without it devices of resource claims count for queues, as with the feature gate, which is on; a due and a guarantee of devices count, too"},
	"capacity.DRAConsumableCapacityEnable":      {Changed, "without it what devices have counts for queues, as with the feature gate on; a due and a guarantee of it count, too"},
}
