// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package profile turns Volcano's tiers into a profile of kube-scheduler: which plugins it has, with which arguments and
// weights. What the tiers say about queues and jobs goes to the plugin BatchQueue; what they say about nodes goes to
// kube-scheduler's own plugins, as far as these do the same, and to Caldera's.
package profile

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	upstream "k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/plugins/names"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// SetTiers gives a profile its arguments of BatchQueue.
func SetTiers(p *schedulerconfig.KubeSchedulerProfile, args *config.BatchQueueArgs) {
	setArgs(p, names.BatchQueue, read(args))
}

// Apply gives a profile with kube-scheduler's defaults what tiers say: their policies, filters, scores and weights. An
// error names the entry whose arguments are wrong; the arguments of BatchQueue are validated already.
func Apply(p *schedulerconfig.KubeSchedulerProfile, args *config.BatchQueueArgs) error {
	SetTiers(p, args)
	t := &translator{profile: p, plugins: map[string]*config.TierPlugin{}, factor: 1}
	tiers := field.NewPath("tiers")
	t.paths = map[string]*field.Path{}
	for i := range args.Tiers {
		for j := range args.Tiers[i].Plugins {
			entry := &args.Tiers[i].Plugins[j]
			t.plugins[entry.Name], t.paths[entry.Name] = entry, tiers.Index(i).Child("plugins").Index(j)
		}
	}
	if t.scores(config.PluginNodeGroup) {
		t.factor = nodeGroupFactor
	}
	t.predicates()
	t.nodeOrder()
	t.binpack()
	t.resourceStrategyFit()
	t.nodeGroup()
	t.taskTopology()
	t.networkTopology()
	t.tdm()
	t.numaAware()
	t.deviceShare()
	t.fragmentation()
	t.usage(args.Metrics)
	t.extender()
	if err := t.errs.ToAggregate(); err != nil {
		return fmt.Errorf("translating the tiers: %w", err)
	}
	return nil
}

// read returns the arguments of BatchQueue without the section metrics if nothing reads it there.
func read(args *config.BatchQueueArgs) *config.BatchQueueArgs {
	for i := range args.Tiers {
		if slices.ContainsFunc(args.Tiers[i].Plugins, func(p config.TierPlugin) bool { return p.Name == config.PluginRescheduling }) {
			return args
		}
	}
	without := *args
	without.Metrics = nil
	return &without
}

// Scores of kube-scheduler are whole numbers from 0 to 100, which the profile multiplies by weights. Volcano's are sums of
// fractions. A plugin whose scores in Volcano are 0 to 100 times its weight has that weight in the profile. The scores of
// nodegroup are -1 and 0 to 150 without a weight; its scale is such that one of Volcano's points is nodeGroupFactor of ours,
// so that every other weight is multiplied by that where nodegroup scores. Source: reference for node plugins, section 3.
const (
	nodeGroupFactor = 66
	nodeGroupWeight = 100
	// The scores of task-topology are -100 to 100 times its weight, of which half fits into those of kube-scheduler.
	taskTopologyFactor = 2
)

// translator applies tiers to a profile.
type translator struct {
	profile *schedulerconfig.KubeSchedulerProfile
	// plugins are the entries by name, and paths where they are.
	plugins map[string]*config.TierPlugin
	paths   map[string]*field.Path
	// factor multiplies all weights.
	factor int64
	errs   field.ErrorList
}

// scores reports whether a plugin is in a tier and scores nodes.
func (t *translator) scores(name string) bool {
	entry := t.plugins[name]
	return entry != nil && entry.Enabled(config.EnableNodeOrder)
}

// decoded are the arguments of a plugin; the defaults when it is in no tier.
func decoded[T any](t *translator, name string, decode func(*config.TierPlugin, *field.Path) (T, field.ErrorList)) T {
	entry := t.plugins[name]
	if entry == nil {
		entry = &config.TierPlugin{Name: name}
	}
	args, errs := decode(entry, t.paths[name])
	t.errs = append(t.errs, errs...)
	return args
}

