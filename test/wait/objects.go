// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

const (
	// others and tenants are the namespaces of probes and fillers, and of hopeless work.
	others  = "default"
	tenants = "tenants"

	// roleLabel says what a pod is, for the measurement only.
	roleLabel    = "wait.caldera.dev/role"
	roleFiller   = "filler"
	roleProbe    = "probe"
	roleHopeless = "hopeless"
	// groupLabel names the probe a pod is of.
	groupLabel = "wait.caldera.dev/group"

	// poolLabel says which nodes a node belongs to.
	poolLabel = "wait.caldera.dev/pool"
	poolFull  = "full"
	poolKept  = "kept"
	poolRoom  = "room"
	poolSpare = "spare"
	// spareTaint keeps all but the work that waits for them from spare nodes, idleTaint everybody until their turn.
	spareTaint = "wait.caldera.dev/spare"
	idleTaint  = "wait.caldera.dev/idle"

	// fillerMillicores is less than anybody else asks for: what one of them leaves is of use only to the next.
	fillerMillicores = 900
	// roomCores is the size of a node with room, sitterCores what is taken of it for good.
	roomCores, sitterCores = 8, roomCores - coresFree

	priorityHigh, prioritySitter = "wait-high", "wait-sitter"
	// batchName is the name by which pods ask for the batch profile.
	batchName = "volcano"
)

func jobName(number int) string { return fmt.Sprintf("job-%05d", number) }

func podName(job string, i int) string { return fmt.Sprintf("%s-%d", job, i) }

// nodeName is that of the local cluster's nodes.
func nodeName(pool string, i int) string { return fmt.Sprintf("%s-%04d", pool, i) }

// nodeShapes describes the nodes in the form of the local cluster's --node.
func nodeShapes(s scenario, k kind) []string {
	shape := func(pool string, n int, millicores int64) string {
		return fmt.Sprintf("name=%s,count=%d,cpu=%dm,memory=64Gi,%s=1000,label:%s=%s,label:%s=%s", pool, n, millicores, licence, poolLabel, pool, corev1.LabelTopologyZone, pool)
	}
	full := int64(s.Fill) * fillerMillicores
	shapes := []string{shape(poolFull, s.fullNodes(), full), shape(poolKept, s.keptNodes(), full), shape(poolRoom, s.roomNodes(), roomCores*1000)}
	if n := s.turns(k); n > 0 {
		shapes = append(shapes, fmt.Sprintf("%s,taint:%s=:NoSchedule,taint:%s=:NoSchedule", shape(poolSpare, n, k.spareCores(s)), spareTaint, idleTaint))
	}
	return shapes
}

// priorityClasses are those that pods of this command name.
func priorityClasses() []runtime.Object {
	class := func(name string, value int32) runtime.Object {
		return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	}
	return []runtime.Object{class(priorityHigh, 1000), class(prioritySitter, 100_000)}
}

// newPod builds a pod as the contender is given it.
func newPod(c contender, namespace, name, role string, millicores int64) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{roleLabel: role}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "work", Image: "registry.k8s.io/pause:3.10",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU: *resource.NewMilliQuantity(millicores, resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("64Mi"),
				}},
			}},
		},
	}
	if c.batch {
		p.Spec.SchedulerName = batchName
	}
	return p
}

// sitter holds a part of a node, and its port, for good.
func sitter(c contender, node string, millicores int64) *corev1.Pod {
	p := newPod(c, others, "sitter-"+node, "sitter", millicores)
	p.Spec.NodeName, p.Spec.PriorityClassName = node, prioritySitter
	takePort(p)
	return p
}

// sitters are the pods that never end: on nodes that stay full, and on nodes with room, which they leave half of.
func sitters(c contender, s scenario) []runtime.Object {
	var list []runtime.Object
	for i := range s.keptNodes() {
		list = append(list, sitter(c, nodeName(poolKept, i), int64(s.Fill)*fillerMillicores))
	}
	for i := range s.roomNodes() {
		list = append(list, sitter(c, nodeName(poolRoom, i), sitterCores*1000))
	}
	return list
}

// filler is a pod of others that holds a part of a full node.
func filler(c contender, number int) *corev1.Pod {
	p := newPod(c, others, fmt.Sprintf("filler-%06d", number), roleFiller, fillerMillicores)
	p.Spec.NodeSelector = map[string]string{poolLabel: poolFull}
	return p
}

// group builds the PodGroup of a gang.
func group(namespace, name, queue string, minMember int32) *volcano.PodGroup {
	return &volcano.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: volcano.PodGroupSpec{MinMember: minMember, Queue: queue},
	}
}

// probe builds the objects of a probe, the PodGroup first if it has one.
func probe(c contender, name string, size int) (*volcano.PodGroup, []*corev1.Pod) {
	var g *volcano.PodGroup
	if c.batch && size > 1 {
		g = group(others, name, "", int32(size))
	}
	pods := make([]*corev1.Pod, size)
	for i := range pods {
		pods[i] = newPod(c, others, podName(name, i), roleProbe, 1000)
		pods[i].Labels[groupLabel] = name
		if g != nil {
			pods[i].Annotations[model.GroupNameAnnotation] = name
		}
	}
	return g, pods
}

// hopeless builds the objects of a hopeless job, in the order in which they are made.
func hopeless(c contender, s scenario, k kind, number int) []runtime.Object {
	name := jobName(number)
	var list []runtime.Object
	if c.batch && k.minMember > 0 && !k.noGroup {
		list = append(list, group(tenants, name, k.queue, k.minMember))
	}
	for i := range k.pods() {
		p := newPod(c, tenants, podName(name, i), roleHopeless, k.request(s, number))
		// Each is a Job of its own by its labels, as pods of Jobs are.
		p.Labels["job-name"], p.Labels["batch.kubernetes.io/job-name"] = p.Name, p.Name
		if k.turns {
			p.Spec.Tolerations = []corev1.Toleration{{Key: spareTaint, Operator: corev1.TolerationOpExists}}
		}
		if k.spoil != nil {
			k.spoil(p)
		}
		if c.batch && k.minMember > 0 {
			p.Annotations[model.GroupNameAnnotation] = name
		}
		if k.own != nil {
			list = append(list, k.own(p.Name)...)
		}
		list = append(list, p)
	}
	return list
}

// claimOf builds the claim of a pod that has it by a template.
func claimOf(pod *corev1.Pod) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod")),
		}},
		Spec: claimSpec(),
	}
}
