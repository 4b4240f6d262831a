// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package usage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/caldera-scheduler/caldera/internal/testing/golden"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	v1 "github.com/caldera-scheduler/caldera/pkg/apis/config/v1"
	"github.com/caldera-scheduler/caldera/pkg/node/load"
	"github.com/caldera-scheduler/caldera/pkg/plugins/usage"
)

func TestFormulas(t *testing.T) {
	golden.Walk(t, "formulas", map[string]func(*golden.Case) string{"formulas": formulas})
}

func TestNodes(t *testing.T) {
	golden.Walk(t, "nodes", map[string]func(*golden.Case) string{"place": place})
}

// formulas prints the result of each line.
func formulas(c *golden.Case) string {
	var out strings.Builder
	for _, l := range c.Lines {
		by := &config.UsageEstimator{
			RequestRatio: l.Float("ratio", 0.7), BurstRatio: l.Float("burst", 0), RiskThreshold: l.Float("threshold", 0.6), RiskFactor: l.Float("factor", 1.2),
		}
		switch l.Word(0) {
		case "estimate":
			fmt.Fprintf(&out, "%g\n", usage.Estimate(l.Float("request", 0), l.Float("limit", 0), l.Float("risk", 1), by))
		case "risk":
			fmt.Fprintf(&out, "%g\n", usage.Risk(l.Float("load", 0), by))
		case "utilization":
			fmt.Fprintf(&out, "%g\n", usage.Part(l.Float("percent", 0), l.Float("shadow", 0), l.Float("capacity", 0)))
		default:
			c.Fatalf("no line %q", l.Word(0))
		}
	}
	return out.String()
}

// now is the time of the golden tables.
var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// told is a source that tells what it is given.
type told struct {
	loads map[string]load.Load
	err   error
}

// Loads implements load.Source.
func (s *told) Loads(context.Context) (map[string]load.Load, error) { return s.loads, s.err }

// argsWith are the defaults with changes.
func argsWith(change func(*v1.UsageArgs)) *config.UsageArgs {
	written := &v1.UsageArgs{}
	if change != nil {
		change(written)
	}
	scheme.Scheme.Default(written)
	args := &config.UsageArgs{}
	if err := scheme.Scheme.Convert(written, args, nil); err != nil {
		panic(err) // Not of what a test writes.
	}
	return args
}

// place runs a case of these lines:
//
//	args [cpuWeight=1] [memoryWeight=1] [cpuThreshold=80] [memoryThreshold=80]
//	node NAME has=cpu=8,memory=16Gi [cpu=40] [memory=40] [age=1m] [memoryAge=1m]
//	on NODE [request=cpu=2,memory=4Gi] [limit=cpu=2] [phase=Pending] [started=10s] [deleted=true]
//
// What comes out is the score of each node with how much of it is idle, or why it takes no pod.
func place(c *golden.Case) string {
	args := argsWith(nil)
	from := &told{loads: map[string]load.Load{}}
	var nodes []*framework.NodeInfo
	byName := map[string]*framework.NodeInfo{}
	for i, l := range c.Lines {
		switch l.Word(0) {
		case "args":
			args = argsWith(func(a *v1.UsageArgs) {
				a.CPUWeight, a.MemoryWeight = new(int64(l.Int("cpuWeight", 1))), new(int64(l.Int("memoryWeight", 1)))
				a.CPUThreshold, a.MemoryThreshold = new(l.Float("cpuThreshold", 80)), new(l.Float("memoryThreshold", 80))
			})
		case "node":
			info := framework.NewNodeInfo()
			info.SetNode(&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: l.Word(1)},
				Status:     corev1.NodeStatus{Capacity: l.List("has"), Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: l.Text("address", "")}}},
			})
			nodes, byName[l.Word(1)] = append(nodes, info), info
			age := l.Duration("age", time.Minute)
			var of load.Load
			if l.Has("cpu") {
				of.CPU = load.Sample{Percent: l.Float("cpu", 0), Time: now.Add(-age)}
			}
			if l.Has("memory") {
				of.Memory = load.Sample{Percent: l.Float("memory", 0), Time: now.Add(-l.Duration("memoryAge", age))}
			}
			from.loads[l.Text("address", l.Word(1))] = of
		case "on":
			byName[l.Word(1)].AddPod(pod(i, l))
		default:
			c.Fatalf("no line %q", l.Word(0))
		}
	}
	pl := usage.Build(args, from, clocktesting.NewFakeClock(now))
	if err := pl.Ask(c.T().Context()); err != nil {
		c.Fatalf("%v", err)
	}
	return verdicts(c, pl, nodes)
}

func pod(i int, l *golden.Line) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%02d", i)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Resources: corev1.ResourceRequirements{Requests: l.List("request"), Limits: l.List("limit")},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodPhase(l.Text("phase", "Pending"))},
	}
	if l.Has("started") {
		p.Status.StartTime = &metav1.Time{Time: now.Add(-l.Duration("started", 0))}
	}
	if l.Has("deleted") {
		p.DeletionTimestamp = &metav1.Time{Time: now}
	}
	return p
}

func verdicts(c *golden.Case, pl *usage.Usage, nodes []*framework.NodeInfo) string {
	var out strings.Builder
	for _, info := range nodes {
		if status := pl.Filter(c.T().Context(), nil, &corev1.Pod{}, info); !status.IsSuccess() {
			fmt.Fprintf(&out, "%s: %s, %s\n", info.Node().Name, status.Code(), status.Message())
			continue
		}
		score, status := pl.Score(c.T().Context(), nil, &corev1.Pod{}, info)
		if !status.IsSuccess() {
			c.Fatalf("%v", status)
		}
		fmt.Fprintf(&out, "%s: %d, idle %.4g\n", info.Node().Name, score, pl.Idle(info))
	}
	return out.String()
}
