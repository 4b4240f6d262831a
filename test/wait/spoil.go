// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/test/harm"
)

const (
	nowhereLabel = "wait.caldera.dev/nowhere"
	takenPort    = 9000
	deviceName   = "wait.caldera.dev"
	// licence is a resource that an extender looks after, of which all nodes have plenty.
	licence = "wait.caldera.dev/licence"
	// witnessName is that of a pod that nobody schedules, whose bindings are refused like those of hopeless jobs.
	witnessName = "job-witness"
)

// refusal refuses the bindings of the pods of hopeless jobs.
var refusal = harm.Refusal{Name: "wait-refuses", Subresource: "pods/binding", Names: "^job-", Try: harm.TryBinding}

// refusedBinds are the policy, and the witness by which is known when it is in force.
func refusedBinds() []runtime.Object {
	witness := newPod(contender{}, tenants, witnessName, "witness", 1000)
	witness.Spec.SchedulerName = "nobody"
	return []runtime.Object{refusal.Policy(), refusal.Binding(), witness}
}

func needLicence(p *corev1.Pod) {
	one := resource.MustParse("1")
	c := &p.Spec.Containers[0]
	c.Resources.Requests[licence], c.Resources.Limits = one, corev1.ResourceList{licence: one}
}

func selectFull(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{poolLabel: poolFull} }

func selectKept(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{poolLabel: poolKept} }

func selectNone(p *corev1.Pod) {
	p.Spec.NodeSelector = map[string]string{nowhereLabel: "yes"}
}

func gate(p *corev1.Pod) {
	p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait.caldera.dev/shut"}}
}

func mount(p *corev1.Pod, claim string) {
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}}
}

func mountMissing(p *corev1.Pod) { mount(p, p.Name+"-missing") }

func mountOwn(p *corev1.Pod) { mount(p, p.Name) }

// volumeInFullZone returns a claim and the volume it is bound to, as a volume controller leaves them.
func volumeInFullZone(pod string) []runtime.Object {
	storage := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	return []runtime.Object{
		&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: pod},
			Spec: corev1.PersistentVolumeSpec{
				Capacity: storage, AccessModes: modes,
				PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/data"}},
				ClaimRef:               &corev1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: tenants, Name: pod},
				NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{poolFull}}},
				}}}},
			},
		},
		&corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: tenants, Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: storage}, StorageClassName: new(""), VolumeName: pod,
			},
		},
	}
}

func followNobody(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{nowhereLabel: "yes"}}, TopologyKey: corev1.LabelHostname,
	}}}}
}

func spreadNowhere(p *corev1.Pod) {
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: nowhereLabel, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{roleLabel: roleHopeless}},
	}}
}

func wantTakenPort(p *corev1.Pod) {
	p.Spec.NodeSelector = map[string]string{poolLabel: poolRoom}
	takePort(p)
}

func takePort(p *corev1.Pod) {
	p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: takenPort, HostPort: takenPort, Protocol: corev1.ProtocolTCP}}
}

func claim(p *corev1.Pod, source corev1.PodResourceClaim) {
	source.Name = "device"
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{source}
	p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: source.Name}}
}

func claimMissing(p *corev1.Pod) {
	claim(p, corev1.PodResourceClaim{ResourceClaimName: new(p.Name + "-missing")})
}

func claimOwn(p *corev1.Pod) { claim(p, corev1.PodResourceClaim{ResourceClaimName: new(p.Name)}) }

func claimByTemplate(p *corev1.Pod) {
	claim(p, corev1.PodResourceClaim{ResourceClaimTemplateName: new(deviceName)})
}

// deviceClass takes in devices of a driver that no node has.
func deviceClass() *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: deviceName},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", deviceName)},
		}}},
	}
}

func deviceTemplate() []runtime.Object {
	return []runtime.Object{deviceClass(), &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: deviceName, Namespace: tenants},
		Spec:       resourcev1.ResourceClaimTemplateSpec{Spec: claimSpec()},
	}}
}

func claimSpec() resourcev1.ResourceClaimSpec {
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
		Name: "one", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: deviceName, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1},
	}}}}
}

func ownClaim(pod string) []runtime.Object {
	return []runtime.Object{&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: tenants}, Spec: claimSpec()}}
}

// hurry gives a pod more priority than all but those that hold the nodes with room.
func hurry(p *corev1.Pod) { p.Spec.PriorityClassName = priorityHigh }

func narrowQueue() *volcano.Queue {
	return &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: "narrow"}, Spec: volcano.QueueSpec{
		Weight: 1, Capability: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
	}}
}

// exhaustedQuota is written with its status, as the controller of quotas leaves it.
func exhaustedQuota() *corev1.ResourceQuota {
	hard := corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("1")}
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "exhausted", Namespace: tenants},
		Spec:       corev1.ResourceQuotaSpec{Hard: hard},
		Status:     corev1.ResourceQuotaStatus{Hard: hard, Used: hard},
	}
}
