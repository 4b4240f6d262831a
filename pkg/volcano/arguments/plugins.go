// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

// checks tells for every plugin that a tier may hold how to check its arguments.
var checks = map[string]func(*config.TierPlugin, *field.Path) field.ErrorList{
	config.PluginCapacity:      errorsOf(DecodeCapacity),
	config.PluginCDP:           None,
	config.PluginConformance:   None,
	config.PluginDRF:           None,
	config.PluginGang:          None,
	config.PluginOvercommit:    errorsOf(DecodeOvercommit),
	config.PluginPDB:           None,
	config.PluginPriority:      None,
	config.PluginProportion:    errorsOf(DecodeProportion),
	config.PluginReservation:   errorsOf(DecodeReservation),
	config.PluginResourceQuota: None,
	config.PluginSLA:           errorsOf(DecodeSLA),
	config.PluginTDM:           errorsOf(DecodeTDM),

	config.PluginBinpack:              errorsOf(DecodeBinpack),
	config.PluginDeviceShare:          errorsOf(DecodeDeviceShare),
	config.PluginExtender:             errorsOf(DecodeExtender),
	config.PluginFragmentation:        errorsOf(DecodeFragmentation),
	config.PluginNetworkTopologyAware: errorsOf(DecodeNetworkTopology),
	config.PluginNodeGroup:            errorsOf(DecodeNodeGroup),
	config.PluginNodeOrder:            errorsOf(DecodeNodeOrder),
	config.PluginNumaAware:            errorsOf(DecodeNumaAware),
	config.PluginPredicates:           errorsOf(DecodePredicates),
	config.PluginRescheduling:         errorsOf(DecodeRescheduling),
	config.PluginResourceStrategyFit:  errorsOf(DecodeResourceStrategyFit),
	config.PluginTaskTopology:         errorsOf(DecodeTaskTopology),
	config.PluginUsage:                errorsOf(DecodeUsage),
}

// Plugins are the names of all plugins that a tier may hold.
func Plugins() []string { return slices.Sorted(maps.Keys(checks)) }

// Check reports what is wrong with the arguments of a plugin; path is that of the plugin's entry. The arguments of a
// plugin that is not among Plugins are not checked.
func Check(p *config.TierPlugin, path *field.Path) field.ErrorList {
	if check, ok := checks[p.Name]; ok {
		return check(p, path)
	}
	return nil
}

// errorsOf checks arguments by decoding them.
func errorsOf[T any](
	decode func(*config.TierPlugin, *field.Path) (T, field.ErrorList),
) func(*config.TierPlugin, *field.Path) field.ErrorList {
	return func(p *config.TierPlugin, path *field.Path) field.ErrorList {
		_, errs := decode(p, path)
		return errs
	}
}

// None refuses all arguments.
func None(p *config.TierPlugin, path *field.Path) field.ErrorList {
	return newDecoder(path, p.Arguments).finish(p.Name)
}

// Overcommit are the arguments of the plugin overcommit.
type Overcommit struct {
	// Factor is by how much the jobs that are admitted may exceed the cluster; at least 1.
	Factor float64
}

// DecodeOvercommit reads the arguments of the plugin overcommit; path is that of the plugin's entry. Volcano takes 1.2
// for a factor below 1 (pkg/scheduler/plugins/overcommit/overcommit.go); here it is an error.
func DecodeOvercommit(p *config.TierPlugin, path *field.Path) (Overcommit, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	decoded := Overcommit{Factor: value(d, "overcommit-factor", 1.2, number(1))}
	return decoded, d.finish(p.Name)
}

// Total says what the plugin proportion divides among queues.
type Total string

// What may be divided.
const (
	// Usable is what jobs can use: see model.State.Usable.
	Usable Total = "Usable"
	// Allocatable is what all nodes have, as in Volcano.
	Allocatable Total = "Allocatable"
)

// Proportion are the arguments of the plugin proportion.
type Proportion struct {
	// Total is what is divided among queues: what jobs can use (Usable), or what all nodes have (Allocatable).
	Total Total
	// UsageHalfLife is the time after which what a queue held counts half for its part, from 1m to 2160h; 0: it does not count. See docs/queues.md#what-was-held-lately.
	UsageHalfLife time.Duration
	// UsageWeight is how much it counts, 0 to 10.
	UsageWeight float64
}

// UsageHalfLife is an argument of proportion and of capacity.
const UsageHalfLife = "usageHalfLife"

// mostUsageWeight is the greatest usageWeight.
const mostUsageWeight = 10

// The least and the greatest usageHalfLife.
const (
	leastHalfLife = time.Minute
	mostHalfLife  = 2160 * time.Hour
)

