// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package native tests gangs by Kubernetes' own PodGroups (scheduling.k8s.io/v1beta1), made by its Job controller or by hand.
package native_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	workload "k8s.io/api/scheduling/v1alpha3"
	native "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

const patience = time.Minute

// groupTemplateAnnotation names, on a Job that another controller owns, the template of the owner's Workload that its PodGroup is made by
// (k8s.io/kubernetes/pkg/apis/scheduling).
const groupTemplateAnnotation = "scheduling.k8s.io/group-template-name"

// open starts a cluster of nodes with 32 cores and 8 GPUs each, half of them in either of two zones.
func open(t *testing.T, nodes int) *env.Env {
	t.Parallel()
	shape := "count=%d,cpu=32,memory=256Gi,nvidia.com/gpu=8,label:zone=%s"
	e := env.New(t, env.NativeGroups(localcluster.Options{CRDDirs: []string{"testdata"}, Shapes: []string{
		fmt.Sprintf(shape, nodes-nodes/2, "a"), fmt.Sprintf(shape, nodes/2, "b"),
	}}))
	e.StartScheduler(t)
	return e
}

// jobOf is a Job whose pods are a gang by what the Job itself says, each with all GPUs of a node.
func jobOf(name string, pods int32) *batchv1.Job {
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{env.GroupLabel: name}, Annotations: map[string]string{"localcluster.caldera.dev/run-for": "1h"},
	}, Spec: env.Pod(name, "1").Spec}
	template.Spec.RestartPolicy = corev1.RestartPolicyNever
	template.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: env.Namespace},
		Spec: batchv1.JobSpec{
			Parallelism: &pods, Completions: &pods, CompletionMode: ptr.To(batchv1.IndexedCompletion), Template: template,
			Scheduling: &batchv1.JobSchedulingConfiguration{SchedulingPolicy: &workload.WorkloadPodGroupSchedulingPolicy{
				Gang: &workload.WorkloadPodGroupGangSchedulingPolicy{},
			}},
		},
	}
}

// groupOf returns the PodGroup of the gang's pods; nil as long as there is none.
func groupOf(t *testing.T, e *env.Env, gang string) *native.PodGroup {
	pods := e.Members(t, gang)
	if len(pods) == 0 || pods[0].Spec.SchedulingGroup == nil {
		return nil
	}
	g, err := e.Kube.SchedulingV1beta1().PodGroups(env.Namespace).Get(t.Context(), *pods[0].Spec.SchedulingGroup.PodGroupName, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return g
}

// says returns a condition for Eventually: the gang's PodGroup has the condition PodGroupInitiallyScheduled, with a reason and a part of its
// message.
func says(t *testing.T, e *env.Env, gang string, status metav1.ConditionStatus, reason, message string) func() string {
	return func() string {
		g := groupOf(t, e, gang)
		if g == nil {
			return "gang " + gang + " has no PodGroup"
		}
		c := apimeta.FindStatusCondition(g.Status.Conditions, native.PodGroupInitiallyScheduled)
		if c == nil || c.Status != status || c.Reason != reason || !strings.Contains(c.Message, message) {
			return fmt.Sprintf("PodGroup %s has the condition %+v, want %s, %s and %q in the message", g.Name, c, status, reason, message)
		}
		return ""
	}
}

// jobSet creates a JobSet, and the Workload that its controller makes of it, with a template for the PodGroup of each of its Jobs.
func jobSet(t *testing.T, e *env.Env, name string, jobs []string, pods int32) *unstructured.Unstructured {
	t.Helper()
	client, err := dynamic.NewForConfig(e.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	set := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": map[string]any{"name": name, "namespace": env.Namespace},
	}}
	resource := schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}
	if set, err = client.Resource(resource).Namespace(env.Namespace).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var templates []native.PodGroupTemplate
	for _, job := range jobs {
		templates = append(templates, native.PodGroupTemplate{
			Name: job, SchedulingPolicy: native.PodGroupSchedulingPolicy{Gang: &native.GangSchedulingPolicy{MinCount: pods}},
		})
	}
	_, err = e.Kube.SchedulingV1beta1().Workloads(env.Namespace).Create(t.Context(), &native.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: env.Namespace},
		Spec: native.WorkloadSpec{
			ControllerRef:     &native.TypedLocalObjectReference{APIGroup: resource.Group, Kind: set.GetKind(), Name: name},
			PodGroupTemplates: templates,
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// jobOfSet is a Job of a JobSet, which leaves its PodGroup to the Job controller.
func jobOfSet(set *unstructured.Unstructured, name string, pods int32) *batchv1.Job {
	job := jobOf(name, pods)
	job.Spec.Scheduling = nil
	job.Annotations = map[string]string{groupTemplateAnnotation: name}
	labels := map[string]string{"jobset.sigs.k8s.io/jobset-name": set.GetName(), "jobset.sigs.k8s.io/replicatedjob-name": "workers"}
	job.Labels = labels
	maps.Copy(job.Spec.Template.Labels, labels)
	job.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())}
	return job
}

func createJob(t *testing.T, e *env.Env, job *batchv1.Job) *batchv1.Job {
	t.Helper()
	created, err := e.Kube.BatchV1().Jobs(env.Namespace).Create(t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func deleteJob(t *testing.T, e *env.Env, name string) error {
	return e.Kube.BatchV1().Jobs(env.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)})
}

