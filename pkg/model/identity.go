// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Keys on pods that say which job a pod belongs to and what part it plays in it.
const (
	// GroupNameAnnotation names the pod's PodGroup (Volcano and kube-batch spelling).
	GroupNameAnnotation = "scheduling.k8s.io/group-name"
	// VolcanoGroupNameAnnotation is Volcano's own spelling; it is read when the other is absent.
	VolcanoGroupNameAnnotation = "scheduling.volcano.sh/group-name"
	// CoschedulingLabel names the pod's scheduling.x-k8s.io PodGroup (sigs.k8s.io/scheduler-plugins).
	CoschedulingLabel = "scheduling.x-k8s.io/pod-group"
	// MinMemberAnnotation on the controller of pods makes them a gang without a PodGroup, and says how many start together.
	MinMemberAnnotation = "scheduling.volcano.sh/group-min-member"
	// QueueAnnotation names the queue of jobs whose PodGroup has none: on the PodGroup, on a controller
	// that makes its pods a gang, on a pod, or on the namespace.
	QueueAnnotation = "scheduling.volcano.sh/queue-name"
	// RoleKey names the pod's role in its job; annotation first, then label.
	RoleKey = "volcano.sh/task-spec"
	// TaskPriorityAnnotation overrides the pod's priority within its job.
	TaskPriorityAnnotation = "volcano.sh/task-priority"
	// QueueGate is the scheduling gate that Volcano's scheduler opens when the queue has room for the pod.
	QueueGate = "scheduling.volcano.sh/queue-allocation-gate"
	// QueueAdmittedAnnotation is written, as "true", when that gate is taken off: as long as the pod waits for a node, its queue keeps for it
	// what it asks for. A scheduler that takes over reads it.
	QueueAdmittedAnnotation = "caldera.dev/queue-admitted"
	// DefaultQueue is the queue of jobs that name none.
	DefaultQueue = "default"
	// RootQueue is the parent of all queues.
	RootQueue = "root"
)

// Source tells which API a job comes from.
type Source uint8

// The sources of jobs.
const (
	// FromPod is a job of one: a pod without a group.
	FromPod Source = iota
	// FromVolcano is a scheduling.volcano.sh PodGroup.
	FromVolcano
	// FromCoscheduling is a scheduling.x-k8s.io PodGroup.
	FromCoscheduling
	// FromNative is Kubernetes' own, a scheduling.k8s.io PodGroup.
	FromNative
	// FromOwner is a controller that makes its pods a gang by MinMemberAnnotation.
	FromOwner
)

// JobKey identifies a job. For a job of one, Name is the pod's name.
type JobKey struct {
	Source    Source
	Namespace string
	Name      string
}

// String returns "namespace/name", Volcano's job ID.
func (k JobKey) String() string { return k.Namespace + "/" + k.Name }

// Compare orders keys by namespace, name and source.
func (k JobKey) Compare(other JobKey) int {
	return cmp.Or(cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name), cmp.Compare(k.Source, other.Source))
}

// JobByMarks returns the job a pod belongs to as far as the pod itself says so; a pod that says nothing is a job of one, unless its
// controller makes a gang of its pods, which State.JobOf knows. Of several marks the first counts: Kubernetes' own group; a group of Volcano's
// that somebody named; one of scheduler-plugins; the group of one that Volcano's controller makes for every pod without a group.
func JobByMarks(pod *corev1.Pod) JobKey {
	native, named := nativeGroupOf(pod), cmp.Or(pod.Annotations[GroupNameAnnotation], pod.Annotations[VolcanoGroupNameAnnotation])
	switch label := pod.Labels[CoschedulingLabel]; {
	case native != "":
		return JobKey{FromNative, pod.Namespace, native}
	case named != "" && (label == "" || !generated(pod, named)):
		return JobKey{FromVolcano, pod.Namespace, named}
	case label != "":
		return JobKey{FromCoscheduling, pod.Namespace, label}
	}
	return JobKey{FromPod, pod.Namespace, pod.Name}
}

// JobByOwner returns the job that a pod belongs to if its controller makes a gang of its pods; the zero key for a pod that says itself which
// group is its, and for one without a controller.
func JobByOwner(pod *corev1.Pod) JobKey {
	if JobByMarks(pod).Source != FromPod {
		return JobKey{}
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return OwnerKey(owner.Kind, pod.Namespace, owner.Name, owner.UID)
	}
	return JobKey{}
}

// OwnerKey is the key of the gang that a controller makes of its pods. One that takes the name of another has another key: the pods that the
// first one left are no members of the second one's gang.
func OwnerKey(kind, namespace, name string, uid types.UID) JobKey {
	const enough = 8
	return JobKey{FromOwner, namespace, strings.ToLower(kind) + "/" + name + "-" + string(uid[:min(enough, len(uid))])}
}

