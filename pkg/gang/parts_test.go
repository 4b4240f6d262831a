// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
)

// fabric has the nodes with one value of the label "rack" as domains of tier 1, and those with one value of "spine" as those of tier 2.
type fabric map[int][]gang.Domain

func (f fabric) DomainsOf(job *model.Job, nodes []fwk.NodeInfo) (domains []gang.Domain, refusal string) {
	if job.Group == nil || job.Group.Topology == nil {
		return nil, ""
	}
	if f[job.Group.Topology.HighestTier] == nil {
		f[job.Group.Topology.HighestTier] = domainsUpTo(job.Group.Topology.HighestTier, nodes)
	}
	return f[job.Group.Topology.HighestTier], ""
}

func domainsUpTo(highest int, nodes []fwk.NodeInfo) (domains []gang.Domain) {
	for tier, key := range []string{"rack", "spine"} {
		if tier+1 > highest {
			break
		}
		byValue := map[string][]string{}
		var values []string
		for _, n := range nodes {
			value, ok := n.Node().Labels[key]
			if !ok {
				continue
			}
			if byValue[value] == nil {
				values = append(values, value)
			}
			byValue[value] = append(byValue[value], n.Node().Name)
		}
		slices.Sort(values)
		for _, value := range values {
			domains = append(domains, gang.Domain{Kind: gang.HyperNode, Name: value, Tier: tier + 1, Nodes: byValue[value]})
		}
	}
	return domains
}

func (fabric) EvictingDomains() int { return 8 }

// anywhere stands for any racks.
const anywhere = "anywhere"

// racksOf are racks of a spine with nodes of so many cores each.
func racksOf(spine string, cores ...string) nodeShapes {
	var shapes nodeShapes
	for i, cpu := range cores {
		rack := fmt.Sprintf("%s%d", spine, i)
		shapes = append(shapes, nodeShape{prefix: rack, count: 2, cpu: cpu, memory: "64Gi", labels: map[string]string{"rack": rack, "spine": spine}})
	}
	return shapes
}

// by is a policy for pods of a role, numbered by the label "part".
func by(role string, size, least, tier int) model.SubGroupPolicy {
	p := model.SubGroupPolicy{Name: role, Size: size, Min: least, Keys: []string{"part"}, Selector: labels.SelectorFromSet(labels.Set{"role": role})}
	if tier > 0 {
		p.Topology = &model.NetworkTopology{Field: "networkTopology", Hard: true, HighestTier: tier}
	}
	return p
}

// inParts has a gang's pods have a role, and numbers each so many of them.
func inParts(role string, size int) func(int, *corev1.Pod) {
	return func(i int, p *corev1.Pod) { p.Labels["role"], p.Labels["part"] = role, fmt.Sprint(i/size) }
}

func dividedBy(g gangSpec, policies ...model.SubGroupPolicy) gangSpec {
	g.group.SubGroups = policies
	return g
}

