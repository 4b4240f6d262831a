// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/preemption/rebalance"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// now is when all tests play: at noon.
var now = time.Date(2026, time.August, 15, 12, 0, 0, 0, time.UTC)

// world is a cluster.
type world struct {
	state *model.State
	// loads are those of the nodes that are known.
	loads map[string]arguments.Utilization
}

func newWorld() *world {
	w := &world{state: model.NewState(), loads: map[string]arguments.Utilization{}}
	w.state.AddScheduler("volcano")
	return w
}

// node adds a node of 10 cores and 10 GiB.
func (w *world) node(name string, change ...func(*corev1.Node)) *world {
	amounts := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10"), corev1.ResourceMemory: resource.MustParse("10Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}, Status: corev1.NodeStatus{Capacity: amounts, Allocatable: amounts}}
	for _, c := range change {
		c(n)
	}
	w.state.UpsertNode(n)
	return w
}

// loaded adds a node of which so many percent of the cores and of the memory are in use.
func (w *world) loaded(name string, cpu, memory float64, change ...func(*corev1.Node)) *world {
	w.loads[name] = arguments.Utilization{CPU: cpu, Memory: memory}
	return w.node(name, change...)
}

// pods adds pods that run on a node as a job of their own, are called by the job's name and a number, and ask for a core
// and a gibibyte. A ReplicaSet creates them again.
func (w *world) pods(job, node string, least, count int, change ...func(*corev1.Pod)) *world {
	key := model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: job}
	group := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: job, Annotations: map[string]string{}}}
	w.state.UpsertGroup(key, &model.Group{MinMember: least, Object: group})
	for i := range count {
		name := fmt.Sprintf("%s-pod-%d", job, i)
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)), Labels: map[string]string{"job": job},
				Annotations:     map[string]string{model.GroupNameAnnotation: job},
				OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: job, Controller: new(true)}},
			},
			Spec: corev1.PodSpec{SchedulerName: "volcano", NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
			}}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning},
		}
		for _, c := range change {
			c(p)
		}
		w.state.UpsertPod(p)
	}
	return w
}

// says gives the PodGroup of a job an annotation.
func (w *world) says(job string, least int, key, value string) *world {
	group := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: job, Annotations: map[string]string{key: value}}}
	w.state.UpsertGroup(model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: job}, &model.Group{MinMember: least, Object: group})
	return w
}

// budget lets so many pods of a job be disrupted.
func (w *world) budget(job string, allowed int32) *world {
	w.state.UpsertBudget(&model.DisruptionBudget{
		Namespace: "ns", Name: job, Allowed: allowed, Selector: labels.SelectorFromSet(labels.Set{"job": job}),
	})
	return w
}

// nodes is what the action looks at.
func (w *world) nodes() []rebalance.Node {
	return rebalance.Survey(w.state.Nodes(), w.state.Snapshot(), func(n *corev1.Node) *arguments.Utilization {
		if load, known := w.loads[n.Name]; known {
			return &load
		}
		return nil
	})
}

// protection is the protection by plugins in a tier.
func (w *world) protection(plugins ...config.TierPlugin) *policy.Protection {
	set, err := policy.Compile(&config.BatchQueueArgs{Tiers: []config.Tier{{Plugins: plugins}}})
	if err != nil {
		panic(err)
	}
	for job := range w.state.Snapshot().Jobs {
		set.SetJob(job.Key, job)
	}
	set.Update()
	return set.Protection(policy.EvictionWorld{Now: now, Budgets: w.state.Budgets})
}

// guards are all plugins that protect.
func guards() []config.TierPlugin {
	return []config.TierPlugin{{Name: config.PluginGang}, {Name: config.PluginConformance}, {Name: config.PluginPDB}, {Name: config.PluginCDP}}
}

// names are the pods that are chosen, in order.
func names(chosen []rebalance.Choice) []string {
	var all []string
	for _, c := range chosen {
		all = append(all, c.Task.Pod.Name)
	}
	return all
}

// sorted are the same in the order of their names.
func sorted(chosen []rebalance.Choice) []string { return slices.Sorted(slices.Values(names(chosen))) }

func asking(cpu, memory string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
		}
	}
}

func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[key] = value }
}

func priority(n int32) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Priority = &n } }

func serving(class corev1.PodQOSClass) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.QOSClass = class }
}

func labelled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func tainted(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
}
