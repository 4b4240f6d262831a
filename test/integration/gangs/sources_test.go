// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	coschedulingclient "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestPodGroupsOfSchedulerPluginsAreGangs starts pods that name their group by scheduler-plugins' label.
func TestPodGroupsOfSchedulerPluginsAreGangs(t *testing.T) {
	t.Parallel()
	e, client := withCoscheduling(t, 4)
	for name, least := range map[string]int32{"fits": 4, "toobig": 5} {
		_, err := client.SchedulingV1alpha1().PodGroups(env.Namespace).Create(t.Context(), &coscheduling.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coscheduling.PodGroupSpec{MinMember: least},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		gang := env.Gang{Name: name, CPU: "1", Pod: inCoscheduling(name)}
		for i := range int(least) {
			e.CreatePods(t, gang.Member(i))
		}
	}
	env.Eventually(t, 30*time.Second, e.AllBound(t, "fits", 4))
	env.Consistently(t, time.Second, e.AllBound(t, "toobig", 0))
	env.Eventually(t, 30*time.Second, podSays(t, e, "toobig", corev1.PodReasonUnschedulable, "insufficient cpu"))
	for name, want := range map[string]string{"fits": "Running, 4 running", "toobig": "Scheduling, 0 running"} {
		env.Eventually(t, 30*time.Second, func() string {
			g, err := client.SchedulingV1alpha1().PodGroups(env.Namespace).Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			if said := fmt.Sprintf("%s, %d running", g.Status.Phase, g.Status.Running); said != want {
				return fmt.Sprintf("PodGroup %s says %q, want %q", name, said, want)
			}
			return ""
		})
	}
}

// TestAGangThatVolcanosControllerMarkedToo: Volcano's podgroup controller gives pods without a Volcano group a PodGroup with a minimum of one,
// after they were created. Pods that name a group of scheduler-plugins start with that group all the same.
func TestAGangThatVolcanosControllerMarkedToo(t *testing.T) {
	t.Parallel()
	e, client := withCoscheduling(t, 8)
	const size = 4
	for name, create := range map[string]func(t *testing.T, name string, pods int){
		"alone": func(t *testing.T, name string, pods int) {
			for i := len(e.Members(t, name)); i < pods; i++ {
				e.CreatePods(t, env.Gang{Name: name, CPU: "1", Pod: inCoscheduling(name)}.Member(i))
			}
		},
		"owned": func(t *testing.T, name string, pods int) { replicate(t, e, name, int32(pods)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := client.SchedulingV1alpha1().PodGroups(env.Namespace).Create(t.Context(), &coscheduling.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coscheduling.PodGroupSpec{MinMember: size},
			}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, pods := range []int{size - 1, size} {
				create(t, name, pods)
				env.Eventually(t, 30*time.Second, func() string {
					if there := len(e.Members(t, name)); there != pods {
						return fmt.Sprintf("there are %d pods of %s, want %d", there, name, pods)
					}
					return ""
				})
				for _, pod := range e.Members(t, name) {
					markByVolcano(t, e, pod)
				}
				if pods < size {
					env.Consistently(t, 2*time.Second, e.AllBound(t, name, 0))
				}
			}
			env.Eventually(t, 30*time.Second, e.AllBound(t, name, size))
		})
	}
}

// withCoscheduling starts a cluster of one node with so many cores that serves scheduler-plugins' PodGroups, and a scheduler.
func withCoscheduling(t *testing.T, cores int) (*env.Env, coschedulingclient.Interface) {
	t.Helper()
	crds, err := filepath.Abs("../../../manifests/crds-optional")
	if err != nil {
		t.Fatal(err)
	}
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{fmt.Sprintf("cpu=%d,memory=64Gi", cores)}, CRDDirs: []string{crds}})
	e.StartSchedulerWith(t, everyoneIsAdmitted)
	client, err := coschedulingclient.NewForConfig(e.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return e, client
}

// inCoscheduling returns a change that puts a pod into a group of scheduler-plugins and into no other.
func inCoscheduling(name string) func(int, *corev1.Pod) {
	return func(_ int, p *corev1.Pod) {
		p.Annotations = nil
		p.Labels[model.CoschedulingLabel] = name
	}
}

