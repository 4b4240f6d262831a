// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// volcanoGroup reads a Volcano PodGroup.
func volcanoGroup(g *volcano.PodGroup) *model.Group {
	group := &model.Group{
		UID:           g.UID,
		Queue:         cmp.Or(g.Spec.Queue, g.Annotations[model.QueueAnnotation]),
		MinMember:     int(g.Spec.MinMember),
		PriorityClass: g.Spec.PriorityClassName,
		Created:       g.CreationTimestamp.Time,
		Phase:         model.Phase(g.Status.Phase),
		Object:        g,
	}
	for i := range g.Status.Conditions {
		c := &g.Status.Conditions[i]
		if c.Type == volcano.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue {
			switch kind := model.ReasonKind(c.Reason); kind {
			case model.NotEnoughResources, model.NotAdmitted, model.QueueFull, model.RoomReserved:
				group.WithoutRoom, group.Held = c.LastTransitionTime.Time, kind == model.RoomReserved
			}
		}
		if c.Type == volcano.PodGroupScheduled {
			group.Start = model.ParseStart(c.Message)
			if c.Message == "" && c.Status == corev1.ConditionTrue {
				// Volcano says that it was whole, not with how many.
				group.Start.Tasks = max(1, group.MinMember)
			}
		}
	}
	group.WaitingTime, group.Problem = waitingTime(g.Annotations)
	readTerms(group, "PodGroup "+volcanoKey(g).String(), g.Annotations)
	if len(g.Spec.MinTaskMember) > 0 {
		group.MinTaskMember = make(map[string]int, len(g.Spec.MinTaskMember))
		for role, least := range g.Spec.MinTaskMember {
			group.MinTaskMember[role] = int(least)
		}
	}
	var problem string
	group.Topology, problem = networkTopology("spec.networkTopology", g.Spec.NetworkTopology)
	group.Problem = model.Problems(group.Problem, problem)
	group.SubGroups, problem = subGroups(g)
	group.Problem = model.Problems(group.Problem, problem)
	if g.Spec.MinResources != nil {
		group.MinResources = resource.Schedulable(*g.Spec.MinResources).AtMost(resource.MostOfGroup)
		group.MinQuota = resource.FromList(*g.Spec.MinResources).AtMost(resource.MostOfGroup)
	}
	return group
}

// networkTopology reads inside of which HyperNodes a gang is to be, and what is wrong with that. A gang that does not say how far
// it may spread is kept as near as there is room.
func networkTopology(field string, spec *volcano.NetworkTopologySpec) (t *model.NetworkTopology, problem string) {
	if spec == nil {
		return nil, ""
	}
	t = &model.NetworkTopology{Field: field, Hard: spec.Mode != volcano.SoftNetworkTopologyMode, TierName: spec.HighestTierName}
	switch {
	case t.Hard && spec.HighestTierAllowed == nil && t.TierName == "":
		t.Hard = false
		problem = field + " is hard and says no tier: set highestTierAllowed or highestTierName; mode soft is used until then"
	case spec.HighestTierAllowed != nil && t.TierName != "":
		t.TierName = ""
		problem = fmt.Sprintf("%s has both highestTierAllowed and highestTierName: remove one; highestTierAllowed %d is used until then",
			field, *spec.HighestTierAllowed)
	}
	if spec.HighestTierAllowed != nil {
		t.HighestTier = *spec.HighestTierAllowed
	}
	return t, problem
}

// coschedulingGroup reads a PodGroup of scheduler-plugins. It names its queue as a pod without a group does, by
// annotation.
func coschedulingGroup(g *coscheduling.PodGroup) *model.Group {
	group := &model.Group{
		UID:       g.UID,
		Queue:     g.Annotations[model.QueueAnnotation],
		MinMember: int(g.Spec.MinMember),
		Created:   g.CreationTimestamp.Time,
		Object:    g,
	}
	readTerms(group, "PodGroup "+coschedulingKey(g).String(), g.Annotations)
	if g.Spec.MinResources != nil {
		group.MinResources = resource.Schedulable(g.Spec.MinResources).AtMost(resource.MostOfGroup)
		group.MinQuota = resource.FromList(g.Spec.MinResources).AtMost(resource.MostOfGroup)
	}
	return group
}

