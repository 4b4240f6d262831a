// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"strings"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// racks are domains by the prefixes of their nodes' names, in the order in which they are tried.
type racks struct {
	names    []string
	refusal  string
	evicting int
}

func (r racks) DomainsOf(_ *model.Job, nodes []fwk.NodeInfo) ([]gang.Domain, string) {
	var domains []gang.Domain
	for i, prefix := range r.names {
		d := gang.Domain{Kind: gang.HyperNode, Name: prefix, Tier: i, Nodes: []string{"not-there"}}
		for _, n := range nodes {
			if strings.HasPrefix(n.Node().Name, prefix) {
				d.Nodes = append(d.Nodes, n.Node().Name)
			}
		}
		domains = append(domains, d)
	}
	return domains, r.refusal
}

func (r racks) EvictingDomains() int { return r.evicting }

func TestAGangIsPlannedInsideOfTheFirstDomainWithRoom(t *testing.T) {
	shapes := nodeShapes{
		{count: 2, cpu: "2", memory: "8Gi", prefix: "small"},
		{count: 2, cpu: "8", memory: "8Gi", prefix: "large"},
		{count: 2, cpu: "8", memory: "8Gi", prefix: "larger"},
	}
	for name, tc := range map[string]struct {
		domains racks
		size    int
		// want is the prefix of the nodes, empty when the gang is refused for a reason.
		want, reason string
	}{
		"in the first":              {racks{names: []string{"small", "large-"}}, 4, "small", ""},
		"in the next with room":     {racks{names: []string{"small", "large-"}}, 5, "large-", ""},
		"not in two at once":        {racks{names: []string{"large-", "larger"}}, 17, "", "in hyperNode larger: 16/17 tasks in gang schedulable: insufficient cpu, short by 1; 2 HyperNodes were tried"},
		"in all of them":            {racks{names: []string{"small", "l"}}, 17, "l", ""},
		"in none that has no nodes": {racks{names: []string{"gone"}}, 1, "", "the HyperNodes that it may be in have no nodes"},
		"nowhere":                   {racks{refusal: "there are no HyperNodes"}, 1, "", "there are no HyperNodes"},
		"anywhere":                  {racks{}, 36, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, shapes, nil)
			w.planner.Domains = tc.domains
			plan := w.plan(t, w.job(gangOf("g", tc.size, tc.size, "1")))
			if plan.Reason.Message != tc.reason {
				t.Errorf("reason is %q, want %q", plan.Reason.Message, tc.reason)
			}
			if tc.reason == "" && len(plan.Placements) != tc.size {
				t.Errorf("%d tasks placed, want %d", len(plan.Placements), tc.size)
			}
			for _, p := range plan.Placements {
				if !strings.HasPrefix(p.Node, tc.want) {
					t.Errorf("placed on %s, want one of %s", p.Node, tc.want)
				}
			}
		})
	}
}

// allowance is a budget of so many more tasks.
type allowance struct {
	gang.Budget
	left int
}

func (a *allowance) Refuses(resource.Vector) model.Reason {
	if a.left > 0 {
		return model.Reason{}
	}
	return model.Reason{Kind: model.QueueFull, Subject: "cpu", Message: "the queue is full"}
}

func (a *allowance) Take(resource.Vector) { a.left-- }

// TestAFullQueueIsNoMatterOfDomains: the queue is as full for one domain as for another, and its reason is told as it is.
func TestAFullQueueIsNoMatterOfDomains(t *testing.T) {
	for _, nodesFirst := range []bool{false, true} {
		w := newFixture(t, nodeShapes{{count: 1, cpu: "8", memory: "8Gi", prefix: "a"}, {count: 1, cpu: "8", memory: "8Gi", prefix: "b"}}, nil)
		w.planner.Domains = racks{names: []string{"a", "b"}}
		asked := 0
		request := asking(w.job(gangOf("g", 4, 4, "1")))
		request.NodesFirst = nodesFirst
		request.Budget = func() gang.Budget { asked++; return &allowance{Budget: &policy.Budget{}, left: 3} }
		plan, err := w.planner.Plan(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		want := model.Reason{Kind: model.QueueFull, Subject: "cpu", Message: "the queue is full"}
		if plan.Reason != want || len(plan.Placements) > 0 || asked != 1 {
			t.Errorf("nodes first %v: %d tasks placed for the reason %+v in %d domains; want none for %+v in the first",
				nodesFirst, len(plan.Placements), plan.Reason, asked, want)
		}
	}
}

// TestPlansInsideOfDomainsLeaveNothingBehind: candidates are remembered by position, and those of a domain must not be taken for
// others.
func TestPlansInsideOfDomainsLeaveNothingBehind(t *testing.T) {
	w := newFixture(t, nodeShapes{{count: 4, cpu: "8", memory: "8Gi", prefix: "a"}, {count: 4, cpu: "8", memory: "8Gi", prefix: "b"}}, nil)
	for i, prefix := range []string{"a", "b", "", "b", "a", ""} {
		w.planner.Domains = nil
		if prefix != "" {
			w.planner.Domains = racks{names: []string{prefix}}
		}
		plan := w.plan(t, w.job(gangOf(fmt.Sprintf("g%d", i), 32, 32, "1")))
		if len(plan.Placements) != 32 {
			t.Fatalf("plan %d places %d tasks: %s", i, len(plan.Placements), plan.Reason.Message)
		}
		for _, p := range plan.Placements {
			if !strings.HasPrefix(p.Node, prefix) {
				t.Errorf("plan %d places a task on %s, want one of %s", i, p.Node, prefix)
			}
		}
	}
}

func TestEvictionsAreInsideOfADomain(t *testing.T) {
	// The pods of rack a are of two cores, those of rack b of four: evictions cost less in b.
	running := []gangSpec{
		in("default", "low", run(gangOf("a", 0, 8, "2"), "a-0", "a-1")), in("default", "low", run(gangOf("b", 0, 4, "4"), "b-0", "b-1")),
	}
	for name, tc := range map[string]struct {
		domains racks
		// want is the job of the victims, and how many there are.
		want string
		n    int
	}{
		"in the largest first":            {racks{names: []string{"b", "a"}, evicting: 8}, "a", 8},
		"in no more than allowed":         {racks{names: []string{"a", "gone"}, evicting: 1}, "", 0},
		"in the next if the first cannot": {racks{names: []string{"a", "gone"}, evicting: 8}, "a", 8},
		"in none if it may be in none":    {racks{refusal: "there are no HyperNodes", evicting: 8}, "", 0},
		"anywhere, where it costs least":  {racks{evicting: 8}, "b", 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBusy(t, nodeShapes{{count: 2, cpu: "8", memory: "8Gi", prefix: "a"}, {count: 2, cpu: "8", memory: "8Gi", prefix: "b"}}, running...)
			w.planner.Domains = tc.domains
			job := w.job(in("default", "high", gangOf("g", 2, 2, "8")))
			st := w.evict(t, w.policies(t, tiers("preempt", preempting), queue("default", 1)), config.Preempt, job)
			if len(st.Victims) != tc.n {
				t.Fatalf("%d victims, want %d: %s", len(st.Victims), tc.n, st.Why)
			}
			for _, v := range st.Victims {
				if v.Job.Key.Name != tc.want {
					t.Errorf("victim %s is of job %s, want %s", v.Task.Pod.Name, v.Job.Key.Name, tc.want)
				}
			}
		})
	}
}