// usageHalfLife parses a half-life; 0 is none.
func usageHalfLife(v runtime.RawExtension) (time.Duration, error) {
	d, err := time.ParseDuration(scalar(v))
	if scalar(v) == "0" || err == nil && (d == 0 || d >= leastHalfLife && d <= mostHalfLife) {
		return d, nil
	}
	return 0, fmt.Errorf("must be 0s or a duration from %v to %v, such as \"24h\"", leastHalfLife, mostHalfLife)
}

// DecodeProportion reads the arguments of the plugin proportion; path is that of the plugin's entry.
func DecodeProportion(p *config.TierPlugin, path *field.Path) (Proportion, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	decoded := Proportion{
		Total:         value(d, "total", Usable, oneOf(Usable, Allocatable)),
		UsageHalfLife: value(d, UsageHalfLife, 0, usageHalfLife),
		UsageWeight:   value(d, "usageWeight", 1, numberUpTo(0, mostUsageWeight)),
	}
	return decoded, d.finish(p.Name)
}

// SLA are the arguments of the plugin sla.
type SLA struct {
	// WaitingTime is how long a job that does not say so itself may wait; more than 0, and without it for ever.
	WaitingTime time.Duration
}

// DecodeSLA reads the arguments of the plugin sla; path is that of the plugin's entry.
func DecodeSLA(p *config.TierPlugin, path *field.Path) (SLA, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	decoded := SLA{WaitingTime: value(d, "sla-waiting-time", 0, duration(1, "more than 0s"))}
	return decoded, d.finish(p.Name)
}

// Capacity are the arguments of the plugin capacity.
type Capacity struct {
	// AncestorReclaimLevel is how many ancestors of a queue are asked too when it reclaims; at least 0. Without it that is 0, and queues share
	// what their siblings leave.
	AncestorReclaimLevel *int
	// DynamicResourceAllocation tells whether devices count; without it the feature gate DynamicResourceAllocation does.
	DynamicResourceAllocation *bool
	// DRAConsumableCapacity tells whether shares of devices count; without it the feature gate DRAConsumableCapacity does.
	DRAConsumableCapacity *bool
	// UsageHalfLife is the time after which what a queue held counts half for its place among queues that hold their due, from 1m to 2160h;
	// 0: it does not count. See docs/queues.md#what-was-held-lately.
	UsageHalfLife time.Duration
}

// DecodeCapacity reads the arguments of the plugin capacity; path is that of the plugin's entry.
func DecodeCapacity(p *config.TierPlugin, path *field.Path) (Capacity, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	decoded := Capacity{
		AncestorReclaimLevel:      value(d, "ancestorReclaimLevel", nil, optional(integer(0, math.MaxInt))),
		DynamicResourceAllocation: value(d, "capacity.DynamicResourceAllocationEnable", nil, optional(Bool)),
		DRAConsumableCapacity:     value(d, "capacity.DRAConsumableCapacityEnable", nil, optional(Bool)),
		UsageHalfLife:             value(d, UsageHalfLife, 0, usageHalfLife),
	}
	return decoded, d.finish(p.Name)
}

// TDM are the arguments of the plugin tdm.
type TDM struct {
	// RevocableZones are the times of day at which the nodes of a zone may be used, by the zone: the value of the node
	// label volcano.sh/revocable-zone.
	RevocableZones map[string]Window
	// EvictPeriod is the time from one eviction to the next; at least 0.
	EvictPeriod time.Duration
}

// zonePrefix begins the keys of the revocable zones.
const zonePrefix = "tdm.revocable-zone."

// DecodeTDM reads the arguments of the plugin tdm; path is that of the plugin's entry.
func DecodeTDM(p *config.TierPlugin, path *field.Path) (TDM, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	decoded := TDM{EvictPeriod: value(d, "tdm.evict.period", time.Minute, duration(0, "at least 0s"))}
	for _, key := range slices.Sorted(maps.Keys(p.Arguments)) {
		zone, ok := strings.CutPrefix(key, zonePrefix)
		if !ok {
			continue
		}
		before := len(d.errs)
		w := value(d, key, Window{}, window)
		if zone == "" {
			d.errs = append(d.errs, field.Required(d.path.Key(key), "name a zone after the last dot"))
		}
		for _, problem := range validation.IsValidLabelValue(zone) {
			d.errs = append(d.errs, field.Invalid(d.path.Key(key), zone, "no node can have this zone: "+problem))
		}
		if len(d.errs) > before {
			continue
		}
		if decoded.RevocableZones == nil {
			decoded.RevocableZones = map[string]Window{}
		}
		decoded.RevocableZones[zone] = w
	}
	// For the suggestion.
	d.known = append(d.known, zonePrefix+"<zone>")
	return decoded, d.finish(p.Name)
}