// jobAmong is the job that a pod belongs to where some jobs are known. As long as a gang by an owner is, all pods of the owner belong to it
// that name no other group.
func jobAmong(known func(JobKey) bool, pod *corev1.Pod) JobKey {
	key := JobByMarks(pod)
	if key.Source != FromPod {
		return key
	}
	if owner := JobByOwner(pod); owner != (JobKey{}) && known(owner) {
		return owner
	}
	return key
}

func nativeGroupOf(pod *corev1.Pod) string {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return *g.PodGroupName
	}
	return ""
}

// generated reports whether a group is one that Volcano's podgroup controller made for a pod, or for the pods of its owner, because they had
// none. Source: Volcano's pkg/controllers/podgroup, GeneratePodgroupName.
func generated(pod *corev1.Pod, group string) bool {
	uid, ok := strings.CutPrefix(group, "podgroup-")
	return ok && (uid == string(pod.UID) ||
		slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return uid == string(o.UID) }))
}

// NewTask reads a pod. The status is the one of Volcano's pod-to-task table (reference section 2.3).
func NewTask(pod *corev1.Pod) *Task {
	request := resource.OfPod(pod)
	var class, shape, ask Class
	if pod.Spec.NodeName == "" {
		class, shape, ask = classOf(pod)
	}
	priority, problem := priorityOf(pod)
	return &Task{
		UID:        pod.UID,
		Pod:        pod,
		index:      indexOf(pod.Name),
		Job:        JobByMarks(pod),
		Role:       RoleOf(pod),
		Class:      class,
		Shape:      shape,
		Ask:        ask,
		Request:    request,
		Charge:     request,
		Priority:   priority,
		Problem:    Problems(problem, misread(pod)),
		Status:     statusOf(pod),
		Node:       pod.Spec.NodeName,
		Traits:     traitsOf(pod),
		Gated:      len(pod.Spec.SchedulingGates) > 0,
		QueueGated: len(pod.Spec.SchedulingGates) == 1 && pod.Spec.SchedulingGates[0].Name == QueueGate,
		Claims:     len(pod.Spec.SchedulingGates) == 0 && pod.Annotations[QueueAdmittedAnnotation] == "true",
		BestEffort: request.BestEffort(),
		Created:    pod.CreationTimestamp.Time,
	}
}

// misread says what is wrong with those of the pod's annotations that do not order it; empty when nothing is.
func misread(pod *corev1.Pod) (problem string) {
	note := func(err error) {
		if err != nil {
			problem = Problems(problem, err.Error())
		}
	}
	_, err := ScoringOf(pod)
	note(err)
	if said, ok := pod.Annotations[ExpectedRuntimeAnnotation]; ok {
		_, err := ParseRuntime(said)
		note(err)
	}
	if said, ok := pod.Annotations[MovableAnnotation]; ok {
		_, err := ParseMovable(said)
		note(err)
	}
	return problem
}

// Problems lists what is wrong with one object; empty parts are left out.
func Problems(problems ...string) string {
	return strings.Join(slices.DeleteFunc(problems, func(p string) bool { return p == "" }), "; ")
}

func statusOf(pod *corev1.Pod) Status {
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return Succeeded
	case corev1.PodFailed:
		return Failed
	case corev1.PodUnknown:
		return Unknown
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return Releasing
	case pod.Spec.NodeName == "":
		return Pending
	case pod.Status.Phase == corev1.PodRunning:
		return Running
	}
	return Bound
}

// RoleOf returns the role of a pod in its job, empty when it has none.
func RoleOf(pod *corev1.Pod) string {
	if role := pod.Annotations[RoleKey]; role != "" {
		return role
	}
	return pod.Labels[RoleKey]
}

// priorityOf returns the task's priority, and what is wrong with the annotation that should say it.
func priorityOf(pod *corev1.Pod) (priority int32, problem string) {
	priority = 1
	if pod.Spec.Priority != nil {
		priority = *pod.Spec.Priority
	}
	said, ok := pod.Annotations[TaskPriorityAnnotation]
	if !ok {
		return priority, ""
	}
	n, err := strconv.ParseInt(said, 10, 32)
	if err != nil {
		return priority, fmt.Sprintf("annotation %s is %q: write a whole number of 32 bits; priority %d is used until then",
			TaskPriorityAnnotation, said, priority)
	}
	return int32(n), ""
}

func traitsOf(pod *corev1.Pod) Traits {
	var traits Traits
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			traits |= HasVolumes
		}
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		traits |= HasClaims
	}
	if a := pod.Spec.Affinity; len(pod.Spec.TopologySpreadConstraints) > 0 || a != nil && (a.PodAffinity != nil || a.PodAntiAffinity != nil) {
		traits |= HasPodTerms
	}
	return traits
}
