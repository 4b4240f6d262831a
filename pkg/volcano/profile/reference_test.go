// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package profile_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/internal/testing/placing"
)

// amounts are millicores of cpu, MiB of memory and whole GPUs.
type amounts map[string]int64

const gpu = "nvidia.com/gpu"

// text writes what there is any of, as the lines of placing do.
func (a amounts) text() string {
	units := map[string]string{"cpu": "m", "memory": "Mi"}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if a[name] > 0 {
			parts = append(parts, fmt.Sprintf("%s=%d%s", name, a[name], units[name]))
		}
	}
	return strings.Join(parts, ",")
}

// referenceNode is a node of the reference.
type referenceNode struct {
	name, group string
	zoned       bool
	has, used   amounts
}

// strategy is how a resource counts for resource-strategy-fit.
type strategy struct {
	least  bool
	weight int64
}

// nodeOrder are the arguments of nodeorder that set weights.
var nodeOrder = map[string]string{
	"leastrequested.weight": "NodeResourcesFit", "mostrequested.weight": "MostRequested",
	"balancedresource.weight": "NodeResourcesBalancedAllocation", "tainttoleration.weight": "TaintToleration",
	"nodeaffinity.weight": "NodeAffinity", "podaffinity.weight": "InterPodAffinity",
	"podtopologyspread.weight": "PodTopologySpread", "imagelocality.weight": "ImageLocality",
}

// volcano scores nodes as Volcano does. It is the formulas of the reference for node plugins (1.2 to 1.5), in fractions.
type volcano struct {
	nodes []referenceNode
	pod   amounts

	nodeOrder map[string]int64

	binpack        int64
	binpackWeights map[string]int64

	fit, scarcity int64
	strategies    map[string]strategy

	// grouped and zoned: the plugins nodegroup and tdm score.
	grouped, zoned             bool
	required, preferred, avoid []string
	ordered                    bool
}

// packed is the score of binpack.
func (v *volcano) packed(n referenceNode) float64 {
	sum, weights := 0.0, int64(0)
	for name, request := range v.pod {
		weight := v.binpackWeights[name]
		if request == 0 || weight == 0 {
			continue
		}
		sum += float64(n.used[name]+request) / float64(n.has[name]) * float64(weight)
		weights += weight
	}
	if weights == 0 {
		return 0
	}
	return sum / float64(weights) * 100 * float64(v.binpack)
}

// fits is the score of resource-strategy-fit, of which GPUs are the scarce resource.
func (v *volcano) fits(n referenceNode) float64 {
	sum, weights := 0.0, int64(0)
	for name, request := range v.pod {
		s, counts := v.strategies[name]
		if request == 0 || !counts {
			continue
		}
		part := float64(n.used[name]+request) / float64(n.has[name])
		if s.least {
			part = 1 - part
		}
		sum += part * float64(s.weight)
		weights += s.weight
	}
	score := 0.0
	if weights > 0 {
		score = sum / float64(weights) * 100 * float64(v.fit)
	}
	if n.has[gpu] == 0 {
		score += 100 * float64(v.scarcity)
	}
	return score
}

// groups is the score of nodegroup.
func (v *volcano) groups(n referenceNode) float64 {
	if slices.Contains(v.avoid, n.group) {
		return -1
	}
	score := 0.0
	if slices.Contains(v.required, n.group) {
		score += 100
	}
	if i := slices.Index(v.preferred, n.group); i >= 0 && v.ordered {
		score += 50 * float64(len(v.preferred)-i) / float64(len(v.preferred))
	} else if i >= 0 {
		score += 50
	}
	return score
}

// total is the sum of all plugins' scores. Those of kube-scheduler, which are whole numbers in both, are given without
// weights.
func (v *volcano) total(n referenceNode, raw map[string]int64) float64 {
	total := 0.0
	for argument, weight := range v.nodeOrder {
		total += float64(weight * raw[nodeOrder[argument]])
	}
	total += v.packed(n) + v.fits(n)
	if v.grouped {
		total += v.groups(n)
	}
	if v.zoned && n.zoned {
		total += 100
	}
	return total
}