// predicates turns filters off that the arguments turn off. Without the plugin they stay on: in Volcano pods would be bound
// to nodes that do not take them.
func (t *translator) predicates() {
	args := decoded(t, config.PluginPredicates, arguments.DecodePredicates)
	entry := t.plugins[config.PluginPredicates]
	all := entry == nil || entry.Enabled(config.EnablePredicate)
	scoring := int64(1)
	if entry != nil && !entry.Enabled(config.EnableNodeOrder) {
		scoring = 0
	}
	plugins := t.profile.Plugins
	for name, on := range args.Filters {
		if all && on {
			continue
		}
		for _, point := range []*schedulerconfig.PluginSet{&plugins.PreFilter, &plugins.Filter} {
			disable(point, name)
		}
	}
	if !all || !args.Filters[upstream.VolumeBinding] {
		for _, point := range []*schedulerconfig.PluginSet{&plugins.Reserve, &plugins.PreBind, &plugins.PreScore, &plugins.Score} {
			disable(point, upstream.VolumeBinding)
		}
	} else {
		t.score(upstream.VolumeBinding, scoring*args.VolumeBindingWeight)
	}
	if binding := argsOf[*schedulerconfig.VolumeBindingArgs](t.profile, upstream.VolumeBinding); binding != nil {
		binding.BindTimeoutSeconds = args.VolumeBindingTimeout
		if len(args.VolumeBindingShape) > 0 {
			binding.Shape = nil
		}
		for _, point := range args.VolumeBindingShape {
			binding.Shape = append(binding.Shape, schedulerconfig.UtilizationShapePoint{Utilization: point.Utilization, Score: point.Score})
		}
	}
	if devices := argsOf[*schedulerconfig.DynamicResourcesArgs](t.profile, upstream.DynamicResources); devices != nil {
		devices.FilterTimeout = &metav1.Duration{Duration: time.Duration(args.DevicesFilterTimeout) * time.Second}
	}
	t.score(upstream.DynamicResources, scoring)
}

// nodeOrder sets the weights of kube-scheduler's scores. Without the plugin there are none, as in Volcano.
func (t *translator) nodeOrder() {
	var args arguments.NodeOrder
	if t.scores(config.PluginNodeOrder) {
		args = decoded(t, config.PluginNodeOrder, arguments.DecodeNodeOrder)
	}
	t.score(upstream.NodeResourcesFit, args.LeastRequested)
	t.score(upstream.NodeResourcesBalancedAllocation, args.BalancedResource)
	t.score(upstream.NodeAffinity, args.NodeAffinity)
	t.score(upstream.ImageLocality, args.ImageLocality)
	t.score(upstream.InterPodAffinity, args.PodAffinity)
	t.score(upstream.TaintToleration, args.TaintToleration)
	t.score(upstream.PodTopologySpread, args.PodTopologySpread)
	if args.MostRequested > 0 {
		t.add(names.MostRequested, nil, args.MostRequested)
	}
	if balanced := argsOf[*schedulerconfig.NodeResourcesBalancedAllocationArgs](t.profile, upstream.NodeResourcesBalancedAllocation); balanced != nil {
		balanced.Resources = []schedulerconfig.ResourceSpec{
			{Name: string(corev1.ResourceCPU), Weight: 1}, {Name: string(corev1.ResourceMemory), Weight: 1}, {Name: "nvidia.com/gpu", Weight: 1},
		}
	}
	if affinity := argsOf[*schedulerconfig.InterPodAffinityArgs](t.profile, upstream.InterPodAffinity); affinity != nil {
		// Volcano gives kube-scheduler's scorer no arguments at all.
		affinity.HardPodAffinityWeight = 0
	}
}

func (t *translator) binpack() {
	if args := decoded(t, config.PluginBinpack, arguments.DecodeBinpack); t.scores(config.PluginBinpack) && args.Weight > 0 {
		t.add(names.Binpack, &args.Args, args.Weight)
	}
}

// fragmentation adds the plugin Fragmentation. Where deviceshare gives cards out, these count.
func (t *translator) fragmentation() {
	decoded := decoded(t, config.PluginFragmentation, arguments.DecodeFragmentation)
	if !t.scores(config.PluginFragmentation) || decoded.Weight == 0 {
		return
	}
	if args := argsOf[*config.DeviceShareArgs](t.profile, names.DeviceShare); args != nil {
		decoded.Args.Cards = args.DeepCopy()
	}
	t.add(names.Fragmentation, &decoded.Args, decoded.Weight)
}

