// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fragmentation is the plugin Fragmentation: pods go where they leave the least of the GPUs that is of no use to the pods that usually come.
package fragmentation

import (
	"context"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/config/validation"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/node/fragment"
	"github.com/caldera-scheduler/caldera/pkg/plugins/deviceshare/card"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
)

// Fragmentation scores nodes by what a pod leaves there.
type Fragmentation struct {
	handle fwk.Handle
	gpus   gpus
	mix    *mix
}

var (
	_ fwk.PreFilterPlugin = &Fragmentation{}
	_ fwk.PreScorePlugin  = &Fragmentation{}
	_ fwk.ScorePlugin     = &Fragmentation{}
	_ fwk.ScoreExtensions = &Fragmentation{}
	_ fwk.SignPlugin      = &Fragmentation{}
)

// Name is the plugin's name in a KubeSchedulerConfiguration.
const Name = names.Fragmentation

// New returns the factory of the plugin.
func New(c clock.PassiveClock) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(_ context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		args, err := validation.Args(obj, validation.ValidateFragmentationArgs)
		if err != nil {
			return nil, err
		}
		pl := &Fragmentation{handle: handle, mix: newMix(c, args.HalfLife.Duration)}
		pl.gpus = whole{resource: corev1.ResourceName(args.Resource), modelLabel: args.ModelLabel}
		if args.Cards != nil {
			pl.gpus = cards{card.ModeOf(args.Cards)}
		}
		_, err = handle.SharedInformerFactory().Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			if pod, ok := o.(*corev1.Pod); ok {
				pl.mix.forget(pod.UID)
			}
		}})
		if err != nil {
			return nil, fmt.Errorf("watching pods: %w", err)
		}
		return pl, nil
	}
}

// Name returns the plugin's name.
func (pl *Fragmentation) Name() string { return Name }

// stateKey is where a cycle keeps what its pod asks for, and what is expected of others.
const stateKey fwk.StateKey = Name

type cycle struct {
	demand  fragment.Demand
	outlook *outlook
}

// Clone implements fwk.StateData.
func (c *cycle) Clone() fwk.StateData { return c }

// PreFilter counts the pod, and tells the planner of gangs which kinds of pods are expected: what it remembers of nodes holds for these.
func (pl *Fragmentation) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	infos, err := pl.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("listing the nodes of the snapshot: %w", err))
	}
	c := &cycle{demand: pl.gpus.demand(pod)}
	c.outlook = pl.mix.learn(arrival{pod, c.demand}, len(infos),
		func() []arrival { return pl.bound(infos) }, func() cluster { return pl.survey(infos) }, pl.gpus.takes)
	gang.See(state, c.outlook.version)
	state.Write(stateKey, c)
	return nil, nil
}

// PreFilterExtensions returns nil: pods that come and go change no verdict.
func (pl *Fragmentation) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// bound are the pods of this profile on nodes.
func (pl *Fragmentation) bound(infos []fwk.NodeInfo) []arrival {
	var all []arrival
	for _, info := range infos {
		for _, p := range info.GetPods() {
			if pod := p.GetPod(); pod.Spec.SchedulerName == pl.handle.ProfileName() {
				all = append(all, arrival{pod, pl.gpus.demand(pod)})
			}
		}
	}
	return all
}

// survey looks at all nodes.
func (pl *Fragmentation) survey(infos []fwk.NodeInfo) cluster {
	c := cluster{nodes: len(infos), gpus: map[string]int{}}
	for _, info := range infos {
		has := pl.gpus.all(info)
		if len(has.GPUs) > 0 {
			c.gpus[has.Model] += len(has.GPUs)
		}
		c.milliCPU, c.each = max(c.milliCPU, has.MilliCPU), max(c.each, has.Sum())
	}
	return c
}

// PreScore leaves clusters without GPUs alone.
func (pl *Fragmentation) PreScore(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	c, err := cycleOf(state)
	switch {
	case err != nil:
		return fwk.AsStatus(err)
	case !c.outlook.cluster.usable():
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

func cycleOf(state fwk.CycleState) (*cycle, error) {
	data, err := state.Read(stateKey)
	if err != nil {
		return nil, fmt.Errorf("reading what is expected of pods: %w", err)
	}
	return data.(*cycle), nil
}

// steps is how many steps of the second key there are in a level.
const steps = 1000

// Score is the level of what the pod leaves on the node (fragment.Level), in steps, and below that: for a pod with GPUs, whether any of the node's are in
// use; for one without, how little is left of the largest node's CPU and GPUs. It is 0 to 99,999.
func (pl *Fragmentation) Score(_ context.Context, state fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	c, err := cycleOf(state)
	if err != nil {
		return 0, fwk.AsStatus(err)
	}
	before, after, ok := pl.gpus.left(info, pod, c.demand)
	if !ok {
		return 0, nil
	}
	score := int64(c.outlook.kinds.Level(before, after)) * steps
	switch {
	case c.demand.GPUs == 0:
		score += int64((steps - 1) * c.outlook.cluster.fit(after))
	case before.Sum() < len(before.GPUs)*fragment.Whole:
		score += steps - 1
	}
	return score, nil
}

// fit is how little is left, 0 to 1: the mean of CPU and GPUs, as parts of what the largest node has.
func (c *cluster) fit(l fragment.Left) float64 {
	part := func(left, of float64) float64 { return min(1, max(0, left/max(1, of))) }
	return 1 - (part(float64(l.MilliCPU), float64(c.milliCPU))+part(float64(l.Sum()), float64(c.each)))/2
}

// ScoreExtensions returns the plugin itself.
func (pl *Fragmentation) ScoreExtensions() fwk.ScoreExtensions { return pl }

// perLevel is how many points a node scores less for each level below the best.
const perLevel = 4

// NormalizeScore gives 100 to the best node, of equals to the first in an order that is always the same, so that one node is filled after the other;
// the others have 99, and 4 less for each level below the best.
func (pl *Fragmentation) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *corev1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	if len(scores) == 0 {
		return nil
	}
	best, place := 0, placeOf(scores[0].Name)
	for i := 1; i < len(scores); i++ {
		if scores[i].Score < scores[best].Score {
			continue
		}
		if p := placeOf(scores[i].Name); scores[i].Score > scores[best].Score || p < place {
			best, place = i, p
		}
	}
	top := scores[best].Score
	for i := range scores {
		scores[i].Score = max(0, fwk.MaxScore-1-(top-scores[i].Score)*perLevel/steps)
	}
	scores[best].Score = fwk.MaxScore
	return nil
}

// placeOf is a node's place in an order that is always the same and does not follow names: nodes with like names are often alike, and one model of
// GPUs is not to be used up before the next.
func placeOf(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64()
}

// SignPod says that pods which ask for the same are alike as far as this plugin goes.
func (pl *Fragmentation) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return []fwk.SignFragment{{Key: "caldera.Fragmentation", Value: fmt.Sprintf("%+v", pl.gpus.demand(pod))}}, nil
}
