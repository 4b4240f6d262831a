// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"cmp"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/resource"
	"github.com/caldera-scheduler/caldera/pkg/status"
)

// place is a job that waits, and where.
type place struct {
	dispatch.Waiting
	v1alpha1.Position
}

func (v *Views) makeJobs(now time.Time) []v1alpha1.JobView {
	waiting := map[model.JobKey]place{}
	lines := v.source.Dispatch.Lines()
	for i, line := range lines {
		for j, w := range line.Jobs {
			waiting[w.Job] = place{w, v1alpha1.Position{
				InQueue: int32(j + 1), OfQueue: int32(len(line.Jobs)), Queue: int32(i + 1), OfQueues: int32(len(lines)),
			}}
		}
	}
	var views []v1alpha1.JobView
	for job := range v.source.State.Jobs {
		p, waits := waiting[job.Key]
		view := jobView(job, p.Reason)
		view.Status.AsOf = metav1.NewTime(now)
		if waits {
			waits := &view.Status
			waits.Waiting, waits.WaitingSince, waits.Position, waits.Refused = true, new(waitingSince(job)), &p.Position, int32(p.Refused)
		}
		views = append(views, view)
	}
	slices.SortFunc(views, compareJobs)
	return views
}

// compareJobs is the order of jobs, by namespace and name.
func compareJobs(a, b v1alpha1.JobView) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// jobView is a job that waits for a reason; zero if it has none.
func jobView(job *model.Job, reason model.Reason) v1alpha1.JobView {
	view := v1alpha1.JobView{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Key.Namespace, Name: NameOf(job.Key), UID: job.UID, CreationTimestamp: metav1.NewTime(job.Created)},
		Status: v1alpha1.JobViewStatus{
			Object: objectOf(job), Queue: job.Queue, Priority: job.Priority, Phase: v1alpha1.JobPhase(status.Phase(job, reason)),
			MinMember: int32(max(0, job.Min())), Pods: podsOf(job), Held: job.Usage.Allocated.List(), Reason: reasonOf(reason),
		},
	}
	if object := objectMeta(job); object != nil {
		view.Labels = maps.Clone(object.GetLabels())
	}
	var missing resource.Vector
	for _, t := range job.Tasks {
		if t.Status == model.Pending && t.Nominated == "" {
			missing.Add(t.Charge)
		}
	}
	view.Status.Missing = missing.List()
	return view
}

// objectMeta is that of what makes the job; nil if it is not there.
func objectMeta(job *model.Job) metav1.Object {
	if job.Key.Source == model.FromPod {
		for _, t := range job.Tasks {
			return t.Pod
		}
		return nil
	}
	if job.Group == nil {
		return nil
	}
	object, _ := job.Group.Object.(metav1.Object)
	return object
}

// waitingSince is when the oldest pod was created that has no node. A job without such pods waits since it was created itself.
func waitingSince(job *model.Job) metav1.Time {
	var since time.Time
	for _, t := range job.Tasks {
		if t.Status == model.Pending && (since.IsZero() || t.Created.Before(since)) {
			since = t.Created
		}
	}
	if since.IsZero() {
		since = job.Created
	}
	return metav1.NewTime(since)
}

func podsOf(job *model.Job) v1alpha1.JobPods {
	n := func(statuses ...model.Status) int32 {
		sum := 0
		for _, s := range statuses {
			sum += job.Counts.ByStatus[s]
		}
		return int32(sum)
	}
	return v1alpha1.JobPods{
		Total: int32(job.Counts.Total()), Pending: n(model.Pending), Gated: int32(job.Counts.PendingGated), Bound: n(model.Allocated, model.Bound),
		Running: n(model.Running), Succeeded: n(model.Succeeded), Failed: n(model.Failed, model.Unknown), Terminating: n(model.Releasing),
	}
}

// reasonOf is nil for none.
func reasonOf(r model.Reason) *v1alpha1.Reason {
	if r == (model.Reason{}) {
		return nil
	}
	return &v1alpha1.Reason{Type: string(r.Kind), Message: r.Text(), FromNodes: r.FromNodes}
}