// blur is by how much the totals of two nodes may come nearer, in Volcano's points, when each plugin's scores become whole
// numbers: the sum of the weights (reference 3.2, rules 2 and 3). A score of nodegroup is 100 of what 66 are a point.
func (v *volcano) blur() float64 {
	blur := float64(v.binpack + v.fit + v.scarcity)
	if v.grouped {
		blur += 100.0 / 66
	}
	return blur
}

// input writes the case for placing; bare: with kube-scheduler's scores only, of weight 1 each.
func (v *volcano) input(bare bool) string {
	var b strings.Builder
	b.WriteString("plugin nodeorder")
	for _, argument := range slices.Sorted(maps.Keys(nodeOrder)) {
		weight := v.nodeOrder[argument]
		if bare {
			weight = 1
		}
		fmt.Fprintf(&b, " %s=%d", argument, weight)
	}
	fmt.Fprintf(&b, "\nplugin nodegroup enableNodeOrder=%t enablePreferredOrder=%t", v.grouped && !bare, v.ordered)
	fmt.Fprintf(&b, "\nplugin tdm tdm.revocable-zone.z=0:00-0:00 enableNodeOrder=%t", v.zoned && !bare)
	if !bare {
		fmt.Fprintf(&b, "\nplugin binpack binpack.weight=%d binpack.resources=%s", v.binpack, gpu)
		for _, name := range slices.Sorted(maps.Keys(v.binpackWeights)) {
			key := "binpack." + name
			if name == gpu {
				key = "binpack.resources." + name
			}
			fmt.Fprintf(&b, " %s=%d", key, v.binpackWeights[name])
		}
		var resources []string
		for _, name := range slices.Sorted(maps.Keys(v.strategies)) {
			kind := "MostAllocated"
			if v.strategies[name].least {
				kind = "LeastAllocated"
			}
			resources = append(resources, fmt.Sprintf(`%q:{"type":%q,"weight":%d}`, name, kind, v.strategies[name].weight))
		}
		fmt.Fprintf(&b, `
plugin resource-strategy-fit resourceStrategyFitWeight=%d resources={%s} sra={"enable":%t,"resources":"%s","weight":%d}`,
			v.fit, strings.Join(resources, ","), v.scarcity > 0, gpu, v.scarcity)
	}
	list := func(groups []string) string { return strings.Join(groups, ",") }
	fmt.Fprintf(&b, "\nqueue q required=%s preferred=%s anti-preferred=%s\n", list(v.required), list(v.preferred), list(v.avoid))
	for _, n := range v.nodes {
		labels := "volcano.sh/nodegroup-name=" + n.group
		if n.zoned {
			labels += ";volcano.sh/revocable-zone=z"
		}
		fmt.Fprintf(&b, "node %s has=%s used=%s labels=%s\n", n.name, n.has.text(), n.used.text(), labels)
	}
	fmt.Fprintf(&b, "pod has=%s queue=q annotations=volcano.sh/revocable-zone=*\n", v.pod.text())
	return b.String()
}

