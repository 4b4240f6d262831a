// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package hypernode_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/topology/hypernode"
)

// TestHyperNodes runs testdata/hypernodes.txt. Its lines:
//
//	node NAME has=cpu=2,memory=4G [used=cpu=1] [labels=a=b]
//	hypernode NAME tier=1 [tier-name=rack] [nodes=a,b] [node-pattern=^a] [node-labels=a=b] [hypernodes=s1,s2] [hypernode-pattern=^s]
//	weights cpu=1 memory=1        what counts; without the line cores and memory alike
//	job [mode=soft] [tier=1] [tier-name=rack]
//	task NAME has=cpu=1 [on=NODE]
//	pod has=cpu=1 fading=0.8
//
// The command "tree" prints what became of the HyperNodes, "choose" where the job may be planned, "near" and "full" what nodes
// score for a task of the job, and for the pod, with Volcano's weight of 10.
func TestHyperNodes(t *testing.T) {
	golden.Walk(t, "hypernodes", map[string]func(*golden.Case) string{
		"tree":   func(c *golden.Case) string { return read(c).printTree() },
		"choose": func(c *golden.Case) string { return read(c).choose() },
		"near":   func(c *golden.Case) string { return read(c).near() },
		"full":   func(c *golden.Case) string { return read(c).full() },
	})
}

type world struct {
	names    []string
	has      map[string]hypernode.Account
	tree     *hypernode.Tree
	problems []hypernode.Problem
	weights  hypernode.Weights
	job      *model.Job
	pod      resource.Vector
	fading   float64
}

func read(c *golden.Case) *world {
	w := &world{has: map[string]hypernode.Account{}, weights: hypernode.Weights{corev1.ResourceCPU: 1, corev1.ResourceMemory: 1}}
	group := &model.Group{Topology: &model.NetworkTopology{Field: "spec.networkTopology", Hard: true}}
	state := model.NewState()
	state.AddScheduler("volcano")
	var nodes []hypernode.Node
	var specs []hypernode.Spec
	for _, l := range c.Lines {
		switch l.Word(0) {
		case "node":
			w.names = append(w.names, l.Word(1))
			w.has[l.Word(1)] = hypernode.Account{Allocatable: l.Amounts("has"), Requested: l.Amounts("used")}
			nodes = append(nodes, hypernode.Node{Name: l.Word(1), Labels: pairs(l.Text("labels", ""))})
		case "hypernode":
			specs = append(specs, spec(l))
		case "weights":
			w.weights = hypernode.Weights{}
			for name, weight := range l.All() {
				n, err := strconv.ParseInt(weight, 10, 64)
				if err != nil {
					c.Fatalf("%v", err)
				}
				w.weights[corev1.ResourceName(name)] = n
			}
		case "job":
			group.Topology = &model.NetworkTopology{Field: "spec.networkTopology", Hard: l.Text("mode", "hard") == "hard", HighestTier: l.Int("tier", 0), TierName: l.Text("tier-name", "")}
		case "task":
			state.UpsertPod(pod(l))
		case "pod":
			w.pod, w.fading = l.Amounts("has"), l.Float("fading", 0.8)
		default:
			c.Fatalf("no line %q", l.Word(0))
		}
	}
	key := model.JobKey{Source: model.FromVolcano, Namespace: "team", Name: "train"}
	state.UpsertGroup(key, group)
	w.job = state.Job(key)
	w.tree, w.problems = hypernode.Build(specs, nodes)
	return w
}

func spec(l *golden.Line) hypernode.Spec {
	s := hypernode.Spec{Name: l.Word(1), Tier: l.Int("tier", 0), TierName: l.Text("tier-name", "")}
	for _, name := range l.Split("nodes", ",") {
		s.Members = append(s.Members, hypernode.Member{Name: name})
	}
	for _, name := range l.Split("hypernodes", ",") {
		s.Members = append(s.Members, hypernode.Member{HyperNode: true, Name: name})
	}
	if p := l.Text("node-pattern", ""); p != "" {
		s.Members = append(s.Members, hypernode.Member{Pattern: regexp.MustCompile(p)})
	}
	if p := l.Text("hypernode-pattern", ""); p != "" {
		s.Members = append(s.Members, hypernode.Member{HyperNode: true, Pattern: regexp.MustCompile(p)})
	}
	if p := l.Text("node-labels", ""); p != "" {
		s.Members = append(s.Members, hypernode.Member{Labels: labels.SelectorFromSet(pairs(p))})
	}
	return s
}

func pairs(text string) map[string]string {
	m := map[string]string{}
	if key, value, ok := strings.Cut(text, "="); ok {
		m[key] = value
	}
	return m
}

func pod(l *golden.Line) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: l.Word(1), UID: types.UID(l.Word(1)), Annotations: map[string]string{model.GroupNameAnnotation: "train"},
		},
		Spec: corev1.PodSpec{SchedulerName: "volcano", NodeName: l.Text("on", ""), Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: l.List("has")},
		}}},
	}
	if p.Spec.NodeName != "" {
		p.Status.Phase = corev1.PodRunning
	}
	return p
}

func (w *world) account(d *hypernode.Domain) hypernode.Account {
	var sum hypernode.Account
	for _, n := range d.Nodes {
		sum.Allocatable.Add(w.has[n].Allocatable)
		sum.Requested.Add(w.has[n].Requested)
	}
	return sum
}

func (w *world) printTree() string {
	var out strings.Builder
	for _, n := range w.names {
		fmt.Fprintf(&out, "%s:", n)
		for d := w.tree.Leaf(n); d != nil; d = d.Parent {
			fmt.Fprintf(&out, " %s (%d)", d.Name, d.Tier)
		}
		out.WriteString("\n")
	}
	for _, p := range w.problems {
		fmt.Fprintf(&out, "%s: %s\n", p.HyperNode, p.Message)
	}
	return out.String()
}

func (w *world) choose() string {
	choice := w.tree.Choose(w.job, w.weights, w.account)
	if choice.Refusal != "" {
		return choice.Refusal + "\n"
	}
	names := make([]string, len(choice.Domains))
	for i, d := range choice.Domains {
		names[i] = d.Name
	}
	return strings.Join(names, " ") + "\n"
}

const points = 1000

func (w *world) near() string {
	near := w.tree.NearnessOf(w.job)
	if near == nil {
		return "none of its tasks is on a node\n"
	}
	return w.scores(near.Score)
}

func (w *world) full() string {
	return w.scores(w.tree.FullnessOf(w.pod, w.weights, w.fading, w.account).Score)
}

func (w *world) scores(score func(string) float64) string {
	var out strings.Builder
	for _, n := range w.names {
		fmt.Fprintf(&out, "%s: %.1f\n", n, points*score(n))
	}
	return out.String()
}