// volcanoQueue reads a Volcano Queue.
func volcanoQueue(q *volcano.Queue) *model.Queue {
	queue := &model.Queue{
		Name:        q.Name,
		UID:         q.UID,
		Parent:      q.Spec.Parent,
		State:       model.QueueState(q.Status.State),
		Created:     q.CreationTimestamp.Time,
		Weight:      max(q.Spec.Weight, 1),
		Priority:    q.Spec.Priority,
		Reclaimable: q.Spec.Reclaimable == nil || *q.Spec.Reclaimable,
		Capability:  resource.Schedulable(q.Spec.Capability),
		Guarantee:   resource.Schedulable(q.Spec.Guarantee.Resource),
		Deserved:    resource.Schedulable(q.Spec.Deserved),
		Object:      q,
	}
	queue.Hierarchy, queue.HierarchyWeights, queue.Problem = hierarchy(q.Annotations)
	queue.NodeGroups = nodeGroups(q.Spec.Affinity)
	var err error
	if queue.GroupLimits, err = model.GroupLimitsOf(q.Annotations); err != nil {
		queue.Problem = model.Problems(queue.Problem, err.Error())
	}
	if said, ok := q.Annotations[model.MinRuntimeAnnotation]; ok {
		if least, err := time.ParseDuration(said); err == nil && least >= 0 {
			queue.MinRuntime = model.Say(least)
		} else {
			queue.Problem = model.Problems(queue.Problem, fmt.Sprintf("annotation %s is %.100q: write a duration of at least 0s, such as 30m; until then the queue says none",
				model.MinRuntimeAnnotation, said))
		}
	}
	if queue.Recent, err = model.RecentOf(q.Annotations); err != nil {
		queue.Problem = model.Problems(queue.Problem, err.Error())
	}
	if queue.Reservation, err = model.ReservationOf(q.Annotations); err != nil {
		queue.Problem = model.Problems(queue.Problem, err.Error())
	}
	switch q.Spec.DequeueStrategy {
	case volcano.DequeueStrategyFIFO:
		queue.FIFO = true
	case "", volcano.DequeueStrategyTraverse:
	default:
		queue.Problem = model.Problems(queue.Problem, fmt.Sprintf("spec.dequeueStrategy is %q: use %s or %s; the latter is used until then",
			q.Spec.DequeueStrategy, volcano.DequeueStrategyFIFO, volcano.DequeueStrategyTraverse))
	}
	if q.Spec.Weight < 0 {
		queue.Problem = model.Problems(queue.Problem, fmt.Sprintf("spec.weight is %d: set it to 1 or more; 1 is used until then", q.Spec.Weight))
	}
	return queue
}

// nodeGroups reads the groups of nodes that a queue names; nil when it has no affinity.
func nodeGroups(a *volcano.Affinity) *model.NodeGroups {
	if a == nil {
		return nil
	}
	groups := &model.NodeGroups{}
	if to := a.NodeGroupAffinity; to != nil {
		groups.Required, groups.Preferred = to.RequiredDuringSchedulingIgnoredDuringExecution, to.PreferredDuringSchedulingIgnoredDuringExecution
	}
	if from := a.NodeGroupAntiAffinity; from != nil {
		groups.AntiRequired, groups.AntiPreferred = from.RequiredDuringSchedulingIgnoredDuringExecution, from.PreferredDuringSchedulingIgnoredDuringExecution
	}
	return groups
}

// resourceQuota reads a ResourceQuota.
func resourceQuota(q *corev1.ResourceQuota) *model.Quota {
	return &model.Quota{
		Namespace: q.Namespace, Name: q.Name,
		Hard: resource.FromList(q.Status.Hard), Used: resource.FromList(q.Status.Used),
	}
}

// disruptionBudget reads a PodDisruptionBudget. A selector that cannot be read, which the API server does not let in,
// matches nothing, as for the server's own eviction handler.
func disruptionBudget(b *policyv1.PodDisruptionBudget) *model.DisruptionBudget {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		selector = labels.Nothing()
	}
	disrupted := make(map[string]bool, len(b.Status.DisruptedPods))
	for pod := range b.Status.DisruptedPods {
		disrupted[pod] = true
	}
	return &model.DisruptionBudget{
		Namespace: b.Namespace, Name: b.Name, Selector: selector, Allowed: b.Status.DisruptionsAllowed, Disrupted: disrupted,
	}
}

func keyOf(source model.Source, o metav1.Object) model.JobKey {
	return model.JobKey{Source: source, Namespace: o.GetNamespace(), Name: o.GetName()}
}

func volcanoKey(g *volcano.PodGroup) model.JobKey { return keyOf(model.FromVolcano, g) }

func coschedulingKey(g *coscheduling.PodGroup) model.JobKey { return keyOf(model.FromCoscheduling, g) }
