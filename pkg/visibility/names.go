// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// separator is between where a job comes from and its name. No object of a cluster has it in its name, and paths may hold it.
const separator = ":"

// NameOf is the name of the JobView of a job. No other job of its namespace has it.
func NameOf(key model.JobKey) string {
	switch key.Source {
	case model.FromPod:
		return "pod" + separator + key.Name
	case model.FromCoscheduling:
		return "coscheduling" + separator + key.Name
	case model.FromNative:
		return "native" + separator + key.Name
	case model.FromOwner:
		return strings.Replace(key.Name, "/", separator, 1)
	}
	return key.Name
}

// objectOf names what makes a job.
func objectOf(job *model.Job) v1alpha1.ObjectReference {
	switch job.Key.Source {
	case model.FromPod:
		return v1alpha1.ObjectReference{APIVersion: "v1", Kind: "Pod", Name: job.Key.Name}
	case model.FromCoscheduling:
		return v1alpha1.ObjectReference{APIVersion: "scheduling.x-k8s.io/v1alpha1", Kind: "PodGroup", Name: job.Key.Name}
	case model.FromNative:
		return v1alpha1.ObjectReference{APIVersion: "scheduling.k8s.io/v1beta1", Kind: "PodGroup", Name: job.Key.Name}
	case model.FromOwner:
		return ownerOf(job)
	}
	return v1alpha1.ObjectReference{APIVersion: volcano.SchemeGroupVersion.String(), Kind: "PodGroup", Name: job.Key.Name}
}

// ownerOf names the controller that makes a gang of its pods. One that is gone is known by its key only.
func ownerOf(job *model.Job) v1alpha1.ObjectReference {
	if job.Group != nil {
		switch o := job.Group.Object.(type) {
		case *appsv1.ReplicaSet:
			return v1alpha1.ObjectReference{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ReplicaSet", Name: o.Name}
		case *appsv1.StatefulSet:
			return v1alpha1.ObjectReference{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "StatefulSet", Name: o.Name}
		case *batchv1.Job:
			return v1alpha1.ObjectReference{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: o.Name}
		}
	}
	kind, name, _ := strings.Cut(job.Key.Name, "/")
	return v1alpha1.ObjectReference{Kind: kind, Name: name}
}
