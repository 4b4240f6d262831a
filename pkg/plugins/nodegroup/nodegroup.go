// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodegroup is the plugin NodeGroup: a queue says which groups of nodes its pods may use, must use, and would
// rather use, and how much of each.
package nodegroup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// NodeGroup keeps pods to the node groups of their queues.
type NodeGroup struct {
	args  config.NodeGroupArgs
	state *model.State
}

var (
	_ fwk.PreFilterPlugin     = &NodeGroup{}
	_ fwk.PreFilterExtensions = &NodeGroup{}
	_ fwk.FilterPlugin        = &NodeGroup{}
	_ fwk.ScorePlugin         = &NodeGroup{}
	_ fwk.SignPlugin          = &NodeGroup{}
	_ fwk.EnqueueExtensions   = &NodeGroup{}
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.NodeGroup

// New returns the factory of the plugin.
func New(state *model.State) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(_ context.Context, obj runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
		args, err := validation.Args[config.NodeGroupArgs](obj, nil)
		if err != nil {
			return nil, err
		}
		return &NodeGroup{args: *args, state: state}, nil
	}
}

// Name returns the plugin's name.
func (pl *NodeGroup) Name() string { return Name }

// EventsToRegister returns no events: the dispatcher knows when nodes and queues change.
func (pl *NodeGroup) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// stateKey is where a cycle keeps what its pod's queue says.
const stateKey fwk.StateKey = Name

// cycle is what is known of the queue of a cycle's pod.
type cycle struct {
	queue   string
	groups  *model.NodeGroups
	limits  model.GroupLimits
	request resource.Vector
	// used is what the queue's pods hold of groups with limits; nil where nobody asks.
	used map[string]resource.Vector
}

// Clone implements fwk.StateData.
func (c *cycle) Clone() fwk.StateData {
	copied := *c
	copied.used = clone(c.used)
	return &copied
}

func cycleOf(state fwk.CycleState) (*cycle, error) {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil, fmt.Errorf("reading the node groups of the pod's queue: %w", err)
	}
	return data.(*cycle), nil
}

// queueOf is the queue of a pod's job; empty for a pod that is no task.
func (pl *NodeGroup) queueOf(pod *corev1.Pod) string {
	if job := pl.state.Summary(pl.state.JobOf(pod)); job != nil {
		return job.Queue
	}
	return ""
}

// PreFilter finds what the pod's queue says about groups. Limits are looked at when a gang is planned: there is one turn at a
// time, and its members go where they were planned.
func (pl *NodeGroup) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	c := &cycle{queue: pl.queueOf(pod)}
	c.groups = groupsOf(c.queue, pl.args.EnableHierarchy, pl.state.Queue)
	if q := pl.state.Queue(c.queue); q != nil {
		c.limits = q.GroupLimits
	}
	if len(c.limits.Of) == 0 {
		// Jobs of queues that say the same are treated alike.
		gang.See(state, digest(c.groups))
	} else {
		gang.Depend(state, gang.OnJob)
	}
	if len(c.limits.Of) > 0 && gang.Planning(state) {
		gang.Depend(state, gang.OnPodsElsewhere)
		c.request = resource.OfPod(pod)
		c.used = make(map[string]resource.Vector, len(c.limits.Of))
		for _, info := range nodes {
			if group := info.Node().Labels[model.NodeGroupLabel]; c.limits.Of[group] != nil {
				for _, p := range info.GetPods() {
					pl.count(c, p.GetPod(), group, 1)
				}
			}
		}
	}
	state.Write(stateKey, c)
	return nil, nil
}

// count counts a pod n times as in a group, if it is of the same queue.
func (pl *NodeGroup) count(c *cycle, pod *corev1.Pod, group string, n int64) {
	if pl.queueOf(pod) == c.queue {
		used := c.used[group]
		used.AddTimes(resource.OfPod(pod), n)
		c.used[group] = used
	}
}

// PreFilterExtensions returns the plugin itself.
func (pl *NodeGroup) PreFilterExtensions() fwk.PreFilterExtensions { return pl }

// AddPod counts a pod that is planned.
func (pl *NodeGroup) AddPod(_ context.Context, state fwk.CycleState, _ *corev1.Pod, added fwk.PodInfo, info fwk.NodeInfo) *fwk.Status {
	return pl.change(state, added, info, 1)
}

// RemovePod counts a pod as gone.
func (pl *NodeGroup) RemovePod(_ context.Context, state fwk.CycleState, _ *corev1.Pod, removed fwk.PodInfo, info fwk.NodeInfo) *fwk.Status {
	return pl.change(state, removed, info, -1)
}

func (pl *NodeGroup) change(state fwk.CycleState, pod fwk.PodInfo, info fwk.NodeInfo, n int64) *fwk.Status {
	c, err := cycleOf(state)
	if err != nil {
		return fwk.AsStatus(err)
	}
	if group := info.Node().Labels[model.NodeGroupLabel]; c.used != nil && c.limits.Of[group] != nil {
		pl.count(c, pod.GetPod(), group, n)
	}
	return nil
}

// Why a node does not take a pod, in Volcano's words.
const (
	unreadable = "node group resource limit annotation invalid"
	noLabel    = "node group label not found"
	noAffinity = "node group affinity not specified"
	elsewhere  = "node does not satisfy the node group affinity"
	exceeded   = "node group resource limit exceeded"
)

// never is the status of a node that evictions do not help; a new one, because the framework writes into it.
func never(reason string) *fwk.Status { return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, reason) }

// Filter keeps pods to the groups of their queue, and within its limits.
func (pl *NodeGroup) Filter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	c, err := cycleOf(state)
	if err != nil {
		return fwk.AsStatus(err)
	}
	group, labelled := info.Node().Labels[model.NodeGroupLabel]
	named := c.groups.Named()
	switch {
	case c.limits.Unreadable:
		return never(unreadable)
	case !labelled && (named || pl.args.Strict):
		return never(noLabel)
	case !labelled:
		return nil
	case !named:
		return never(noAffinity)
	case !allowed(c.groups, group):
		return never(elsewhere)
	}
	limit, held := c.limits.Of[group], c.used[group]
	for _, bound := range limit {
		if c.used != nil && held.Get(bound.Name)+c.request.Get(bound.Name) > bound.Value {
			// Evicting pods of the same queue may help.
			return fwk.NewStatus(fwk.Unschedulable, exceeded)
		}
	}
	return nil
}

// Score is how much the queue wants the node's group, 0 to 100: 0 for groups that it would rather avoid, 1 for those it says
// nothing about, up to 100 for those that it requires and prefers.
func (pl *NodeGroup) Score(_ context.Context, state fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	c, err := cycleOf(state)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	group, labelled := info.Node().Labels[model.NodeGroupLabel]
	if !labelled || !c.groups.Named() {
		return scaled(0), nil
	}
	return scaled(points(c.groups, group, pl.args.EnablePreferredOrder)), nil
}

// ScoreExtensions returns nil: scores are not normalised, because that would change their proportion to other plugins'.
func (pl *NodeGroup) ScoreExtensions() fwk.ScoreExtensions { return nil }

// SignPod says that pods of one queue are alike as far as this plugin goes.
func (pl *NodeGroup) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return []fwk.SignFragment{{Key: "caldera.NodeGroup", Value: pl.queueOf(pod)}}, nil
}
