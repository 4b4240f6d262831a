// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Departure is what a holder waits for: a job for which room is reserved (model.Task.Reserved).
type Departure struct {
	// Pods are the leavers, Fillers those that use the room meanwhile. Both are by UID, with the nodes that they are on.
	Pods, Fillers map[types.UID]string
	// Until is when all of them are expected to be gone.
	Until time.Time
}

// from calls leave with each of the pods and its node.
func (d *Departure) from(leave func(uid types.UID, node string)) {
	for _, pods := range []map[types.UID]string{d.Pods, d.Fillers} {
		for uid, node := range pods {
			leave(uid, node)
		}
	}
}

// leavingBeside are the pods that other holders than a job wait for, with their nodes.
func leavingBeside(departures map[model.JobKey]Departure, job model.JobKey) map[types.UID]string {
	all := map[types.UID]string{}
	for key, d := range departures {
		if key != job {
			d.from(func(uid types.UID, node string) { all[uid] = node })
		}
	}
	return all
}

// Room that is reserved on a node, and the pods that are to leave it, are never held at the same time. Of what is idle only that is kept which the
// holder does not get from them:
//
//	kept = max over holders i, by when they start, of (sum of reserved(1..i) - sum of leaving(1..i)), at least 0
//
// So whoever fits beside the pods that are there now, and beside the holders once those pods have left, is not refused.

// pledge is the room of one holder on one node. The pods that are leaving go before it starts.
type pledge struct {
	job     model.JobKey
	until   time.Time
	tasks   []*model.Task
	leaving []types.UID
}

// pledges are those of the holders among the rooms, by node and in the order in which they start. What only sums of amounts decide is pledged: where
// more does, leaving pods may not leave what the holder needs.
func pledges(rooms []Placement, departures map[model.JobKey]Departure) map[string][]*pledge {
	var all map[string][]*pledge
	for _, r := range rooms {
		d, waits := departures[r.Task.Job]
		if !waits || !r.Task.Reserved || !byAmounts(r.Task) {
			continue
		}
		if all == nil {
			all = map[string][]*pledge{}
		}
		i := slices.IndexFunc(all[r.Node], func(p *pledge) bool { return p.job == r.Task.Job })
		if i < 0 {
			i = len(all[r.Node])
			all[r.Node] = append(all[r.Node], &pledge{job: r.Task.Job, until: d.Until})
		}
		p := all[r.Node][i]
		p.tasks = append(p.tasks, r.Task)
	}
	for node, list := range all {
		for _, p := range list {
			d := departures[p.job]
			d.from(func(uid types.UID, on string) {
				if on == node {
					p.leaving = append(p.leaving, uid)
				}
			})
		}
		slices.SortFunc(list, func(a, b *pledge) int { return cmp.Or(a.until.Compare(b.until), a.job.Compare(b.job)) })
	}
	return all
}

// byAmounts reports whether a node that has the amounts which a task asks for takes it, as far as the pods on it go. Cards and NUMA nodes may
// have them in pieces.
func byAmounts(t *model.Task) bool {
	return t.Traits == 0 && t.Pod.Annotations[model.NUMAPolicyAnnotation] == "" &&
		!slices.ContainsFunc(t.Request, func(a resource.Amount) bool { return strings.HasPrefix(string(a.Name), cards) })
}

// cards is how the names of resources begin that are parts of cards.
const cards = "volcano.sh/"

// keptFor is how much of what is idle on a node is kept for the pledges.
func keptFor(pledges []*pledge, node fwk.NodeInfo) resource.Vector {
	var sum, most resource.Vector
	seen := map[types.UID]bool{}
	for _, p := range pledges {
		for _, t := range p.tasks {
			sum.Add(t.Request)
		}
		for _, uid := range p.leaving {
			if info := podOn(node, uid); info != nil && !seen[uid] {
				seen[uid] = true
				sum.Sub(resource.OfPod(info.GetPod()))
			}
		}
		most.Max(sum)
	}
	return most
}

// reduced are the tasks of pledges with as much of their requests as is kept, in order.
func reduced(pledges []*pledge, left resource.Vector) map[types.UID]*corev1.Pod {
	pods := map[types.UID]*corev1.Pod{}
	for _, p := range pledges {
		for _, t := range p.tasks {
			part := t.Request.Clone()
			for i, a := range part {
				part[i].Value = max(0, min(a.Value, left.Get(a.Name)))
			}
			left.Sub(part)
			pods[t.UID] = standingFor(t.Pod, part)
		}
	}
	return pods
}

// standingFor is a copy of a pod that asks for other amounts. It has the same ports: also those of sidecars, which are init containers.
func standingFor(pod *corev1.Pod, amounts resource.Vector) *corev1.Pod {
	other := *pod
	var ports []corev1.ContainerPort
	for i := range pod.Spec.Containers {
		ports = append(ports, pod.Spec.Containers[i].Ports...)
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			ports = append(ports, c.Ports...)
		}
	}
	other.Spec.Containers = []corev1.Container{{Name: "kept", Ports: ports, Resources: corev1.ResourceRequirements{Requests: amounts.List()}}}
	other.Spec.InitContainers, other.Spec.Overhead, other.Spec.Resources = nil, nil, nil
	return &other
}

// reduce returns the pods that stand for reserved room on the overlay, by the UID of the task, where these are not the tasks' own.
func (a *attempt) reduce(rooms []Placement, departures map[model.JobKey]Departure) map[types.UID]*corev1.Pod {
	pods := map[types.UID]*corev1.Pod{}
	for node, list := range pledges(rooms, departures) {
		if i := a.overlay.index(node); i >= 0 {
			maps.Copy(pods, reduced(list, keptFor(list, a.overlay.at(i))))
		}
	}
	return pods
}