// racksOfParts says in which racks the tasks of each part are: "0: a0 a0, 1: a1 a1".
func racksOfParts(w *fixture, plan gang.Plan) string {
	racks := map[string][]string{}
	for _, p := range plan.Placements {
		part := p.Task.Pod.Labels["part"]
		info, err := w.snapshot.NodeInfos().Get(p.Node)
		if err != nil {
			return err.Error()
		}
		racks[part] = append(racks[part], info.Node().Labels["rack"])
	}
	var parts []string
	for part, in := range racks {
		slices.Sort(in)
		parts = append(parts, part+": "+strings.Join(slices.Compact(in), " "))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func TestSubGroupsArePlacedWholeAndNearEachOther(t *testing.T) {
	for name, tc := range map[string]struct {
		shapes nodeShapes
		job    gangSpec
		// tier is that of the whole gang, 0 for any nodes.
		tier int
		// want is in which racks the parts are, reason why they are nowhere.
		want, reason string
	}{
		"each in a rack of its own": {
			shapes: racksOf("a", "2", "2", "2"), job: dividedBy(gangOf("g", 8, 8, "1", inParts("w", 4)), by("w", 4, 2, 1)),
			want: "0: a0, 1: a1",
		},
		"two in one rack": {
			shapes: racksOf("a", "4", "2"), job: dividedBy(gangOf("g", 8, 8, "1", inParts("w", 4)), by("w", 4, 2, 1)),
			want: "0: a0, 1: a0",
		},
		"anywhere without a topology": {
			shapes: racksOf("a", "1", "1", "1", "1"), job: dividedBy(gangOf("g", 8, 8, "1", inParts("w", 4)), by("w", 4, 2, 0)),
			want: anywhere,
		},
		"all in one spine, each in one rack": {
			shapes: slices.Concat(racksOf("a", "2", "1"), racksOf("b", "2", "2")),
			job:    dividedBy(gangOf("g", 8, 8, "1", inParts("w", 4)), by("w", 4, 2, 1)), tier: 2,
			want: "0: b0, 1: b1",
		},
		"not in two spines": {
			shapes: slices.Concat(racksOf("a", "2", "1"), racksOf("b", "2", "1")),
			job:    dividedBy(gangOf("g", 8, 8, "1", inParts("w", 4)), by("w", 4, 2, 1)), tier: 2,
			reason: "in hyperNode b: 1/2 subgroups schedulable; subgroup w/1: in hyperNode b1: 2/4 tasks in gang schedulable: insufficient cpu, short by 2; 6 HyperNodes were tried",
		},
		"two of three": {
			shapes: racksOf("a", "2", "2", "1"), job: dividedBy(gangOf("g", 8, 12, "1", inParts("w", 4)), by("w", 4, 2, 1)),
			want: "0: a0, 1: a1",
		},
		"those that fit, of unequal ones": {
			shapes: racksOf("a", "2", "2"), job: dividedBy(gangOf("g", 8, 12, "1", func(i int, p *corev1.Pod) {
				inParts("w", 4)(i, p)
				if i < 4 {
					p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
				}
			}), by("w", 4, 2, 1)),
			want: "1: a0, 2: a1",
		},
		"not one that fits in no rack": {
			shapes: racksOf("a", "2", "2"), job: dividedBy(gangOf("g", 6, 6, "1", inParts("w", 6)), by("w", 6, 1, 1)),
			reason: "0/1 subgroups schedulable; subgroup w/0: in hyperNode a0: 4/6 tasks in gang schedulable: insufficient cpu, short by 2",
		},
		"different tiers": {
			shapes: slices.Concat(racksOf("a", "2", "2"), racksOf("b", "1", "1")),
			job: func() gangSpec {
				g := dividedBy(gangOf("g", 8, 8, "1"), by("near", 4, 1, 1), by("far", 4, 1, 2))
				for i, p := range g.pods {
					p.Labels["role"], p.Labels["part"] = map[bool]string{true: "far", false: "near"}[i < 4], map[bool]string{true: "f", false: "n"}[i < 4]
				}
				return g
			}(),
			want: "f: a1, n: a0",
		},
		"as many beyond its size as the minimum asks for": {
			shapes: racksOf("a", "1", "2"), job: dividedBy(gangOf("g", 4, 4, "1", inParts("w", 4)), by("w", 1, 0, 1)),
			want: "0: a1",
		},
		"with a pod that is in none": {
			shapes: racksOf("a", "2", "1"), job: dividedBy(gangOf("g", 5, 5, "1", func(i int, p *corev1.Pod) {
				if i > 0 {
					inParts("w", 4)(i-1, p)
				}
			}), by("w", 4, 1, 1)),
			want: "0: a0, : a1",
		},
		"more than its subgroups have pods for": {
			shapes: racksOf("a", "8"), job: dividedBy(gangOf("g", 6, 6, "1", inParts("w", 4)), by("w", 4, 0, 1)),
			reason: "the pods of its subgroups that could be placed do not make up its minimum: create the missing ones",
		},
		"less than the minimum": {
			shapes: racksOf("a", "2"), job: dividedBy(gangOf("g", 5, 5, "1", func(i int, p *corev1.Pod) {
				if i > 0 {
					inParts("w", 4)(i-1, p)
				}
			}), by("w", 4, 1, 1)),
			reason: "0/1 tasks in gang schedulable: insufficient cpu, short by 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, tc.shapes, nil)
			w.planner.Domains = fabric{}
			if tc.tier > 0 {
				tc.job.group.Topology = &model.NetworkTopology{Hard: true, HighestTier: tc.tier}
			}
			job := w.job(tc.job)
			plan := w.plan(t, job)
			if got := racksOfParts(w, plan); got != tc.want && tc.want != anywhere || plan.Reason.Message != tc.reason {
				t.Errorf("it is placed in %q for the reason %q, want %q and %q", got, plan.Reason.Message, tc.want, tc.reason)
			}
			if n := len(plan.Placements); (n > 0 || tc.want != "") && n != tc.job.group.MinMember {
				t.Errorf("%d tasks are placed, want %d", n, tc.job.group.MinMember)
			}
		})
	}
}

// TestAGangThatStartedGrowsBySubGroups: one whole subgroup a turn, and where there is no room for one nothing of it; a task that a subgroup
// lost comes back to it.
func TestAGangThatStartedGrowsBySubGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		racks   nodeShapes
		running map[int]string
		want    string
	}{
		"by a whole one":                {racksOf("a", "2", "2"), map[int]string{0: "a0-0", 1: "a0-0", 2: "a0-1", 3: "a0-1"}, "1: a1"},
		"not by a part of one":          {racksOf("a", "3", "1"), map[int]string{0: "a0-0", 1: "a0-0", 2: "a0-1", 3: "a0-1"}, ""},
		"first by what a subgroup lost": {racksOf("a", "2", "2"), map[int]string{0: "a0-0", 1: "a0-0", 2: "a0-1", 3: "a0-1", 4: "a1-0", 5: "a1-0", 6: "a1-1"}, "1: a1"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := dividedBy(gangOf("g", 4, 12, "1", inParts("w", 4)), by("w", 4, 1, 1))
			var running []*corev1.Pod
			for i, node := range tc.running {
				running = append(running, onNode(spec.pods[i], node))
			}
			w := newFixture(t, tc.racks, running)
			w.planner.Domains = fabric{}
			plan := w.plan(t, w.job(spec))
			if got := racksOfParts(w, plan); got != tc.want {
				t.Errorf("it is placed in %q, want %q (%s)", got, tc.want, plan.Reason.Message)
			}
		})
	}
}

