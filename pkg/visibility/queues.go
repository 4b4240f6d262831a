// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Missing is the state of a queue that jobs name and that does not exist.
const Missing = "Missing"

func (v *Views) makeQueues(now time.Time) []v1alpha1.QueueView {
	holders := v.holders()
	byName := map[string]*v1alpha1.QueueView{}
	for _, q := range v.source.Dispatch.Figures() {
		view := queueView(q)
		view.Status.AsOf = metav1.NewTime(now)
		view.Status.ReservedFor = holders[q.Name]
		byName[q.Name] = view
	}
	waiting := map[model.JobKey]string{}
	for _, w := range v.source.Dispatch.Waiting() {
		waiting[w.Job] = w.Queue
	}
	for job := range v.source.State.Jobs {
		queue, waits := waiting[job.Key]
		if !waits {
			continue
		}
		since := waitingSince(job)
		for view := range upwards(byName, queue) {
			view.Status.Waiting++
			if s := &view.Status.WaitingSince; *s == nil || since.Before(*s) {
				*s = &since
			}
		}
	}
	views := make([]v1alpha1.QueueView, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		views = append(views, *byName[name])
	}
	return views
}

// upwards calls yield for a queue and all above it. Queues that are above each other are not gone through twice.
func upwards(byName map[string]*v1alpha1.QueueView, name string) func(yield func(*v1alpha1.QueueView) bool) {
	return func(yield func(*v1alpha1.QueueView) bool) {
		for range byName {
			view := byName[name]
			if view == nil || !yield(view) {
				return
			}
			name = view.Status.Parent
		}
	}
}

func queueView(q dispatch.QueueFigures) *v1alpha1.QueueView {
	view := &v1alpha1.QueueView{
		ObjectMeta: metav1.ObjectMeta{Name: q.Name},
		Status: v1alpha1.QueueViewStatus{
			Parent: q.Parent, State: Missing, Held: q.Total.Allocated.List(), Due: q.Deserved.List(), Limit: bounds(q.Real), LimitOfOthers: ofOthers[q.Real.Unnamed],
			Overused: q.Overused, Jobs: groups(q.Groups), Fault: reasonOf(q.Fault),
		},
	}
	if q.Spec != nil {
		view.UID, view.CreationTimestamp = q.Spec.UID, metav1.NewTime(q.Spec.Created)
		view.Status.State = string(cmp.Or(q.Spec.State, model.QueueOpen))
		view.Status.Weight, view.Status.Guarantee = q.Spec.Weight, q.Spec.Guarantee.List()
		if object, ok := q.Spec.Object.(metav1.Object); ok {
			view.Labels = maps.Clone(object.GetLabels())
		}
	}
	return view
}

// ofOthers is what a queue may hold of resources that its limit does not name.
var ofOthers = map[resource.Unnamed]v1alpha1.LimitOfOthers{
	resource.Nothing: v1alpha1.NothingElse, resource.OnlyDevices: v1alpha1.OnlyDevices,
}

// bounds are the amounts that a limit names, those of zero among them.
func bounds(l resource.Limit) corev1.ResourceList {
	list := l.Amounts.List()
	for _, a := range l.Amounts {
		if _, ok := list[a.Name]; !ok {
			list[a.Name] = *apiresource.NewQuantity(0, apiresource.DecimalSI)
		}
	}
	return list
}

func groups(g account.Groups) v1alpha1.QueueJobs {
	return v1alpha1.QueueJobs{
		Pending: int32(g.Pending), Inqueue: int32(g.Inqueue), Running: int32(g.Running), Unknown: int32(g.Unknown), Completed: int32(g.Completed),
	}
}

// holders are the jobs for which room is reserved, by queue.
func (v *Views) holders() map[string]*v1alpha1.JobReference {
	reserved, _ := v.source.Dispatch.Reservations()
	if len(reserved) == 0 {
		return nil
	}
	queues := make(map[types.UID]string, len(reserved))
	for queue, r := range reserved {
		queues[r.UID] = queue
	}
	holders := make(map[string]*v1alpha1.JobReference, len(reserved))
	for job := range v.source.State.Jobs {
		if queue, holds := queues[job.UID]; holds {
			holders[queue] = new(jobReference(job.Key, job.Queue))
		}
	}
	return holders
}

// jobReference names a job.
func jobReference(key model.JobKey, queue string) v1alpha1.JobReference {
	kind := "PodGroup"
	switch key.Source {
	case model.FromPod:
		kind = "Pod"
	case model.FromOwner:
		kind = "Gang"
	}
	return v1alpha1.JobReference{Kind: kind, Namespace: key.Namespace, Name: key.Name, Queue: queue}
}

// LocalQueues returns the queues that have jobs of a namespace, and those above them; those of each namespace if it is empty. What they are told of
// the queues does not depend on the namespace.
func (v *Views) LocalQueues(namespace string) []v1alpha1.LocalQueueView {
	queues := v.Queues()
	byName := make(map[string]*v1alpha1.QueueView, len(queues))
	for i := range queues {
		byName[queues[i].Name] = &queues[i]
	}
	type place struct{ namespace, queue string }
	local := map[place]bool{}
	jobs := v.Jobs()
	for i := range jobs {
		in := jobs[i].Namespace
		if namespace != "" && in != namespace || local[place{in, jobs[i].Status.Queue}] {
			continue
		}
		for view := range upwards(byName, jobs[i].Status.Queue) {
			local[place{in, view.Name}] = true
		}
	}
	places := slices.SortedFunc(maps.Keys(local), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.queue, b.queue))
	})
	views := make([]v1alpha1.LocalQueueView, 0, len(places))
	for _, p := range places {
		view := v1alpha1.LocalQueueView{ObjectMeta: byName[p.queue].ObjectMeta, Status: byName[p.queue].Status}
		view.Namespace = p.namespace
		if r := view.Status.ReservedFor; r != nil && r.Namespace != p.namespace {
			view.Status.ReservedFor = nil
		}
		views = append(views, view)
	}
	return views
}
