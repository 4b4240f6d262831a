// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package arguments

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/suggest"
)

// lowNodeUtilization is the only strategy there is (Volcano pkg/scheduler/plugins/rescheduling).
const lowNodeUtilization = "lowNodeUtilization"

// Rescheduling are the arguments of the plugin rescheduling.
type Rescheduling struct {
	// Interval is the time from one round of evictions to the next; at least 1s.
	Interval time.Duration
	// LowNodeUtilization is by what pods are moved from nodes that are used much to those that are used little.
	LowNodeUtilization LowNodeUtilization
}

// LowNodeUtilization are the parameters of the strategy of that name.
type LowNodeUtilization struct {
	// Low: a node is used little if its loads are below both of these. Target: it is used too much if one of its loads is above
	// that. No part of Low is above that of Target.
	Low, Target Utilization
}

// Utilization are loads of a node, in percent; 0 to 100.
type Utilization struct {
	CPU, Memory float64
}

// Idle reports whether the strategy never finds a node that is used too much, as with the defaults.
func (l *LowNodeUtilization) Idle() bool { return l.Target.CPU == 100 && l.Target.Memory == 100 }

// DecodeRescheduling reads the arguments of the plugin rescheduling; path is that of the plugin's entry. Volcano takes the
// default for what it cannot read, and has no use for strategies that it does not know (pkg/scheduler/plugins/rescheduling);
// here these are errors.
func DecodeRescheduling(p *config.TierPlugin, path *field.Path) (Rescheduling, field.ErrorList) {
	d := newDecoder(path, p.Arguments)
	all := Utilization{CPU: 100, Memory: 100}
	decoded := Rescheduling{
		Interval:           value(d, "interval", 5*time.Minute, duration(time.Second, "at least 1s")),
		LowNodeUtilization: LowNodeUtilization{Low: all, Target: all},
	}
	// The loads that are collected are means of 10 minutes.
	value(d, "metricsPeriod", 0, duration(1, "more than 0s"))
	for i, values := range value(d, "strategies", nil, listOfMaps) {
		s := &decoder{path: d.path.Key("strategies").Index(i), values: values}
		name, params := value(s, "name", "", given), s.section("params")
		switch at := s.path.Key("name"); {
		case name == "" && len(s.errs) == 0:
			s.errs = append(s.errs, field.Required(at, "name a strategy, such as "+lowNodeUtilization))
		case name == "":
		case name != lowNodeUtilization:
			s.errs = append(s.errs, suggest.Unsupported(at, name, []string{lowNodeUtilization}))
		case i > 0:
			s.errs = append(s.errs, field.Duplicate(at, name))
		default:
			decoded.LowNodeUtilization = decodeLowNodeUtilization(params)
			s.join(params)
		}
		d.join(s)
	}
	return decoded, d.finish(p.Name)
}

func listOfMaps(v runtime.RawExtension) ([]map[string]runtime.RawExtension, error) {
	var list []map[string]runtime.RawExtension
	if json.Unmarshal(v.Raw, &list) != nil || len(list) == 0 {
		return nil, errors.New("must be a list of strategies, each with a name, and with params if it has any")
	}
	return list, nil
}

// decodeLowNodeUtilization reads the parameters of the strategy. Those that Volcano accepts and has no use for are accepted.
func decodeLowNodeUtilization(d *decoder) LowNodeUtilization {
	low, target := d.section("thresholds"), d.section("targetThresholds")
	decoded := LowNodeUtilization{Low: utilization(low), Target: utilization(target)}
	d.join(low, target)
	for _, pair := range []struct {
		name        string
		low, target float64
	}{{"cpu", decoded.Low.CPU, decoded.Target.CPU}, {"memory", decoded.Low.Memory, decoded.Target.Memory}} {
		// A threshold that is not there is no condition, whatever the target.
		if _, given := low.values[pair.name]; given && pair.low > pair.target {
			d.errs = append(d.errs, field.Invalid(low.path.Key(pair.name), pair.low,
				fmt.Sprintf("must not be above targetThresholds, which is %v: a node would be used too little and too much", pair.target)))
		}
	}
	d.known = append(d.known, "thresholdPriorityClassName", "nodeFit", "numberOfNodes")
	return decoded
}

func utilization(d *decoder) Utilization {
	return Utilization{CPU: value(d, "cpu", 100, upTo(100)), Memory: value(d, "memory", 100, upTo(100))}
}
