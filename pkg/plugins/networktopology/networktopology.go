// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package networktopology is the plugin NetworkTopology: gangs are kept inside of the fastest HyperNodes that have room, and
// other pods out of the way of gangs.
package networktopology

import (
	"context"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/model/informer"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/topology/hypernode"
)

// NetworkTopology says inside of which HyperNodes gangs are planned, and scores nodes by them.
type NetworkTopology struct {
	args     config.NetworkTopologyArgs
	follower *follower
	// accounts are used while a plan is made, of which there is one at a time.
	accounts accounts
}

var (
	_ fwk.PreFilterPlugin   = &NetworkTopology{}
	_ fwk.PreScorePlugin    = &NetworkTopology{}
	_ fwk.ScorePlugin       = &NetworkTopology{}
	_ fwk.SignPlugin        = &NetworkTopology{}
	_ fwk.EnqueueExtensions = &NetworkTopology{}
	_ gang.Domains          = &NetworkTopology{}
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.NetworkTopology

// New returns the factory of the plugin. While its context lasts it follows HyperNodes and nodes.
func New(state *model.State, connect informer.Connect) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		args, err := validation.Args(obj, validation.ValidateNetworkTopologyArgs)
		if err != nil {
			return nil, err
		}
		clients, err := connect(handle)
		if err != nil {
			return nil, err
		}
		changed := func() { state.Raise(model.NodeChanged) }
		complain := func(object runtime.Object, problem string) { state.Complain(object, problem) }
		pl := newPlugin(args, newFollower(changed, complain))
		if err := followNodes(ctx, pl.follower, handle); err != nil {
			return nil, err
		}
		go pl.follower.follow(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("plugin", Name)), clients)
		return pl, nil
	}
}

func newPlugin(args *config.NetworkTopologyArgs, f *follower) *NetworkTopology {
	weights := make(hypernode.Weights, len(args.Resources))
	for name, weight := range args.Resources {
		weights[corev1.ResourceName(name)] = weight
	}
	return &NetworkTopology{args: *args, follower: f, accounts: accounts{weights: weights}}
}

// followNodes tells the follower of nodes until the context ends.
func followNodes(ctx context.Context, f *follower, handle fwk.Handle) error {
	nodes := handle.SharedInformerFactory().Core().V1().Nodes().Informer()
	registration, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { f.putNode(o.(*corev1.Node)) },
		UpdateFunc: func(_, o any) { f.putNode(o.(*corev1.Node)) },
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if n, ok := o.(*corev1.Node); ok {
				f.removeNode(n)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = nodes.RemoveEventHandler(registration) })
	return nil
}

// Name returns the plugin's name.
func (pl *NetworkTopology) Name() string { return Name }

// EventsToRegister returns no events: the dispatcher is told when the tree of HyperNodes changes.
func (pl *NetworkTopology) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return nil, nil
}

// unread is why no job with a topology is placed at first.
const unread = "the HyperNodes have not been read yet"

// DomainsOf says inside of which HyperNodes a job may be planned.
func (pl *NetworkTopology) DomainsOf(job *model.Job, nodes []fwk.NodeInfo) (domains []gang.Domain, refusal string) {
	if !pl.args.Gangs || job.Group == nil || job.Group.Topology == nil {
		return nil, ""
	}
	tree := pl.follower.tree.Load()
	if tree == nil {
		return nil, unread
	}
	choice := tree.Choose(job, pl.accounts.weights, pl.accounts.of(tree, nodes))
	for _, d := range choice.Domains {
		domains = append(domains, gang.Domain{Kind: gang.HyperNode, Name: d.Name, Tier: d.Tier, Nodes: d.Nodes})
	}
	return domains, choice.Refusal
}

// Behind says that the tree of HyperNodes is about to change.
func (pl *NetworkTopology) Behind() string {
	if pl.follower.behind() {
		return "the tree of HyperNodes is being built"
	}
	return ""
}

// EvictingDomains is in how many HyperNodes evictions are tried.
func (pl *NetworkTopology) EvictingDomains() int { return int(pl.args.EvictingHyperNodes) }

// stateKey is where a plan keeps how its pod scores nodes.
const stateKey fwk.StateKey = Name

// cycle scores nodes by their names.
type cycle func(node string) float64

// Clone implements fwk.StateData.
func (c cycle) Clone() fwk.StateData { return c }

// highest is the highest of Volcano's scores for a weight of 1, as a part of 100.
const highest = 2

// points are the score of a node, 0 to 100.
func (c cycle) points(info fwk.NodeInfo) float64 {
	return c(info.Node().Name) * float64(fwk.MaxScore) / highest
}

// PreFilter finds out how nodes are scored for the pod. It only has something to say while its job is planned: members go where
// that says. What others of a gang take while it is planned does not change how full HyperNodes are taken to be: the fullest
// only becomes fuller.
func (pl *NetworkTopology) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	tree := pl.follower.tree.Load()
	if tree == nil || tree.Empty() || !gang.Planning(state) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	var score cycle
	job := gang.Planned(state)
	switch {
	case job != nil && job.Group != nil && job.Group.Topology != nil:
		if near := tree.NearnessOf(job); near != nil {
			score = near.Score
		}
	case pl.args.NormalPods:
		score = tree.FullnessOf(resource.OfPod(pod), pl.accounts.weights, pl.args.Fading, pl.accounts.of(tree, nodes)).Score
	}
	if score == nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	gang.Depend(state, gang.OnJob)
	state.Write(stateKey, score)
	gang.Refine(state, Name, score.points)
	return nil, nil
}

// PreFilterExtensions returns nil: pods planned elsewhere do not matter.
func (pl *NetworkTopology) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// PreScore skips pods for which all nodes are alike.
func (pl *NetworkTopology) PreScore(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	if _, err := state.Read(stateKey); err != nil {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

// Score is 0 to 100 and stands for 0 to 200 points of Volcano's: for a pod of a job with a topology how near the node is to the
// others, for any other pod how full its HyperNodes are, which is 50 at most.
func (pl *NetworkTopology) Score(_ context.Context, state fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	data, err := state.Read(stateKey)
	if err != nil {
		return 0, nil //nolint:nilerr // All nodes are alike.
	}
	return int64(math.Round(data.(cycle).points(info))), nil
}

// ScoreExtensions returns nil: scores are not normalised, because that would change their proportion to other plugins'.
func (pl *NetworkTopology) ScoreExtensions() fwk.ScoreExtensions { return nil }

// SignPod says that pods of one job are alike as far as this plugin goes.
func (pl *NetworkTopology) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return []fwk.SignFragment{{Key: "caldera.NetworkTopology", Value: model.JobByMarks(pod).String()}}, nil
}