// drawVolcano draws tiers, nodes and a pod.
func drawVolcano(rt *rapid.T) *volcano {
	weight := func(label string, most int64) int64 { return rapid.Int64Range(0, most).Draw(rt, label) }
	v := &volcano{
		pod:       amounts{"cpu": rapid.Int64Range(1, 4000).Draw(rt, "cpu"), "memory": weight("memory", 4000), gpu: weight("gpus", 2)},
		nodeOrder: map[string]int64{}, binpackWeights: map[string]int64{}, strategies: map[string]strategy{},
		binpack: weight("binpack", 5), fit: weight("fit", 5), scarcity: weight("scarcity", 3),
		grouped: rapid.Bool().Draw(rt, "grouped"), zoned: rapid.Bool().Draw(rt, "zones score"), ordered: rapid.Bool().Draw(rt, "ordered"),
	}
	for _, argument := range slices.Sorted(maps.Keys(nodeOrder)) {
		v.nodeOrder[argument] = weight(argument, 2)
	}
	for _, name := range []string{"cpu", "memory", gpu} {
		v.binpackWeights[name] = weight("binpack "+name, 10)
		if rapid.Bool().Draw(rt, name+" counts") {
			v.strategies[name] = strategy{least: rapid.Bool().Draw(rt, name+" least"), weight: 1 + weight(name+" strategy", 4)}
		}
	}
	if len(v.strategies) == 0 {
		v.strategies["cpu"] = strategy{least: true, weight: 1}
	}
	groups := []string{"a", "b", "c", "d"}
	some := func(label string, least int) []string {
		return rapid.SliceOfNDistinct(rapid.SampledFrom(groups), least, 3, rapid.ID[string]).Draw(rt, label)
	}
	v.required, v.preferred, v.avoid = some("required", 1), some("preferred", 1), some("avoid", 0)
	sixteenths := rapid.SampledFrom([]int64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	for i := range rapid.IntRange(4, 8).Draw(rt, "nodes") {
		n := referenceNode{
			name: fmt.Sprint("n", i), group: rapid.SampledFrom(groups).Draw(rt, "group"), zoned: rapid.Bool().Draw(rt, "zoned"),
			has: amounts{"cpu": 16000, "memory": 64000, gpu: rapid.SampledFrom([]int64{0, 8}).Draw(rt, "has gpus")}, used: amounts{},
		}
		for name, all := range n.has {
			n.used[name] = min(all, max(1, all*sixteenths.Draw(rt, "used "+name)/16))
		}
		v.nodes = append(v.nodes, n)
	}
	return v
}

// verdict is what placing says of a node that takes the pod: its total and its parts.
var verdict = regexp.MustCompile(`^(\S+): (\d+)(?:  (.*))?$`)

// scored is a node's score.
type scored struct {
	total int64
	parts map[string]int64
}

// scores reads what placing says of the nodes that take the pod.
func scores(out string) map[string]scored {
	nodes := map[string]scored{}
	for line := range strings.Lines(out) {
		found := verdict.FindStringSubmatch(strings.TrimSpace(line))
		if found == nil {
			continue
		}
		s := scored{parts: map[string]int64{}}
		s.total, _ = strconv.ParseInt(found[2], 10, 64)
		for part := range strings.SplitSeq(found[3], ", ") {
			name, value, _ := strings.Cut(part, " ")
			s.parts[name], _ = strconv.ParseInt(value, 10, 64)
		}
		nodes[found[1]] = s
	}
	return nodes
}

// TestNodesKeepVolcanosOrder: of two nodes whose totals in Volcano differ by more than whole numbers blur, the one that is
// better there is better here (reference for node plugins, 3.2).
func TestNodesKeepVolcanosOrder(t *testing.T) {
	compared := 0
	rapid.Check(t, func(rt *rapid.T) {
		v := drawVolcano(rt)
		decide := func(bare bool) (out string) {
			t.Run("", func(t *testing.T) { out = placing.Place(t, v.input(bare)) })
			if strings.HasPrefix(out, "error: ") {
				rt.Fatalf("%s of\n%s", out, v.input(bare))
			}
			return out
		}
		out := decide(false)
		ours, raw := scores(out), scores(decide(true))
		for _, a := range v.nodes {
			for _, b := range v.nodes {
				x, fits := ours[a.name]
				y, both := ours[b.name]
				if !fits || !both {
					continue
				}
				better, worse := v.total(a, raw[a.name].parts), v.total(b, raw[b.name].parts)
				if better-worse <= v.blur() {
					continue
				}
				compared++
				if x.total <= y.total {
					rt.Fatalf("%s has %.3f points in Volcano and %s has %.3f, but here they have %d and %d of\n%s\n%s",
						a.name, better, b.name, worse, x.total, y.total, v.input(false), out)
				}
			}
		}
	})
	if compared == 0 {
		t.Error("no two nodes were compared")
	}
}