// TestSubGroupsFillRacks: as many equal subgroups are placed as racks hold whole ones, whatever else is asked for at the same time, and
// those placed are whole and in one rack each.
func TestSubGroupsFillRacks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var shapes nodeShapes
		size, hold := rapid.IntRange(1, 5).Draw(rt, "size"), 0
		for i := range rapid.IntRange(1, 5).Draw(rt, "racks") {
			cpu := rapid.IntRange(1, 6).Draw(rt, "cpu")
			rack := fmt.Sprintf("r%d", i)
			shapes = append(shapes, nodeShape{prefix: rack, count: 2, cpu: fmt.Sprint(cpu), memory: "64Gi", labels: map[string]string{"rack": rack}})
			hold += 2 * cpu / size
		}
		parts := rapid.IntRange(1, 8).Draw(rt, "parts")
		least := rapid.IntRange(1, parts).Draw(rt, "least")
		w := newFixture(t, shapes, nil)
		w.planner.Domains = fabric{}
		job := w.job(dividedBy(gangOf("g", 0, parts*size, "1", inParts("w", size)), by("w", size, least, 1)))
		plan := w.plan(t, job)
		if got, want := len(plan.Placements), map[bool]int{true: least * size}[least <= hold]; got != want {
			rt.Fatalf("%d tasks are placed, want %d: racks hold %d subgroups (%s)", got, want, hold, plan.Reason.Message)
		}
		for part := range strings.SplitSeq(racksOfParts(w, plan), ", ") {
			if strings.Count(part, " ") > 1 {
				rt.Fatalf("a subgroup is in several racks: %s", part)
			}
		}
	})
}

