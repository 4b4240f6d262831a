// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// heaviest bounds weights, so that no sum of scores overflows.
const heaviest = 1_000_000

// Predicates are the arguments of the plugin predicates.
type Predicates struct {
	// Filters are the filters that can be turned off, by their names in kube-scheduler, with whether they are on.
	Filters map[string]bool
	// VolumeBindingTimeout is how long volumes may take to be bound, in seconds; at least 0.
	VolumeBindingTimeout int64
	// VolumeBindingWeight is the weight of the score of volumes; at least 0.
	VolumeBindingWeight int64
	// VolumeBindingShape scores the utilization of storage classes; without it as kube-scheduler does.
	VolumeBindingShape []UtilizationPoint
	// DevicesFilterTimeout is how long one node may take to be filtered for resource claims, in seconds; at least 0,
	// which is for ever.
	DevicesFilterTimeout int64
}

// UtilizationPoint is one point of a line from utilization, 0 to 100 percent, to score, 0 to 10.
type UtilizationPoint struct {
	Utilization int32 `json:"utilization"`
	Score       int32 `json:"score"`
}

// filterSwitches are the arguments that turn filters off (Volcano pkg/scheduler/plugins/predicates/predicates.go).
var filterSwitches = map[string]string{
	"predicate.NodeAffinityEnable":      "NodeAffinity",
	"predicate.NodePortsEnable":         "NodePorts",
	"predicate.TaintTolerationEnable":   "TaintToleration",
	"predicate.PodAffinityEnable":       "InterPodAffinity",
	"predicate.NodeVolumeLimitsEnable":  "NodeVolumeLimits",
	"predicate.VolumeZoneEnable":        "VolumeZone",
	"predicate.PodTopologySpreadEnable": "PodTopologySpread",
	"predicate.VolumeBindingEnable":     "VolumeBinding",
}

// movedFromPredicates says what took the place of arguments that the plugin predicates had until Volcano 1.9: sharing of GPUs is that of the
// plugin deviceshare by now, and cores and memory for idle GPUs are kept free by resource-strategy-fit.
func movedFromPredicates(key string) string {
	const proportional = "use %s of the plugin resource-strategy-fit, in its section proportional"
	switch key {
	case "predicate.GPUSharingEnable", "predicate.GPUNumberEnable":
		return fmt.Sprintf("use deviceshare%s of the plugin deviceshare", strings.TrimPrefix(key, "predicate"))
	case "predicate.ProportionalEnable":
		return fmt.Sprintf(proportional, "enable")
	case "predicate.resources":
		return fmt.Sprintf(proportional, "resources")
	}
	if device, ok := strings.CutPrefix(key, "predicate.resources."); ok {
		return fmt.Sprintf(proportional, "resourceProportion."+device)
	}
	return ""
}

// DecodePredicates reads the arguments of the plugin predicates; path is that of the plugin's entry. Two arguments have no
// effect: predicate.CacheEnable, because kube-scheduler finds out itself which pods are alike, and
// predicate.DynamicResourceAllocationEnable, which Volcano does not read either.
func DecodePredicates(p *config.TierPlugin, path *field.Path) (Predicates, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	d.successor = movedFromPredicates
	decoded := Predicates{
		Filters:              map[string]bool{},
		VolumeBindingTimeout: int64(value(d, "volumebinding.bindTimeoutSeconds", 600, integer(0, math.MaxInt))),
		VolumeBindingWeight:  weight(d, "volumebinding.weight", 1),
		VolumeBindingShape:   value(d, "volumebinding.shape", nil, shape),
		DevicesFilterTimeout: int64(value(d, "dynamicresources.filterTimeoutSeconds", 10, integer(0, math.MaxInt))),
	}
	for key, name := range filterSwitches {
		decoded.Filters[name] = value(d, key, true, Bool)
	}
	for _, key := range []string{"predicate.CacheEnable", "predicate.DynamicResourceAllocationEnable"} {
		value(d, key, true, Bool)
	}
	return decoded, d.finish(p.Name)
}

var errShape = errors.New(`must be a list of points with rising utilization from 0 to 100 and a score from 0 to 10, such as [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]`)

