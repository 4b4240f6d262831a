// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package extender is the plugin Extender: an HTTP server that speaks Volcano's extender protocol filters and scores nodes,
// and learns which nodes are reserved. What it decides on queues and jobs is in package votes.
package extender

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender/client"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender/protocol"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
)

// Extender asks an HTTP server about nodes.
type Extender struct {
	state  *model.State
	clock  clock.WithTicker
	args   config.ExtenderArgs
	client *client.Client
	// done is closed when the scheduler ends; reviewing: nodes are to be judged again in a while.
	done      <-chan struct{}
	reviewing atomic.Bool
	// plans counts the cycles in which the server is asked.
	plans atomic.Int64
}

var (
	_ fwk.PreFilterPlugin   = &Extender{}
	_ fwk.FilterPlugin      = &Extender{}
	_ fwk.PreScorePlugin    = &Extender{}
	_ fwk.ScorePlugin       = &Extender{}
	_ fwk.ReservePlugin     = &Extender{}
	_ fwk.EnqueueExtensions = &Extender{}
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.Extender

// review is how long after the extender refused a node the jobs that wait are tried again: nothing tells when it would
// answer otherwise.
const review = 10 * time.Second

// New returns the factory of the plugin.
func New(state *model.State, c clock.WithTicker) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		args, err := validation.Args(obj, validation.ValidateExtenderArgs)
		if err != nil {
			return nil, err
		}
		pl := &Extender{state: state, clock: c, args: *args, client: client.New(args), done: ctx.Done()}
		if args.DeallocateFuncVerb != "" && handle != nil {
			pl.follow(ctx, handle.ProfileName())
		}
		return pl, nil
	}
}

// Name returns the plugin's name.
func (pl *Extender) Name() string { return Name }

// MayRefuse reports whether the server is asked at Reserve, and may refuse then.
func (pl *Extender) MayRefuse(pod *corev1.Pod) bool { return pl.asks(pl.args.AllocateFuncVerb, pod) }

// PreFilter says that what the server answers for one plan may not hold for the next.
func (pl *Extender) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if pl.asks(pl.args.PredicateVerb, pod) || pl.asks(pl.args.PrioritizeVerb, pod) {
		gang.See(state, pl.plans.Add(1))
	}
	return nil, nil
}

// PreFilterExtensions returns nil: the server is asked about one node at a time.
func (pl *Extender) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// EventsToRegister are what the extender is told of nodes: it may answer otherwise when that changes.
func (pl *Extender) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete}},
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.Update}},
	}, nil
}

// Filter asks whether the node takes the pod. A failure that is not ignorable ends the attempt, which is repeated, because
// it says nothing about the node.
func (pl *Extender) Filter(ctx context.Context, _ fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	if !pl.asks(pl.args.PredicateVerb, pod) {
		return nil
	}
	var verdict protocol.Verdict
	question := protocol.Fits{Task: pl.task(pod), Node: pl.node(node)}
	if err := pl.client.Call(ctx, pl.args.PredicateVerb, question, &verdict); err != nil {
		return pl.failed(ctx, err)
	}
	if verdict.Message == "" {
		return nil
	}
	pl.review()
	if verdict.Code == protocol.Unschedulable {
		return fwk.NewStatus(fwk.Unschedulable, verdict.Message)
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, verdict.Message)
}

// scoresKey is where a cycle keeps the scores.
const scoresKey fwk.StateKey = Name + "/scores"

// scores are the extender's scores by node.
type scores map[string]float64

// Clone implements fwk.StateData.
func (s scores) Clone() fwk.StateData { return s }

// PreScore asks for the scores of all nodes at once.
func (pl *Extender) PreScore(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	if !pl.asks(pl.args.PrioritizeVerb, pod) {
		return fwk.NewStatus(fwk.Skip)
	}
	question := protocol.Rank{Task: pl.task(pod), Nodes: make([]*protocol.Node, len(nodes))}
	for i, n := range nodes {
		question.Nodes[i] = pl.node(n)
	}
	var ranking protocol.Ranking
	err := pl.client.Call(ctx, pl.args.PrioritizeVerb, question, &ranking)
	switch {
	case err != nil:
	case ranking.Message != "":
		err = fmt.Errorf("the extender at %s does not rank nodes: %s", pl.client.URL(pl.args.PrioritizeVerb), ranking.Message)
	case ranking.Scores == nil:
		err = fmt.Errorf("the extender at %s answered without nodeScore: it must have a score by the name of each node", pl.client.URL(pl.args.PrioritizeVerb))
	}
	if err != nil {
		if failed := pl.failed(ctx, err); failed != nil {
			return failed
		}
		return fwk.NewStatus(fwk.Skip)
	}
	state.Write(scoresKey, scores(ranking.Scores))
	return nil
}