// TestEvictionsMakeRoomForSubGroups, and take of other gangs whole subgroups, as long as enough of them are left.
func TestEvictionsMakeRoomForSubGroups(t *testing.T) {
	victims := func(least int) gangSpec {
		g := run(gangOf("low", least*2, 6, "2", inParts("v", 2)), "a0-0", "a0-1", "a1-0", "a1-1", "b0-0", "b0-1")
		return in("default", "low", dividedBy(g, by("v", 2, least, 0)))
	}
	shapes := slices.Concat(racksOf("a", "2", "2"), racksOf("b", "2"))
	for name, tc := range map[string]struct {
		least int
		job   gangSpec
		// want are the parts of the victims.
		want string
	}{
		"one subgroup for one":        {1, dividedBy(gangOf("g", 2, 2, "2", inParts("w", 2)), by("w", 2, 1, 1)), "0 0"},
		"two for two":                 {1, dividedBy(gangOf("g", 4, 4, "2", inParts("w", 2)), by("w", 2, 2, 1)), "0 0 1 1"},
		"not one that is needed":      {3, dividedBy(gangOf("g", 2, 2, "2", inParts("w", 2)), by("w", 2, 1, 1)), ""},
		"a whole one for one pod":     {1, gangOf("g", 1, 1, "2"), "2 2"},
		"no more than may go":         {2, dividedBy(gangOf("g", 4, 4, "2", inParts("w", 2)), by("w", 2, 2, 1)), ""},
		"what is left of two is free": {1, dividedBy(gangOf("g", 4, 4, "1", inParts("w", 2)), by("w", 2, 2, 1)), "0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBusy(t, shapes, victims(tc.least))
			w.planner.Domains = fabric{}
			st := w.evict(t, w.policies(t, tiers("preempt", preempting), queue("default", 1)), config.Preempt, w.job(in("default", "high", tc.job)))
			var parts []string
			for _, v := range st.Victims {
				parts = append(parts, v.Task.Pod.Labels["part"])
			}
			slices.Sort(parts)
			if got := strings.Join(parts, " "); got != tc.want || (tc.want != "") != (len(st.Placements) == tc.job.group.MinMember) {
				t.Errorf("the victims are of the parts %q, want %q; %d tasks are placed: %s", got, tc.want, len(st.Placements), st.Why)
			}
		})
	}
}

// nominatedTo has room kept for pods of a gang, in order, on nodes.
func nominatedTo(w *fixture, job *model.Job, nodes ...string) *model.Job {
	for i, node := range nodes {
		for _, t := range job.Tasks {
			if t.Pod.Name == fmt.Sprintf("%s-%d", job.Key.Name, i) {
				w.state.Pipeline([]model.Nomination{{UID: t.UID, Node: node}}, nil)
			}
		}
	}
	return w.state.Job(job.Key)
}