// replicate makes a ReplicaSet of so many pods in a group of scheduler-plugins, or gives one that there is so many.
func replicate(t *testing.T, e *env.Env, name string, pods int32) {
	t.Helper()
	sets := e.Kube.AppsV1().ReplicaSets(env.Namespace)
	pod := env.Gang{Name: name, CPU: "1", Pod: inCoscheduling(name)}.Member(0)
	_, err := sets.Create(t.Context(), &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: &pods, Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		scale := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, pods)
		_, err = sets.Patch(t.Context(), name, types.MergePatchType, scale, metav1.PatchOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// markByVolcano does to a pod what Volcano's podgroup controller does: it makes a PodGroup named by the UID of the pod's owner, or by its own
// without one, unless there is one, and names it in the pod's annotation.
func markByVolcano(t *testing.T, e *env.Env, pod *corev1.Pod) {
	t.Helper()
	group := "podgroup-" + string(pod.UID)
	if len(pod.OwnerReferences) > 0 {
		group = "podgroup-" + string(pod.OwnerReferences[0].UID)
	}
	_, err := e.Volcano.SchedulingV1beta1().PodGroups(env.Namespace).Create(t.Context(), &volcano.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: group}, Spec: volcano.PodGroupSpec{MinMember: 1},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	mark := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, model.GroupNameAnnotation, group)
	if _, err := e.Kube.CoreV1().Pods(env.Namespace).Patch(t.Context(), pod.Name, types.MergePatchType, mark, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestPodsWithoutAGroup places plain pods of the batch profile one by one, and those of the ordinary profile beside.
func TestPodsWithoutAGroup(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=4,memory=64Gi"}})
	e.StartSchedulerWith(t, everyoneIsAdmitted)
	label := func(p *corev1.Pod) *corev1.Pod {
		p.Labels = map[string]string{env.GroupLabel: "plain"}
		return p
	}
	ordinary := label(env.Pod("ordinary", "1"))
	ordinary.Spec.SchedulerName = corev1.DefaultSchedulerName
	gated := label(env.Pod("gated", "1"))
	gated.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}}
	e.CreatePods(t, label(env.Pod("nothing", "")), label(env.Pod("a", "1")), label(env.Pod("b", "2")), label(env.Pod("toobig", "5")), ordinary, gated)
	env.Eventually(t, 30*time.Second, e.AllBound(t, "plain", 4))
	env.Consistently(t, time.Second, e.AllBound(t, "plain", 4))
	patch := []byte(`{"spec":{"schedulingGates":null}}`)
	if _, err := e.Kube.CoreV1().Pods(env.Namespace).Patch(t.Context(), "gated", "application/strategic-merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, 30*time.Second, e.AllBound(t, "plain", 5))
}

// TestPodGroupsWithoutAStatusSubresource serves PodGroups defined as Volcano defines them.
func TestPodGroupsWithoutAStatusSubresource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const subresource = "    subresources:\n      status: {}\n"
	for _, name := range []string{"scheduling.volcano.sh_podgroups.yaml", "scheduling.volcano.sh_queues.yaml"} {
		data, err := manifests.CRDs.ReadFile("crds/" + name)
		if err != nil {
			t.Fatal(err)
		}
		definition := string(data)
		if strings.Contains(name, "podgroups") {
			if definition = strings.ReplaceAll(definition, subresource, ""); definition == string(data) {
				t.Fatal("the shipped definition has no status subresource to leave out")
			}
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(definition), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=4,memory=64Gi"}, NoDefaultCRDs: true, CRDDirs: []string{dir}})
	e.StartSchedulerWith(t, everyoneIsAdmitted)
	e.Create(t, env.Gang{Name: "toobig", Min: 5, Size: 5, CPU: "1"})
	e.Create(t, env.Gang{Name: "fits", Min: 4, Size: 4, CPU: "1"})
	env.Eventually(t, 30*time.Second, e.AllBound(t, "fits", 4))
	env.Eventually(t, 30*time.Second, phaseIs(t, e, "fits", volcano.PodGroupRunning))
	env.Eventually(t, 30*time.Second, e.Waits(t, "toobig", model.NotEnoughResources))
}
