// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// drawn is a small crowded cluster, of which several versions can be made.
type drawn struct {
	args   config.BatchQueueArgs
	queues []*model.Queue
	groups map[model.JobKey]*model.Group
	keys   []model.JobKey
	pods   []*corev1.Pod
	allow  int32
}

func switched(name string, off ...config.Switch) config.TierPlugin {
	p := config.TierPlugin{Name: name, Switches: map[config.Switch]bool{}}
	for _, s := range off {
		p.Switches[s] = false
	}
	return p
}

// tiersDrawn draws plugins that select and guard, in any tiers.
func tiersDrawn(t *rapid.T) []config.Tier {
	tree := config.TierPlugin{Name: config.PluginCapacity, Switches: map[config.Switch]bool{config.EnableHierarchy: true}}
	hdrf := config.TierPlugin{Name: config.PluginDRF, Switches: map[config.Switch]bool{config.EnableHierarchy: true}}
	tiers := make([]config.Tier, 2)
	put := func(p config.TierPlugin) {
		i := rapid.IntRange(0, 1).Draw(t, "tier of "+p.Name)
		tiers[i].Plugins = append(tiers[i].Plugins, p)
	}
	put(rapid.SampledFrom([]config.TierPlugin{
		switched(config.PluginProportion), switched(config.PluginCapacity), tree, hdrf,
	}).Draw(t, "division"))
	if !slices.ContainsFunc(tiers, func(tier config.Tier) bool { return len(tier.Plugins) > 0 && tier.Plugins[0].Name == config.PluginDRF }) &&
		rapid.Bool().Draw(t, "drf") {
		put(switched(config.PluginDRF))
	}
	put(rapid.SampledFrom([]config.TierPlugin{
		switched(config.PluginPriority), switched(config.PluginPriority, config.EnablePreemptable),
	}).Draw(t, "priority"))
	put(rapid.SampledFrom([]config.TierPlugin{
		switched(config.PluginGang, config.EnableJobStarving),
		switched(config.PluginGang, config.EnableJobStarving, config.EnablePreemptable, config.EnableReclaimable),
	}).Draw(t, "gang"))
	if rapid.Bool().Draw(t, "pdb") {
		put(switched(config.PluginPDB))
	}
	return tiers
}

// crowd draws a cluster.
func crowd(t *rapid.T) *drawn {
	d := &drawn{groups: map[model.JobKey]*model.Group{}, allow: rapid.Int32Range(0, 3).Draw(t, "allowed")}
	d.args.Tiers = tiersDrawn(t)
	d.args.Actions = rapid.Permutation([]config.Action{config.Preempt, config.Reclaim, config.GangPreempt, config.GangReclaim}).Draw(t, "actions")
	d.queues = []*model.Queue{{Name: model.RootQueue}}
	for i, parent := range []string{"", "", "q0", "q0", "q1"} {
		q := &model.Queue{
			Name: fmt.Sprintf("q%d", i), Parent: parent, Weight: rapid.Int32Range(1, 3).Draw(t, "weight"), Reclaimable: true,
			Hierarchy: []string{"root", string(rune('a' + i%2)), fmt.Sprint(i)}, HierarchyWeights: []float64{1, 2, 1},
		}
		q.Deserved = both(rapid.Int64Range(0, 4).Draw(t, "deserved cpu"), rapid.Int64Range(0, 4).Draw(t, "deserved memory"))
		if parent == "" {
			// More than all below it.
			q.Deserved = both(20, 20)
		} else {
			q.Guarantee = both(rapid.SampledFrom([]int64{0, 0, 1}).Draw(t, "guarantee"), 0)
		}
		if parent == "" {
			q.Guarantee = both(9, 0)
		}
		d.queues = append(d.queues, q)
	}
	for i := range rapid.IntRange(2, 5).Draw(t, "jobs") {
		d.drawJob(t, i)
	}
	return d
}

func both(cpu, memory int64) (v resource.Vector) {
	for _, a := range []resource.Amount{{Name: "cpu", Value: 1000 * cpu}, {Name: "memory", Value: memory}} {
		if a.Value > 0 {
			v = append(v, a)
		}
	}
	return v
}