// createOfSet creates a Job of a JobSet, and does so again if its pods have no PodGroup: the Job controller had not seen the Workload yet.
func createOfSet(t *testing.T, e *env.Env, set *unstructured.Unstructured, name string, size int32) {
	t.Helper()
	for {
		job := createJob(t, e, jobOfSet(set, name, size))
		var pods []*corev1.Pod
		env.Eventually(t, patience, func() string {
			pods = slices.DeleteFunc(e.Members(t, name), func(p *corev1.Pod) bool { return !metav1.IsControlledBy(p, job) })
			if len(pods) == 0 {
				return "Job " + name + " has no pods"
			}
			return ""
		})
		if pods[0].Spec.SchedulingGroup != nil {
			return
		}
		if err := deleteJob(t, e, name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestJobsThatAreGangs: of two gangs, for one of which there is room, one starts whole and the other one waits and says why. It starts whole once
// the first is deleted.
func TestJobsThatAreGangs(t *testing.T) {
	t.Parallel()
	const size = 11
	for kind, tc := range map[string]struct {
		create func(t *testing.T, e *env.Env, names []string)
		remove func(t *testing.T, e *env.Env, name string) error
	}{
		"Jobs that say so": {func(t *testing.T, e *env.Env, names []string) {
			for _, name := range names {
				createJob(t, e, jobOf(name, size))
			}
		}, deleteJob},
		"Jobs of a JobSet": {func(t *testing.T, e *env.Env, names []string) {
			set := jobSet(t, e, "train", names, size)
			for _, name := range names {
				createOfSet(t, e, set, name, size)
			}
		}, deleteJob},
		"PodGroups made by hand": {func(t *testing.T, e *env.Env, names []string) {
			for _, name := range names {
				e.Create(t, env.Gang{Name: name, Native: true, Min: size, Size: size, CPU: "1", Pod: func(_ int, p *corev1.Pod) {
					p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
				}})
			}
		}, func(t *testing.T, e *env.Env, name string) error {
			e.Delete(t, name)
			return e.Kube.SchedulingV1beta1().PodGroups(env.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
		}},
	} {
		t.Run(kind, func(t *testing.T) {
			e := open(t, 20)
			names := []string{"first", "second"}
			tc.create(t, e, names)
			runs, waits := oneStarts(t, e, names, size)
			if err := tc.remove(t, e, runs); err != nil {
				t.Fatal(err)
			}
			env.Eventually(t, patience, e.AllBound(t, waits, size))
			env.Eventually(t, patience, says(t, e, waits, metav1.ConditionTrue, "Scheduled", "started with"))
		})
	}
}

// oneStarts expects one of two gangs of so many pods to start whole, and the other one to wait.
func oneStarts(t *testing.T, e *env.Env, names []string, size int) (runs, waits string) {
	t.Helper()
	bound := func(name string) int { n, _ := e.Bound(t, name); return n }
	env.Eventually(t, patience, func() string {
		if has := []int{bound(names[0]), bound(names[1])}; slices.Max(has) != size {
			return fmt.Sprintf("the gangs have %v pods on nodes, want one to have %d", has, size)
		}
		return ""
	})
	runs, waits = names[0], names[1]
	if bound(runs) != size {
		runs, waits = waits, runs
	}
	env.Eventually(t, patience, says(t, e, runs, metav1.ConditionTrue, "Scheduled", fmt.Sprintf("started with a minimum of %d tasks", size)))
	env.Eventually(t, patience, says(t, e, waits, metav1.ConditionFalse, native.PodGroupReasonUnschedulable, "nvidia.com/gpu"))
	env.Consistently(t, 2*time.Second, func() string {
		if n := bound(waits); n > 0 {
			return fmt.Sprintf("%d pods of the gang that waits are on nodes", n)
		}
		return ""
	})
	return runs, waits
}

// TestGangsInOneZone: a gang whose PodGroup wants one value of a label starts on nodes of one zone, or waits and says so.
func TestGangsInOneZone(t *testing.T) {
	e := open(t, 8)
	inZone := func(name string, size int) {
		gang := env.Gang{Name: name, Native: true, Min: size, Size: size, CPU: "32"}
		group := gang.NativeGroup()
		group.Spec.SchedulingConstraints = &native.PodGroupSchedulingConstraints{Topology: []native.TopologyConstraint{{Key: "zone"}}}
		if _, err := e.Kube.SchedulingV1beta1().PodGroups(env.Namespace).Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		e.CreatePods(t, gang.Members()...)
	}
	inZone("fits", 3)
	env.Eventually(t, patience, e.AllBound(t, "fits", 3))
	zones := map[string]bool{}
	for _, p := range e.Members(t, "fits") {
		node, err := e.Kube.CoreV1().Nodes().Get(t.Context(), p.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		zones[node.Labels["zone"]] = true
	}
	if len(zones) != 1 {
		t.Errorf("the gang is in zones %v, want one", zones)
	}
	// Five nodes are empty, four of them in one zone.
	inZone("large", 5)
	env.Eventually(t, patience, says(t, e, "large", metav1.ConditionFalse, native.PodGroupReasonUnschedulable, "topology domain zone="))
	inZone("next", 4)
	env.Eventually(t, patience, e.AllBound(t, "next", 4))
}

// TestAGroupWithoutAMinimum: the pods of a PodGroup of the policy basic start each on its own.
func TestAGroupWithoutAMinimum(t *testing.T) {
	e := open(t, 2)
	gang := env.Gang{Name: "basic", Native: true, Min: 1, Size: 3, CPU: "32"}
	group := gang.NativeGroup()
	group.Spec.SchedulingPolicy = native.PodGroupSchedulingPolicy{Basic: &native.BasicSchedulingPolicy{}}
	if _, err := e.Kube.SchedulingV1beta1().PodGroups(env.Namespace).Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.CreatePods(t, gang.Members()...)
	env.Eventually(t, patience, e.AllBound(t, "basic", 2))
	env.Eventually(t, patience, says(t, e, "basic", metav1.ConditionTrue, "Scheduled", ""))
}