// TestDividedGangsStartWhereTheyFit in cases that were refused once.
func TestDividedGangsStartWhereTheyFit(t *testing.T) {
	bestEffort := func(from int) func(int, *corev1.Pod) {
		return func(i int, p *corev1.Pod) {
			inParts("w", 4)(i, p)
			if i >= from {
				p.Spec.Containers[0].Resources.Requests = nil
			}
		}
	}
	roles := dividedBy(gangOf("g", 4, 6, "1", inParts("w", 6), func(i int, p *corev1.Pod) {
		p.Annotations[model.RoleKey] = map[bool]string{true: "leader", false: "worker"}[i == 5]
	}), by("w", 4, 1, 0))
	roles.group.MinTaskMember = map[string]int{"leader": 1}
	for name, tc := range map[string]struct {
		shapes nodeShapes
		job    gangSpec
		// running are the nodes of the first pods, kept those on which room is kept for the first ones.
		running, kept []string
		// piecemeal: the gang is broken and may place its members one after the other.
		piecemeal bool
		want      int
	}{
		"room is kept for two subgroups on one node": {
			shapes: nodeShapes{{count: 1, cpu: "4", memory: "64Gi", labels: map[string]string{"rack": "r"}}},
			job:    dividedBy(gangOf("g", 4, 4, "1", inParts("w", 2)), by("w", 2, 2, 1)), kept: []string{"node-0", "node-0", "node-0", "node-0"}, want: 4,
		},
		"two pods of a subgroup are lost, and come one after the other": {
			shapes: racksOf("a", "4"), job: dividedBy(gangOf("g", 8, 8, "1", inParts("w", 4)), by("w", 4, 2, 1)),
			running: []string{"a0-0", "a0-0", "a0-1", "a0-1", "a0-0", "a0-1"}, piecemeal: true, want: 1,
		},
		"all of a subgroup ask for nothing": {
			shapes: racksOf("a", "2"), job: dividedBy(gangOf("g", 0, 4, "1", bestEffort(0)), by("w", 4, 1, 1)), want: 4,
		},
		"what is left of one asks for nothing": {
			shapes: racksOf("a", "2"), job: dividedBy(gangOf("g", 4, 4, "1", bestEffort(2)), by("w", 4, 1, 1)), running: []string{"a0-0", "a0-0"}, want: 2,
		},
		"more than the sizes, and one has too few pods": {
			shapes: racksOf("a", "8"), job: dividedBy(gangOf("g", 8, 9, "1", inParts("w", 8)), by("w", 4, 0, 1)), want: 8,
		},
		"more than the sizes, which no rack has for one alone": {
			shapes: racksOf("a", "3", "3"), job: dividedBy(gangOf("g", 12, 16, "1", inParts("w", 8)), by("w", 4, 0, 1)), want: 12,
		},
		"a role that has a minimum": {shapes: racksOf("a", "8"), job: roles, want: 4},
		"in a spine that has racks": {
			shapes: slices.Concat(nodeShapes{{prefix: "0", count: 1, cpu: "8", memory: "64Gi", labels: map[string]string{"spine": "0"}}}, racksOf("a", "2", "2")),
			job: func() gangSpec {
				g := dividedBy(gangOf("g", 8, 8, "1", inParts("w", 4)), by("w", 4, 2, 1))
				g.group.Topology = &model.NetworkTopology{Hard: true, HighestTier: 2}
				return g
			}(),
			want: 8,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var running []*corev1.Pod
			for i, node := range tc.running {
				running = append(running, onNode(tc.job.pods[i], node))
			}
			w := newFixture(t, tc.shapes, running)
			w.planner.Domains = fabric{}
			job := nominatedTo(w, w.job(tc.job), tc.kept...)
			r := asking(job)
			if tc.piecemeal {
				c := *job
				c.Piecemeal = true
				r.Job = &c
			}
			for _, task := range job.Tasks {
				if task.Nominated != "" {
					r.Nominated = append(r.Nominated, task)
				}
			}
			plan, err := w.planner.Plan(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if len(plan.Placements) != tc.want {
				t.Errorf("%d tasks are placed, want %d: %s", len(plan.Placements), tc.want, plan.Reason.Message)
			}
		})
	}
}

// TestEvictionsForManySubGroups: each is tried in other racks than those before, however few are tried for one.
func TestEvictionsForManySubGroups(t *testing.T) {
	const racks = 12
	var cores, nodes []string
	for i := range racks {
		cores, nodes = append(cores, "2"), append(nodes, fmt.Sprintf("a%d-0", i), fmt.Sprintf("a%d-1", i))
	}
	low := in("default", "low", run(gangOf("low", 0, 2*racks, "2"), nodes...))
	w := newBusy(t, racksOf("a", cores...), low)
	w.planner.Domains = fabric{}
	job := w.job(in("default", "high", dividedBy(gangOf("g", 2*racks, 2*racks, "2", inParts("w", 2)), by("w", 2, racks, 1))))
	st := w.evict(t, w.policies(t, tiers("preempt", preempting), queue("default", 1)), config.Preempt, job)
	if len(st.Placements) != 2*racks || len(st.Victims) != 2*racks {
		t.Errorf("%d victims for %d tasks, want %d: %s", len(st.Victims), len(st.Placements), 2*racks, st.Why)
	}
}

// TestAFullQueueIsNoMatterOfOneSubGroup: a smaller one may do, though there is no room in the queue for the first.
func TestAFullQueueIsNoMatterOfOneSubGroup(t *testing.T) {
	spec := dividedBy(gangOf("g", 0, 6, "1", func(i int, p *corev1.Pod) {
		p.Labels["role"], p.Labels["part"] = map[bool]string{true: "big", false: "small"}[i < 4], "0"
	}), by("big", 4, 0, 0), by("small", 2, 0, 0))
	w := newFixture(t, racksOf("a", "8"), nil)
	r := asking(w.job(spec))
	r.Budget = func() gang.Budget { return &allowance{Budget: &policy.Budget{}, left: 3} }
	plan, err := w.planner.Plan(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Placements) != 2 {
		t.Errorf("%d tasks are placed, want those of the small one: %s", len(plan.Placements), plan.Reason.Message)
	}
}