// Score brings the extender's score into 0 to 100: maxScore and more is 100, 0 and less is 0, as is a node without one.
func (pl *Extender) Score(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	data, err := state.Read(scoresKey)
	if err != nil {
		return 0, fwk.AsStatus(fmt.Errorf("reading the scores of the extender: %w", err))
	}
	most := float64(pl.args.MaxScore)
	score := min(max(data.(scores)[node.Node().Name], 0), most)
	return int64(math.Round(score / most * float64(fwk.MaxScore))), nil
}

// ScoreExtensions returns nil: scores are not normalised, because that would change their proportion to other plugins'.
func (pl *Extender) ScoreExtensions() fwk.ScoreExtensions { return nil }

// reservedKey marks a cycle in which the extender may hold the node for reserved.
const reservedKey fwk.StateKey = Name + "/reserved"

type reserved struct{}

// Clone implements fwk.StateData.
func (reserved) Clone() fwk.StateData { return reserved{} }

// Reserve tells the extender that the pod gets the node, which it may refuse.
func (pl *Extender) Reserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) *fwk.Status {
	if gang.Planning(state) {
		return nil
	}
	// A call without an answer may have arrived.
	state.Write(reservedKey, reserved{})
	if !pl.asks(pl.args.AllocateFuncVerb, pod) {
		return nil
	}
	var receipt protocol.Receipt
	if err := pl.client.Call(ctx, pl.args.AllocateFuncVerb, pl.placed(pod, nodeName, model.Allocated), &receipt); err != nil {
		return pl.failed(ctx, err)
	}
	if receipt.Message != "" {
		state.Delete(reservedKey)
		return fwk.NewStatus(fwk.Unschedulable, fmt.Sprintf("the extender at %s refuses node %s: %s",
			pl.client.URL(pl.args.AllocateFuncVerb), nodeName, receipt.Message))
	}
	return nil
}

// Unreserve tells the extender that the pod does not get the node. There is nothing that could be done about a failure.
func (pl *Extender) Unreserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodeName string) {
	if _, err := state.Read(reservedKey); err != nil || !pl.asks(pl.args.DeallocateFuncVerb, pod) {
		return
	}
	state.Delete(reservedKey)
	var receipt protocol.Receipt
	// The cycle may have been given up; the call has a limit of its own.
	ctx = context.WithoutCancel(ctx)
	err := pl.client.Call(ctx, pl.args.DeallocateFuncVerb, pl.placed(pod, nodeName, model.Pending), &receipt)
	if err == nil && receipt.Message != "" {
		err = errors.New(receipt.Message)
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "Extender was not told that a node is free again", "pod", klog.KObj(pod), "node", nodeName)
	}
}

// asks reports whether there is such a question about the pod.
func (pl *Extender) asks(verb string, pod *corev1.Pod) bool {
	return verb != "" && protocol.Concerns(pl.args.ManagedResources, pod)
}

// failed is what a failure comes to: nothing where the extender may fail.
func (pl *Extender) failed(ctx context.Context, err error) *fwk.Status {
	if pl.args.Ignorable {
		klog.FromContext(ctx).V(3).Info("Extender failed and is ignored", "err", err)
		return nil
	}
	return fwk.AsStatus(err)
}

// review has the jobs that wait tried again in a while.
func (pl *Extender) review() {
	if !pl.reviewing.CompareAndSwap(false, true) {
		return
	}
	timer := pl.clock.NewTimer(review)
	go func() {
		defer timer.Stop()
		select {
		case <-pl.done:
		case <-timer.C():
			pl.reviewing.Store(false)
			pl.state.Raise(model.JudgedAnew)
		}
	}()
}

// task is the pod as the model has it.
func (pl *Extender) task(pod *corev1.Pod) *protocol.Task { return protocol.TaskOf(pl.known(pod)) }

func (pl *Extender) known(pod *corev1.Pod) *model.Task {
	if t := pl.state.Task(pod.UID); t != nil {
		return t
	}
	return model.NewTask(pod)
}

// placed is the task on a node.
func (pl *Extender) placed(pod *corev1.Pod, node string, status model.Status) protocol.OfTask {
	t := *pl.known(pod)
	t.Status, t.Node, t.Nominated = status, node, ""
	return protocol.OfTask{Task: protocol.TaskOf(&t)}
}

// node is a node with what is on it, and what is supposed to be.
func (pl *Extender) node(info fwk.NodeInfo) *protocol.Node {
	name := info.Node().Name
	tasks := make([]*model.Task, 0, len(info.GetPods()))
	for _, p := range info.GetPods() {
		t := pl.known(p.GetPod())
		if !t.Status.HoldsNode() || t.Node != name {
			supposed := *t
			supposed.Status, supposed.Node, supposed.Nominated = model.Allocated, name, ""
			t = &supposed
		}
		tasks = append(tasks, t)
	}
	return protocol.NodeOf(info.Node(), tasks)
}
