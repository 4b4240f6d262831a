// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package suspend

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	volcanobatch "volcano.sh/apis/pkg/apis/batch/v1alpha1"
)

// kind is one whose objects can be suspended.
type kind struct {
	schema.GroupKind
	// field is the switch; empty for Volcano's jobs, which are sent commands.
	field []string
	// refuses says why an object must not be suspended, and what to change; empty if it may be. Nil: all may be.
	refuses func(*unstructured.Unstructured) string
}

// The groups of the kinds.
const (
	kubeflow = "kubeflow.org"
	ray      = "ray.io"
)

var (
	inSpec      = []string{"spec", "suspend"}
	inRunPolicy = []string{"spec", "runPolicy", "suspend"}
)

// volcanoJob is Volcano's own job.
var volcanoJob = schema.GroupKind{Group: volcanobatch.GroupName, Kind: "Job"}

// kinds are those that are known. A CronJob is none: its switch stops the jobs that are yet to come.
var kinds = []kind{
	{GroupKind: schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}, field: inSpec},
	{GroupKind: volcanoJob},
	{GroupKind: schema.GroupKind{Group: "jobset.x-k8s.io", Kind: "JobSet"}, field: inSpec},
	{GroupKind: schema.GroupKind{Group: "trainer.kubeflow.org", Kind: "TrainJob"}, field: inSpec},
	{GroupKind: schema.GroupKind{Group: ray, Kind: "RayJob"}, field: inSpec, refuses: refusesRayJob},
	{GroupKind: schema.GroupKind{Group: ray, Kind: "RayCluster"}, field: inSpec},
	{GroupKind: schema.GroupKind{Group: kubeflow, Kind: "PyTorchJob"}, field: inRunPolicy},
	{GroupKind: schema.GroupKind{Group: kubeflow, Kind: "TFJob"}, field: inRunPolicy},
	{GroupKind: schema.GroupKind{Group: kubeflow, Kind: "MPIJob"}, field: inRunPolicy},
	{GroupKind: schema.GroupKind{Group: kubeflow, Kind: "XGBoostJob"}, field: inRunPolicy},
	{GroupKind: schema.GroupKind{Group: kubeflow, Kind: "PaddleJob"}, field: inRunPolicy},
	{GroupKind: schema.GroupKind{Group: kubeflow, Kind: "JAXJob"}, field: inRunPolicy},
}

// kindOf is the kind of an object; nil if it cannot be suspended.
func kindOf(o object) *kind {
	for i := range kinds {
		if kinds[i].GroupKind == o.GroupVersionKind().GroupKind() {
			return &kinds[i]
		}
	}
	return nil
}

// startsOthers reports whether an object only starts others at their times, and leaves them alone then.
func startsOthers(o object) bool {
	k := o.GroupVersionKind()
	return k.Kind == "CronJob" && (k.Group == batchv1.GroupName || k.Group == volcanobatch.GroupName)
}

// refusesRayJob: KubeRay takes such RayJobs for invalid, and fails them. Source: KubeRay 1.4 ray-operator/controllers/ray/utils/validation.go.
func refusesRayJob(o *unstructured.Unstructured) string {
	if ends, _, _ := unstructured.NestedBool(o.Object, "spec", "shutdownAfterJobFinishes"); !ends {
		return "KubeRay fails a RayJob that is suspended and has spec.shutdownAfterJobFinishes false: set it to true first"
	}
	if selector, _, _ := unstructured.NestedMap(o.Object, "spec", "clusterSelector"); len(selector) > 0 {
		return "KubeRay fails a RayJob that is suspended and has a spec.clusterSelector: it runs on a RayCluster that is there for others, too"
	}
	return ""
}

// advice says what to do with an object if neither it nor any of its owners can be suspended.
func advice(o object) string {
	k, named := o.GroupVersionKind(), o.String()
	switch k.Kind {
	case "Deployment", "ReplicaSet", "StatefulSet", "ReplicationController":
		return fmt.Sprintf("%s has no switch by which it is suspended: scale it to 0, by kubectl scale -n %s %s/%s --replicas=0",
			named, o.GetNamespace(), strings.ToLower(k.Kind), o.GetName())
	case "Pod":
		return named + " has no owner that could create it again: delete it, and create it again later"
	case "PodGroup":
		return named + " has no owner that can be suspended, and neither have its pods: delete them, and create them again later"
	}
	return fmt.Sprintf("%s is of no kind that is known to have a switch by which it is suspended: see whether %s describes one", named, k.GroupVersion())
}
