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

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	crds, err := filepath.Abs("../../../manifests/crds-optional")
	if err != nil {
		t.Fatal(err)
	}
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=4,memory=64Gi"}, CRDDirs: []string{crds}})
	e.StartSchedulerWith(t, everyoneIsAdmitted)
	client, err := coschedulingclient.NewForConfig(e.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	for name, least := range map[string]int32{"fits": 4, "toobig": 5} {
		_, err := client.SchedulingV1alpha1().PodGroups(env.Namespace).Create(t.Context(), &coscheduling.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: coscheduling.PodGroupSpec{MinMember: least},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		gang := env.Gang{Name: name, CPU: "1", Pod: func(_ int, p *corev1.Pod) {
			p.Annotations = nil
			p.Labels[model.CoschedulingLabel] = name
		}}
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
