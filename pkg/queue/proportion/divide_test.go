// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package proportion_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/queue/proportion"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

func TestDivisionByWeight(t *testing.T) {
	golden.Walk(t, "divide", map[string]func(*golden.Case) string{"divide": divide})
}

// shown is how many rounds are shown besides the last one.
const shown = 5

// divide shows Volcano's rounds and, below them, what Divide returns at once.
func divide(c *golden.Case) string {
	var total resource.Vector
	var queues []string
	var demands []proportion.Demand
	var capabilities []resource.Portion
	for _, l := range c.Lines {
		if l.Word(0) == "total" {
			total = l.Amounts("of")
			continue
		}
		queues = append(queues, l.Word(1))
		demands = append(demands, proportion.Demand{
			Weight: int64(l.Int("weight", 1)), Request: l.Amounts("request"), Guarantee: l.Amounts("guarantee"),
		})
		capabilities = append(capabilities, l.Amounts("capability").Portion())
	}
	setLimits(total, demands, capabilities)

	table := &golden.Table{}
	head := []any{"step", "remaining"}
	for _, name := range queues {
		head = append(head, name)
	}
	table.Row(append(head, "all")...)
	rounds := volcano(total, demands)
	for i, r := range rounds {
		if i >= shown && i < len(rounds)-1 {
			continue
		}
		row := []any{fmt.Sprintf("round %d", i+1), r.remaining}
		all := amounts{}
		for _, deserved := range r.deserved {
			row = append(row, deserved)
			all.add(deserved)
		}
		table.Row(append(row, all)...)
	}
	row := []any{"Divide", amountsOf(total.Portion())}
	all := amounts{}
	for _, part := range proportion.Divide(total, demands) {
		row = append(row, golden.Portion(part))
		all.add(amountsOf(part))
	}
	table.Row(append(row, all)...)
	return table.String()
}

// setLimits bounds each queue by what the guarantees of the others leave, and by its capability (reference section 4.6,
// realCapability).
func setLimits(total resource.Vector, demands []proportion.Demand, capabilities []resource.Portion) {
	var guaranteed resource.Vector
	for _, d := range demands {
		guaranteed.Add(d.Guarantee)
	}
	for i := range demands {
		bound := total.Beyond(guaranteed)
		bound.Add(demands[i].Guarantee)
		demands[i].Limit = resource.Limit{Amounts: bound.Portion(), Unnamed: resource.Nothing}
		demands[i].Limit.Tighten(capabilities[i])
	}
}

func (m amounts) add(o amounts) {
	for name, value := range o {
		m[name] += value
	}
}

// String writes the amounts like a portion.
func (m amounts) String() string {
	var p resource.Portion
	for _, name := range slices.Sorted(maps.Keys(m)) {
		p = append(p, resource.Quantity[float64]{Name: name, Value: m[name]})
	}
	return golden.Portion(p)
}

// names are the resources of the divisions that rapid draws.
var names = []corev1.ResourceName{"cpu", "memory", "nvidia.com/gpu"}