func (d *drawn) drawJob(t *rapid.T, i int) {
	key := model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: fmt.Sprintf("j%d", i)}
	d.keys = append(d.keys, key)
	d.groups[key] = &model.Group{
		UID: types.UID(key.Name), Queue: rapid.SampledFrom([]string{"q2", "q3", "q4"}).Draw(t, "queue"), MinMember: rapid.IntRange(0, 2).Draw(t, "min"),
		PriorityClass: rapid.SampledFrom([]string{"low", "high"}).Draw(t, "class"), Phase: model.PhaseInqueue,
		Created: epoch.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "age")) * time.Minute),
	}
	if rapid.Bool().Draw(t, "roles") {
		d.groups[key].MinTaskMember = map[string]int{"ps": 1}
	}
	waits := i == 0
	for k := range rapid.IntRange(1, 4).Draw(t, "pods") {
		requests := corev1.ResourceList{}
		for _, name := range []corev1.ResourceName{"cpu", "memory"} {
			if n := rapid.Int64Range(0, 2).Draw(t, string(name)); n > 0 {
				requests[name] = *apiresource.NewQuantity(n, apiresource.DecimalSI)
			}
		}
		priority := rapid.Int32Range(1, 3).Draw(t, "task priority")
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: fmt.Sprintf("%s-%d", key.Name, k), Namespace: "ns", UID: types.UID(fmt.Sprintf("%s-%d", key.Name, k)),
				Annotations:       map[string]string{model.GroupNameAnnotation: key.Name, model.RoleKey: rapid.SampledFrom([]string{"ps", "worker"}).Draw(t, "role")},
				CreationTimestamp: metav1.NewTime(epoch),
			},
			Spec: corev1.PodSpec{SchedulerName: "volcano", Priority: &priority, Containers: []corev1.Container{{
				Name: "main", Resources: corev1.ResourceRequirements{Requests: requests},
			}}},
			Status: corev1.PodStatus{Phase: corev1.PodPending},
		}
		if waits = waits || rapid.IntRange(0, 4).Draw(t, "waits") == 0; !waits {
			place(pod)
		}
		waits = i == 0 && k < 2
		d.pods = append(d.pods, pod)
	}
}

func jobNamed(name string) model.JobKey {
	return model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: name}
}

// podAsking waits for so many cores.
func podAsking(name, job string, cpu int64) *corev1.Pod {
	return builders.Member("ns", job, name, strconv.FormatInt(cpu, 10)).Phase(corev1.PodPending).Obj()
}

func place(pod *corev1.Pod) { pod.Spec.NodeName, pod.Status.Phase = "n", corev1.PodRunning }

// make builds the cluster with some pods running and others waiting besides.
func (d *drawn) make(t *rapid.T, running, waiting []types.UID) (*policy.Set, *model.State) {
	state := model.NewState()
	state.AddScheduler("volcano")
	state.UpsertPriorityClass("low", 1, false)
	state.UpsertPriorityClass("high", 2, false)
	for key, g := range d.groups {
		state.UpsertGroup(key, g)
	}
	for _, p := range d.pods {
		pod := p.DeepCopy()
		switch {
		case slices.Contains(running, pod.UID):
			place(pod)
		case slices.Contains(waiting, pod.UID):
			pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending
		}
		state.UpsertPod(pod)
	}
	set, err := policy.Compile(&d.args)
	if err != nil {
		t.Fatal(err)
	}
	set.SetCluster(both(12, 12))
	for _, q := range d.queues {
		set.SetQueue(q.Name, q)
	}
	for _, key := range d.keys {
		set.SetJob(key, state.Job(key))
	}
	set.Update()
	return set, state
}

// world has one disruption budget for everybody.
func (d *drawn) world() policy.EvictionWorld {
	return policy.EvictionWorld{Now: epoch, Budgets: func(string) []*model.DisruptionBudget {
		return []*model.DisruptionBudget{{Namespace: "ns", Name: "all", Selector: labels.Everything(), Allowed: d.allow}}
	}}
}

// victimsOf are the tasks on nodes.
func (d *drawn) victimsOf(state *model.State) []model.Victim {
	var all []model.Victim
	for _, key := range d.keys {
		job := state.Job(key)
		for _, task := range job.Tasks {
			if task.Status.HoldsNode() {
				all = append(all, model.Victim{Task: task, Job: job})
			}
		}
	}
	return all
}

func (d *drawn) has(plugin string, s config.Switch) bool {
	return slices.ContainsFunc(d.args.Tiers, func(tier config.Tier) bool {
		return slices.ContainsFunc(tier.Plugins, func(p config.TierPlugin) bool { return p.Name == plugin && (s == "" || p.Enabled(s)) })
	})
}

// inTree reports whether the tree of queues is looked at, divided whether queues are due anything.
func (d *drawn) inTree() bool  { return d.has(config.PluginCapacity, config.EnableHierarchy) }
func (d *drawn) divided() bool { return !d.has(config.PluginDRF, config.EnableHierarchy) }