func shape(v runtime.RawExtension) ([]UtilizationPoint, error) {
	var points []UtilizationPoint
	if json.Unmarshal(v.Raw, &points) != nil || len(points) == 0 {
		return nil, errShape
	}
	for i, p := range points {
		if p.Utilization < 0 || p.Utilization > 100 || p.Score < 0 || p.Score > 10 || i > 0 && p.Utilization <= points[i-1].Utilization {
			return nil, errShape
		}
	}
	return points, nil
}

// NodeOrder are the weights of the plugin nodeorder, each at least 0; 0 turns a score off.
type NodeOrder struct {
	// LeastRequested is the weight of nodes of which little is asked for.
	LeastRequested int64
	// MostRequested is the weight of nodes of which much is asked for.
	MostRequested int64
	// BalancedResource is the weight of nodes of which no resource is asked for much more than of others.
	BalancedResource int64
	// NodeAffinity is the weight of nodes that the pod would rather have.
	NodeAffinity int64
	// ImageLocality is the weight of nodes that have the images already.
	ImageLocality int64
	// PodAffinity is the weight of nodes with, or without, pods that the pod would rather be near to, or apart from.
	PodAffinity int64
	// TaintToleration is the weight of nodes without taints PreferNoSchedule that the pod does not tolerate.
	TaintToleration int64
	// PodTopologySpread is the weight of nodes in topology domains with few pods like it.
	PodTopologySpread int64
}

// DecodeNodeOrder reads the arguments of the plugin nodeorder; path is that of the plugin's entry.
func DecodeNodeOrder(p *config.TierPlugin, path *field.Path) (NodeOrder, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	decoded := NodeOrder{
		LeastRequested:    weight(d, "leastrequested.weight", 1),
		MostRequested:     weight(d, "mostrequested.weight", 0),
		BalancedResource:  weight(d, "balancedresource.weight", 1),
		NodeAffinity:      weight(d, "nodeaffinity.weight", 2),
		ImageLocality:     weight(d, "imagelocality.weight", 1),
		PodAffinity:       weight(d, "podaffinity.weight", 2),
		TaintToleration:   weight(d, "tainttoleration.weight", 3),
		PodTopologySpread: weight(d, "podtopologyspread.weight", 2),
	}
	return decoded, d.finish(p.Name)
}

// Binpack are the arguments of the plugin binpack.
type Binpack struct {
	// Weight is how much the score of the plugin counts; at least 0, which turns it off.
	Weight int64
	Args   config.BinpackArgs
}

// DecodeBinpack reads the arguments of the plugin binpack; path is that of the plugin's entry. Volcano takes 1 for a negative
// weight of a resource, and spreads when the weight of the plugin is negative
// (pkg/scheduler/plugins/binpack/binpack.go); here both are errors.
func DecodeBinpack(p *config.TierPlugin, path *field.Path) (Binpack, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	decoded := Binpack{Weight: weight(d, "binpack.weight", 1)}
	decoded.Args.Resources = d.resourceWeights("binpack.")
	return decoded, d.finish(p.Name)
}

// resourceWeights reads the weights of cpu, memory and the resources that the key "resources" lists, all with a prefix.
func (d *decoder) resourceWeights(prefix string) map[string]int64 {
	weights := map[string]int64{}
	for _, name := range value(d, prefix+"resources", nil, names) {
		weights[name] = weight(d, prefix+"resources."+name, 1)
	}
	for _, name := range []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory)} {
		weights[name] = weight(d, prefix+name, 1)
	}
	return weights
}

// ResourceStrategyFit are the arguments of the plugin resource-strategy-fit.
type ResourceStrategyFit struct {
	Args config.ResourceStrategyFitArgs
}

// DecodeResourceStrategyFit reads the arguments of the plugin resource-strategy-fit; path is that of the plugin's entry.
func DecodeResourceStrategyFit(p *config.TierPlugin, path *field.Path) (ResourceStrategyFit, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	var decoded ResourceStrategyFit
	args := &decoded.Args
	args.FitWeight = weight(d, "resourceStrategyFitWeight", 10)
	args.Resources = strategies(d)
	scarce := d.section("sra")
	enabled, listed := value(scarce, "enable", false, Bool), value(scarce, "resources", nil, names)
	scarcity, given := weight(scarce, "weight", 0), scarce.values["weight"]
	weights := scarce.section("resourceWeight")
	for _, name := range listed {
		w := weight(weights, name, 1)
		if enabled {
			if args.ScarceResources == nil {
				args.ScarceResources = map[string]int64{}
			}
			args.ScarceResources[name] = w
		}
	}
	if enabled {
		args.ScarcityWeight = scarcity
		if given.Raw == nil {
			scarce.errs = append(scarce.errs, field.Required(scarce.path.Child("weight"), "without a weight scarce resources do not count"))
		}
	}
	args.Proportions = proportions(d)
	d.join(scarce, weights)
	return decoded, d.finish(p.Name)
}