func (t *translator) resourceStrategyFit() {
	entry := t.plugins[config.PluginResourceStrategyFit]
	if entry == nil {
		return
	}
	args := decoded(t, config.PluginResourceStrategyFit, arguments.DecodeResourceStrategyFit).Args
	if !entry.Enabled(config.EnablePredicate) {
		args.Proportions = nil
	}
	if !entry.Enabled(config.EnableNodeOrder) {
		args.FitWeight, args.ScarcityWeight = 0, 0
	}
	weight := args.FitWeight + args.ScarcityWeight
	if weight > 0 || len(args.Proportions) > 0 {
		t.add(names.ResourceStrategyFit, &args, max(1, weight))
	}
}

func (t *translator) nodeGroup() {
	entry := t.plugins[config.PluginNodeGroup]
	if entry == nil {
		return
	}
	args := decoded(t, config.PluginNodeGroup, arguments.DecodeNodeGroup).Args
	t.addWith(names.NodeGroup, &args, nodeGroupWeight)
	t.switches(entry, names.NodeGroup)
}

func (t *translator) taskTopology() {
	weight := decoded(t, config.PluginTaskTopology, arguments.DecodeTaskTopology)
	if t.scores(config.PluginTaskTopology) && weight > 0 {
		t.add(names.TaskTopology, nil, taskTopologyFactor*weight)
	}
}

func (t *translator) tdm() {
	entry := t.plugins[config.PluginTDM]
	if entry == nil {
		return
	}
	args := &config.TDMArgs{RevocableZones: map[string]string{}}
	for zone, window := range decoded(t, config.PluginTDM, arguments.DecodeTDM).RevocableZones {
		args.RevocableZones[zone] = window.String()
	}
	t.add(names.TDM, args, 1)
	t.switches(entry, names.TDM)
}

// switches turns off what a plugin of Caldera's does where its entry says so.
func (t *translator) switches(entry *config.TierPlugin, name string) {
	if !entry.Enabled(config.EnableNodeOrder) {
		disable(&t.profile.Plugins.Score, name)
	}
	if !entry.Enabled(config.EnablePredicate) {
		disable(&t.profile.Plugins.Filter, name)
	}
}

// score gives a plugin that the profile has by default a weight; 0 turns its score off.
func (t *translator) score(name string, weight int64) {
	if !has(t.profile, name) {
		return
	}
	plugins := t.profile.Plugins
	if weight == 0 {
		disable(&plugins.PreScore, name)
		disable(&plugins.Score, name)
		return
	}
	plugins.Score.Enabled = append(plugins.Score.Enabled, schedulerconfig.Plugin{Name: name, Weight: int32(weight * t.factor)})
}

// add gives a profile a plugin of its own with a weight of Volcano's scale.
func (t *translator) add(name string, args runtime.Object, weight int64) {
	t.addWith(name, args, weight*t.factor)
}

// addWith gives a profile a plugin of its own with a weight of the profile's scale.
func (t *translator) addWith(name string, args runtime.Object, weight int64) {
	all := &t.profile.Plugins.MultiPoint
	all.Enabled = append(all.Enabled, schedulerconfig.Plugin{Name: name, Weight: int32(weight)})
	if args != nil {
		setArgs(t.profile, name, args)
	}
}

func has(p *schedulerconfig.KubeSchedulerProfile, name string) bool {
	return slices.ContainsFunc(p.Plugins.MultiPoint.Enabled, func(e schedulerconfig.Plugin) bool { return e.Name == name })
}

func disable(set *schedulerconfig.PluginSet, name string) {
	set.Disabled = append(set.Disabled, schedulerconfig.Plugin{Name: name})
}

// argsOf are the arguments that a profile gives to a plugin, to be changed; nil when it gives none.
func argsOf[T runtime.Object](p *schedulerconfig.KubeSchedulerProfile, name string) (args T) {
	for _, c := range p.PluginConfig {
		if c.Name == name {
			args, _ = c.Args.(T)
		}
	}
	return args
}

// setArgs gives a plugin arguments in place of those it has.
func setArgs(p *schedulerconfig.KubeSchedulerProfile, name string, args runtime.Object) {
	p.PluginConfig = slices.DeleteFunc(p.PluginConfig, func(c schedulerconfig.PluginConfig) bool { return c.Name == name })
	p.PluginConfig = append(p.PluginConfig, schedulerconfig.PluginConfig{Name: name, Args: args})
}
