// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/visibility"
)

// resources are all that is served.
var resources = []*resource{
	{
		name: v1alpha1.JobViews, singular: "jobview", kind: "JobView", short: []string{"jv"}, namespaced: true,
		single: func() runtime.Object { return &v1alpha1.JobView{} }, list: func() runtime.Object { return &v1alpha1.JobViewList{} },
		all: func(v *visibility.Views, namespace string) []runtime.Object {
			return objects(v.Jobs(), func(o *v1alpha1.JobView) bool { return namespace == "" || o.Namespace == namespace })
		},
		one: func(v *visibility.Views, namespace, name string) runtime.Object {
			if job := v.Job(namespace, name); job != nil {
				return job
			}
			return nil
		},
		fields: func(object runtime.Object) fields.Set {
			o := object.(*v1alpha1.JobView)
			set := named(&o.ObjectMeta, "status.queue", o.Status.Queue, "status.phase", string(o.Status.Phase), "status.waiting", strconv.FormatBool(o.Status.Waiting))
			set["metadata.namespace"], set["status.object.name"], set["status.reason.type"] = o.Namespace, o.Status.Object.Name, ""
			if r := o.Status.Reason; r != nil {
				set["status.reason.type"] = r.Type
			}
			return set
		},
		columns: columns("Name", "Queue", "Phase", "Pods", "Waiting", "Reason", "Age"),
		cells: func(object runtime.Object, now time.Time) []any {
			o := object.(*v1alpha1.JobView)
			s, reason := &o.Status, ""
			if s.Reason != nil {
				reason = s.Reason.Type
			}
			placed := s.Pods.Bound + s.Pods.Running + s.Pods.Succeeded
			return []any{o.Name, s.Queue, string(s.Phase), fmt.Sprintf("%d/%d", placed, max(s.MinMember, s.Pods.Total)), since(s.WaitingSince, now), reason, since(&o.CreationTimestamp, now)}
		},
	},
	{
		name: v1alpha1.QueueViews, singular: "queueview", kind: "QueueView", short: []string{"qv"},
		single: func() runtime.Object { return &v1alpha1.QueueView{} }, list: func() runtime.Object { return &v1alpha1.QueueViewList{} },
		all: func(v *visibility.Views, _ string) []runtime.Object {
			return objects(v.Queues(), func(*v1alpha1.QueueView) bool { return true })
		},
		fields: func(object runtime.Object) fields.Set {
			o := object.(*v1alpha1.QueueView)
			return named(&o.ObjectMeta, "status.parent", o.Status.Parent, "status.state", o.Status.State)
		},
		columns: queueColumns,
		cells: func(object runtime.Object, now time.Time) []any {
			o := object.(*v1alpha1.QueueView)
			return queueCells(&o.ObjectMeta, &o.Status, now)
		},
	},
	{
		name: v1alpha1.LocalQueueViews, singular: "localqueueview", kind: "LocalQueueView", short: []string{"lqv"}, namespaced: true,
		single: func() runtime.Object { return &v1alpha1.LocalQueueView{} }, list: func() runtime.Object { return &v1alpha1.LocalQueueViewList{} },
		all: func(v *visibility.Views, namespace string) []runtime.Object {
			return objects(v.LocalQueues(namespace), func(*v1alpha1.LocalQueueView) bool { return true })
		},
		fields: func(object runtime.Object) fields.Set {
			o := object.(*v1alpha1.LocalQueueView)
			set := named(&o.ObjectMeta, "status.parent", o.Status.Parent, "status.state", o.Status.State)
			set["metadata.namespace"] = o.Namespace
			return set
		},
		columns: queueColumns,
		cells: func(object runtime.Object, now time.Time) []any {
			o := object.(*v1alpha1.LocalQueueView)
			return queueCells(&o.ObjectMeta, &o.Status, now)
		},
	},
	{
		name: v1alpha1.EvictionDecisions, singular: "evictiondecision", kind: "EvictionDecision", short: []string{"evd"}, namespaced: true,
		single: func() runtime.Object { return &v1alpha1.EvictionDecision{} },
		list:   func() runtime.Object { return &v1alpha1.EvictionDecisionList{} },
		all: func(v *visibility.Views, namespace string) []runtime.Object {
			return objects(v.Evictions(namespace), func(*v1alpha1.EvictionDecision) bool { return true })
		},
		fields: func(object runtime.Object) fields.Set {
			o := object.(*v1alpha1.EvictionDecision)
			set := named(&o.ObjectMeta, "status.action", o.Status.Action, "status.outcome", o.Status.Outcome)
			set["metadata.namespace"] = o.Namespace
			return set
		},
		columns: columns("Name", "Action", "For", "Victims", "Outcome", "Age"),
		cells: func(object runtime.Object, now time.Time) []any {
			o := object.(*v1alpha1.EvictionDecision)
			beneficiary := ""
			if job := o.Status.Job; job != nil {
				beneficiary = job.Namespace + "/" + job.Name
			}
			return []any{o.Name, o.Status.Action, beneficiary, int64(len(o.Status.Victims)) + int64(o.Status.OtherVictims), o.Status.Outcome, since(&o.CreationTimestamp, now)}
		},
	},
	{
		name: v1alpha1.ClusterViews, singular: "clusterview", kind: "ClusterView",
		single: func() runtime.Object { return &v1alpha1.ClusterView{} }, list: func() runtime.Object { return &v1alpha1.ClusterViewList{} },
		all: func(v *visibility.Views, _ string) []runtime.Object {
			return []runtime.Object{v.Cluster()}
		},
		fields:  func(object runtime.Object) fields.Set { return named(&object.(*v1alpha1.ClusterView).ObjectMeta) },
		columns: columns("Name", "Leader", "Nodes", "Waiting", "Left out"),
		cells: func(object runtime.Object, _ time.Time) []any {
			o := object.(*v1alpha1.ClusterView)
			return []any{o.Name, o.Status.Leader.Identity, int64(o.Status.Nodes), int64(o.Status.Waiting), int64(len(o.Status.LeftOut))}
		},
	},
	{
		name: v1alpha1.QueueHistories, singular: "queuehistory", kind: "QueueHistory", short: []string{"qh"},
		single: func() runtime.Object { return &v1alpha1.QueueHistory{} }, list: func() runtime.Object { return &v1alpha1.QueueHistoryList{} },
		all: func(v *visibility.Views, _ string) []runtime.Object {
			return objects(v.Histories(), func(*v1alpha1.QueueHistory) bool { return true })
		},
		fields: func(object runtime.Object) fields.Set {
			o := object.(*v1alpha1.QueueHistory)
			return named(&o.ObjectMeta, "status.parent", o.Status.Parent)
		},
		columns: columns("Name", "Parent", "Samples", "Oldest"),
		cells: func(object runtime.Object, now time.Time) []any {
			o := object.(*v1alpha1.QueueHistory)
			oldest := ""
			if len(o.Status.Samples) > 0 {
				oldest = since(&o.Status.Samples[0].Time, now)
			}
			return []any{o.Name, o.Status.Parent, int64(len(o.Status.Samples)), oldest}
		},
	},
}