// strategies reads the strategies of resources.
func strategies(d *decoder) map[string]config.ResourceStrategy {
	all := d.section("resources")
	if all.values == nil {
		return map[string]config.ResourceStrategy{
			string(corev1.ResourceCPU):    {Type: config.LeastAllocated, Weight: 1},
			string(corev1.ResourceMemory): {Type: config.LeastAllocated, Weight: 1},
		}
	}
	decoded := map[string]config.ResourceStrategy{}
	for _, name := range slices.Sorted(maps.Keys(all.values)) {
		one := all.section(name)
		if err := Pattern(name); err != nil {
			one.errs = append(one.errs, field.Invalid(one.path, name, err.Error()))
		}
		decoded[name] = config.ResourceStrategy{
			Type:   value(one, "type", config.LeastAllocated, strategyType),
			Weight: int64(value(one, "weight", 1, integer(1, heaviest))),
		}
		all.join(one)
	}
	d.join(all)
	return decoded
}

// Pattern says what is wrong with the name of a resource that may end in "*" to stand for all that begin so; nil when
// nothing is.
func Pattern(name string) error {
	if head, rest, wild := strings.Cut(name, "*"); wild && (head == "" || rest != "") {
		return errors.New(`a pattern has one "*", at its end, and something before it`)
	}
	return nil
}

func strategyType(v runtime.RawExtension) (config.StrategyType, error) {
	switch t := config.StrategyType(scalar(v)); t {
	case config.LeastAllocated, config.MostAllocated:
		return t, nil
	}
	return "", errors.New("must be LeastAllocated or MostAllocated")
}

// proportions reads what stays free for devices; nil when that is off.
func proportions(d *decoder) map[string]config.Proportion {
	section := d.section("proportional")
	enabled, listed := value(section, "enable", false, Bool), value(section, "resources", nil, names)
	rates := section.section("resourceProportion")
	decoded := map[string]config.Proportion{}
	for _, name := range listed {
		decoded[name] = config.Proportion{
			CPU: value(rates, name+".cpu", 1, number(0)), Memory: value(rates, name+".memory", 1, number(0)),
		}
	}
	d.join(section, rates)
	if !enabled {
		return nil
	}
	return decoded
}

// NodeGroup are the arguments of the plugin nodegroup.
type NodeGroup struct {
	Args config.NodeGroupArgs
}

// DecodeNodeGroup reads the arguments and switches of the plugin nodegroup; path is that of the plugin's entry.
func DecodeNodeGroup(p *config.TierPlugin, path *field.Path) (NodeGroup, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	var decoded NodeGroup
	decoded.Args.Strict = value(d, "strict", true, Bool)
	decoded.Args.EnablePreferredOrder = value(d, "enablePreferredOrder", false, Bool)
	decoded.Args.EnableHierarchy = p.Enabled(config.EnableHierarchy)
	return decoded, d.finish(p.Name)
}

// DecodeTaskTopology reads the arguments of the plugin task-topology: its weight, at least 0, default 1.
func DecodeTaskTopology(p *config.TierPlugin, path *field.Path) (int64, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	decoded := weight(d, "task-topology.weight", 1)
	return decoded, d.finish(p.Name)
}

// DecodeNumaAware reads the arguments of the plugin numa-aware: its weight, at least 0, default 1.
func DecodeNumaAware(p *config.TierPlugin, path *field.Path) (int64, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	decoded := weight(d, "weight", 1)
	return decoded, d.finish(p.Name)
}

// weight is a whole number of at least 0.
func weight(d *decoder, key string, fallback int64) int64 {
	return int64(value(d, key, int(fallback), integer(0, heaviest)))
}

var errNames = errors.New(`must be names of resources with commas, such as "nvidia.com/gpu, example.com/foo"`)

// names parses a list with commas. Blanks around a name and empty names do not count.
func names(v runtime.RawExtension) ([]string, error) {
	var text string
	if json.Unmarshal(v.Raw, &text) != nil {
		return nil, errNames
	}
	var list []string
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list, nil
}
