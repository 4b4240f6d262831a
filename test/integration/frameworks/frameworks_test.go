// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package frameworks tests gangs as the frameworks write them that people train, infer and compute with.
package frameworks_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	coschedulingclient "sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

const (
	patience = time.Minute
	// calm is how long nothing may happen that must not.
	calm = time.Second
	// otherName is the scheduler that KubeRay names for scheduler-plugins.
	otherName = "scheduler-plugins-scheduler"
)

// conf is Volcano's default.
const conf = `
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`

// alsoNamed adds a profile like that of the scheduler volcano for another name.
func alsoNamed(name string) func(*schedulerconfig.KubeSchedulerConfiguration) {
	return func(c *schedulerconfig.KubeSchedulerConfiguration) {
		i := slices.IndexFunc(c.Profiles, func(p schedulerconfig.KubeSchedulerProfile) bool { return p.SchedulerName == "volcano" })
		other := *c.Profiles[i].DeepCopy()
		other.SchedulerName = name
		c.Profiles = append(c.Profiles, other)
	}
}

// world is a cluster with all that frameworks expect of one.
type world struct {
	*env.Env
	plugins coschedulingclient.Interface
}

func open(t *testing.T) *world { return openWith(t, conf, "count=4,cpu=16,memory=64Gi") }

// openWith starts a cluster with nodes of a shape and with further definitions, and the scheduler by a volcano-scheduler.conf.
func openWith(t *testing.T, conf, shape string, definitions ...string) *world {
	t.Helper()
	crds, err := filepath.Abs("../../../manifests/crds-optional")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Env: env.New(t, localcluster.Options{Shapes: []string{shape}, CRDDirs: append(definitions, crds)})}
	if w.plugins, err = coschedulingclient.NewForConfig(w.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	queue := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: "research"}, Spec: volcano.QueueSpec{Weight: 1}}
	if _, err := w.Volcano.SchedulingV1beta1().Queues().Create(t.Context(), queue, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.StartSchedulerWith(t, conf, alsoNamed(otherName))
	return w
}

// onNodes counts the pods that have nodes.
func (w *world) onNodes(pods []*corev1.Pod) (n int) {
	for _, p := range pods {
		if have, err := w.Pods.Pods(p.Namespace).Get(p.Name); err == nil && have.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// have returns a condition: so many of the pods have nodes.
func (w *world) have(pods []*corev1.Pod, want int) func() string {
	return func() string {
		if got := w.onNodes(pods); got != want {
			return fmt.Sprintf("%d pods have nodes, want %d", got, want)
		}
		return ""
	}
}

func (w *world) createGroup(t *testing.T, g gang) {
	t.Helper()
	var err error
	switch {
	case g.volcano != nil:
		_, err = w.Volcano.SchedulingV1beta1().PodGroups(env.Namespace).Create(t.Context(), g.volcano, metav1.CreateOptions{})
	case g.plugins != nil:
		_, err = w.plugins.SchedulingV1alpha1().PodGroups(env.Namespace).Create(t.Context(), g.plugins, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// phase is that of the gang's PodGroup.
func (w *world) phase(t *testing.T, g gang) string {
	if g.volcano != nil {
		return string(w.PodGroup(t, g.volcano.Name).Status.Phase)
	}
	group, err := w.plugins.SchedulingV1alpha1().PodGroups(env.Namespace).Get(t.Context(), g.plugins.Name, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	return string(group.Status.Phase)
}

// reaches returns a condition: the PodGroup of the gang is in a phase.
func (w *world) reaches(t *testing.T, g gang, want string) func() string {
	return func() string {
		if got := w.phase(t, g); got != want {
			return fmt.Sprintf("the PodGroup is %q, want %q", got, want)
		}
		return ""
	}
}

// submit creates what a framework does, in its order, but for the last pod.
func (w *world) submit(t *testing.T, g gang) {
	t.Helper()
	first := g.pods[:len(g.pods)-1]
	if g.order == groupLater {
		w.CreatePods(t, first[0])
		first = first[1:]
		env.Consistently(t, calm, w.have(g.pods, 0))
	}
	w.createGroup(t, g)
	if g.order == groupInqueue {
		env.Eventually(t, patience, w.reaches(t, g, string(volcano.PodGroupInqueue)))
	}
	w.CreatePods(t, first...)
}

// placed returns a pod that has a node, as it is now, and complains if its job is in another queue.
func (w *world) placed(t *testing.T, p *corev1.Pod, queue string) *corev1.Pod {
	t.Helper()
	have, err := w.Pods.Pods(p.Namespace).Get(p.Name)
	if err != nil {
		t.Fatal(err)
	}
	if job := w.Core.State.Job(w.Core.State.JobOf(have)); job == nil || job.Queue != queue {
		t.Errorf("pod %s is one of job %+v, want one in queue %s", p.Name, job, queue)
	}
	return have
}

// TestWhatFrameworksWrite has them all write to one cluster.
func TestWhatFrameworksWrite(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, g := range slices.Concat(trainer(), trainingOperator(), kubeRay(), spark(), mpiOperator(), leaderWorkerSet(), argo()) {
		t.Run(g.by, func(t *testing.T) {
			t.Parallel()
			w.startsWhole(t, g)
		})
	}
	t.Run("Kueue", func(t *testing.T) {
		t.Parallel()
		w.letInByKueue(t)
	})
}

// startsWhole: a gang starts once its last pod is there, in the queue that was named, and its PodGroup says that it runs.
func (w *world) startsWhole(t *testing.T, g gang) {
	w.submit(t, g)
	env.Eventually(t, patience, w.have(g.pods, g.alone))
	env.Consistently(t, calm, w.have(g.pods, g.alone))
	w.CreatePods(t, g.pods[len(g.pods)-1])
	env.Eventually(t, patience, w.have(g.pods, len(g.pods)))
	for _, p := range g.pods {
		w.placed(t, p, g.queue)
	}
	switch {
	case g.volcano != nil:
		env.Eventually(t, patience, w.reaches(t, g, string(volcano.PodGroupRunning)))
	case g.plugins != nil:
		env.Eventually(t, patience, w.reaches(t, g, string(coscheduling.PodGroupRunning)))
	}
}

// letInByKueue: pods that Kueue keeps out by its gate wait, and start on the nodes of the flavor that it has chosen once it lets them in. What it
// calls a queue is none here.
func (w *world) letInByKueue(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 2 {
		p := pod(fmt.Sprintf("quota-%d", i), marks{
			"kueue.x-k8s.io/managed": "true", "kueue.x-k8s.io/queue-name": "team-a", "kueue.x-k8s.io/pod-group-name": "quota",
		}, marks{"kueue.x-k8s.io/pod-group-total-count": "2"})
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}}
		p.Finalizers = []string{"kueue.x-k8s.io/managed"}
		pods = append(pods, p)
	}
	w.CreatePods(t, pods...)
	env.Consistently(t, calm, w.have(pods, 0))
	nodes, err := w.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	chosen := nodes.Items[1].Name
	patch := fmt.Sprintf(`{"spec":{"schedulingGates":null,"nodeSelector":{"kubernetes.io/hostname":%q}}}`, chosen)
	for _, p := range pods {
		if _, err := w.Kube.CoreV1().Pods(p.Namespace).Patch(t.Context(), p.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	env.Eventually(t, patience, w.have(pods, len(pods)))
	for _, p := range pods {
		if have := w.placed(t, p, model.DefaultQueue); have.Spec.NodeName != chosen {
			t.Errorf("pod %s is on node %s, want %s", p.Name, have.Spec.NodeName, chosen)
		}
	}
}