// objects are the views that are kept.
func objects[T any, P interface {
	*T
	runtime.Object
}](views []T, keep func(P) bool) []runtime.Object {
	list := make([]runtime.Object, 0, len(views))
	for i := range views {
		if o := P(&views[i]); keep(o) {
			list = append(list, o)
		}
	}
	return list
}

// named is the name of a view, and more of its fields by name.
func named(m *metav1.ObjectMeta, pairs ...string) fields.Set {
	set := fields.Set{"metadata.name": m.Name}
	for i := 0; i+1 < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	return set
}

// columns are columns of these names. The first one has names of objects.
func columns(names ...string) []metav1.TableColumnDefinition {
	list := make([]metav1.TableColumnDefinition, len(names))
	for i, name := range names {
		list[i] = metav1.TableColumnDefinition{Name: name, Type: "string"}
	}
	list[0].Format = "name"
	return list
}

var queueColumns = columns("Name", "Parent", "State", "Waiting", "Oldest")

func queueCells(m *metav1.ObjectMeta, s *v1alpha1.QueueViewStatus, now time.Time) []any {
	return []any{m.Name, s.Parent, s.State, int64(s.Waiting), since(s.WaitingSince, now)}
}

// since is how long ago a time was; empty for none.
func since(t *metav1.Time, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return duration.HumanDuration(now.Sub(t.Time))
}
