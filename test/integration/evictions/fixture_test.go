// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package evictions_test evicts on a real control plane: who goes, for whom, how many, and what can be seen of it.
package evictions_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

const (
	// patience is how long anything that must happen may take.
	patience = time.Minute
	// calm is how long nothing more may happen after a scene has come to its end.
	calm = 3 * time.Second
)

// byShares is a configuration in which queues reclaim by their weights.
const byShares = `
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}, {name: cdp}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
`

// byTree is one in which they reclaim by what they deserve, nearest relatives first.
const byTree = `
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]
`

// in replaces the actions of a configuration.
func in(conf, actions string) string {
	_, tiers, _ := strings.Cut(conf, "\ntiers:")
	return fmt.Sprintf("actions: %q\ntiers:%s", actions, tiers)
}

// fixture is a cluster on which scenes are played one after another.
type fixture struct {
	*env.Env
	witness *witness
}

// open starts a cluster of nodes with four cores each. The test runs beside others; scenes on one fixture do not.
func open(t *testing.T, nodes int) *fixture {
	t.Helper()
	t.Parallel()
	w := newWitness()
	return &fixture{Env: env.New(t, localcluster.Options{Nodes: nodes, Shapes: []string{"cpu=4,memory=64Gi"}}, w.see), witness: w}
}

// scene is one scenario: a cleared fixture with a scheduler of its own.
type scene struct {
	*fixture
	t *testing.T
	// stop ends the scheduler.
	stop    func()
	conf    string
	changes []func(*schedulerconfig.KubeSchedulerConfiguration)
}

// play begins a scene. Queues may take back at once what was taken from them, so that nothing but the decisions
// themselves ends a circle of evictions.
func (st *fixture) play(t *testing.T, conf string, changes ...func(*config.ReclaimArgs)) *scene {
	t.Helper()
	st.clear(t)
	s := &scene{fixture: st, t: t, conf: conf}
	for _, change := range append([]func(*config.ReclaimArgs){func(a *config.ReclaimArgs) { a.QueueCooldown.Duration = 0 }}, changes...) {
		s.changes = append(s.changes, env.Evictions(change))
	}
	s.start()
	return s
}

// single begins a scene on a fixture of its own.
func single(t *testing.T, nodes int, conf string, changes ...func(*config.ReclaimArgs)) *scene {
	t.Helper()
	return open(t, nodes).play(t, conf, changes...)
}

// start runs a scheduler, the first one or one after a stop.
func (s *scene) start() { s.stop = s.StartSchedulerWith(s.t, s.conf, s.changes...) }

// clear removes what the scene before has left. Its scheduler has ended.
func (st *fixture) clear(t *testing.T) {
	t.Helper()
	all := metav1.ListOptions{}
	volcanos := st.Volcano.SchedulingV1beta1()
	var problems []error
	for _, namespace := range []string{env.Namespace, metav1.NamespaceSystem} {
		problems = append(problems,
			volcanos.PodGroups(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, all),
			st.Kube.PolicyV1().PodDisruptionBudgets(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, all))
	}
	problems = append(problems, volcanos.Queues().DeleteCollection(t.Context(), metav1.DeleteOptions{}, all))
	for _, err := range problems {
		if err != nil {
			t.Fatal(err)
		}
	}
	env.Eventually(t, patience, func() string {
		pods, err := st.Pods.List(labels.Everything())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pods {
			st.erase(t, p)
		}
		if len(pods) > 0 {
			return fmt.Sprintf("%d pods of the scene before are left", len(pods))
		}
		return ""
	})
	st.witness.reset()
}

// erase removes a pod whatever holds it.
func (st *fixture) erase(t *testing.T, p *corev1.Pod) {
	t.Helper()
	st.witness.forgive(p)
	pods := st.Kube.CoreV1().Pods(p.Namespace)
	if len(p.Finalizers) > 0 {
		_, err := pods.Patch(t.Context(), p.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	err := pods.Delete(t.Context(), p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// queueSpec describes a queue by what scenes change of it.
type queueSpec struct {
	weight               int32
	parent               string
	deserved, capability string
	kept                 bool
	// path and weights are those of hierarchical drf.
	path, weights string
}

func cpu(amount string) corev1.ResourceList {
	if amount == "" {
		return nil
	}
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// queues creates queues. One that is kept may not be reclaimed from.
func (s *scene) queues(specs map[string]queueSpec) {
	s.t.Helper()
	for name, q := range specs {
		meta := metav1.ObjectMeta{Name: name}
		if q.path != "" {
			meta.Annotations = map[string]string{volcano.KubeHierarchyAnnotationKey: q.path, volcano.KubeHierarchyWeightAnnotationKey: q.weights}
		}
		_, err := s.Volcano.SchedulingV1beta1().Queues().Create(s.t.Context(), &volcano.Queue{
			ObjectMeta: meta, Spec: volcano.QueueSpec{
				Weight: max(1, q.weight), Parent: q.parent, Deserved: cpu(q.deserved), Capability: cpu(q.capability), Reclaimable: new(!q.kept),
			},
		}, metav1.CreateOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// job describes a job of pods with one core each.
func job(name, queue string, least, size int, change ...func(*corev1.Pod)) env.Gang {
	return env.Gang{Name: name, Queue: queue, Min: least, Size: size, CPU: "1", Pod: func(_ int, p *corev1.Pod) {
		for _, c := range change {
			c(p)
		}
	}}
}

// fill creates jobs and waits until all of their pods run.
func (s *scene) fill(jobs ...env.Gang) {
	s.t.Helper()
	for _, g := range jobs {
		s.Create(s.t, g)
	}
	for _, g := range jobs {
		s.holds(map[string]int{g.Name: g.Size})
	}
}

// running counts the pods of each job that run and stay.
func (s *scene) running() map[string]int {
	s.t.Helper()
	pods, err := s.Pods.List(labels.Everything())
	if err != nil {
		s.t.Fatal(err)
	}
	counts := map[string]int{}
	for _, p := range pods {
		if p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
			counts[p.Labels[env.GroupLabel]]++
		}
	}
	return counts
}

// holds waits until so many pods of jobs run.
func (s *scene) holds(want map[string]int) {
	s.t.Helper()
	env.Eventually(s.t, patience, func() string {
		got := s.running()
		for name, n := range want {
			if got[name] != n {
				return fmt.Sprintf("running pods by job: %v, want %v; evicted: %v\n%s", got, want, s.witness.counts(), s.reasons())
			}
		}
		return ""
	})
}

// reasons tells why PodGroups wait and what was decided, for whoever reads a failure.
func (s *scene) reasons() string {
	groups, err := s.Volcano.SchedulingV1beta1().PodGroups(env.Namespace).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	for i := range groups.Items {
		g := &groups.Items[i]
		fmt.Fprintf(&b, "%s is %s\n", g.Name, g.Status.Phase)
		for _, c := range g.Status.Conditions {
			fmt.Fprintf(&b, "  %s %s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	for _, d := range s.ledger() {
		fmt.Fprintf(&b, "decision %d at %s: %s for %s, %s %s\n", d.ID, d.Time.Format(time.TimeOnly), d.Action, d.Beneficiary.Name, d.Outcome, d.Problem)
		for _, m := range d.Members {
			fmt.Fprintf(&b, "  %s to %s\n", m.Name, m.Node)
		}
		for _, v := range d.Victims {
			fmt.Fprintf(&b, "  %s from %s: %s %s\n", v.Pod.Name, v.Node, v.State, v.Problem)
		}
	}
	return b.String()
}

// evicted checks how many pods of each job have been evicted, and that no others are for a while.
func (s *scene) evicted(want map[string]int, during time.Duration) {
	s.t.Helper()
	differs := func() string {
		if got := s.witness.counts(); !maps.Equal(got, want) {
			return fmt.Sprintf("evicted pods by job: %v, want %v; running: %v\n%s", got, want, s.running(), s.reasons())
		}
		return ""
	}
	// The witness is told of a pod some time after the others can look at it.
	env.Eventually(s.t, patience, differs)
	env.Consistently(s.t, during, differs)
}

// refused waits until a PodGroup says why it has to wait, in a condition that has all of these phrases, and checks that
// nobody is evicted for it.
func (s *scene) refused(group string, phrases ...string) {
	s.t.Helper()
	env.Eventually(s.t, patience, func() string {
		said := s.condition(group)
		for _, phrase := range phrases {
			if !strings.Contains(said, phrase) {
				return fmt.Sprintf("PodGroup %s says %q, which does not tell %q", group, said, phrase)
			}
		}
		return ""
	})
	s.evicted(map[string]int{}, calm)
}

// condition is what a PodGroup says of why it waits.
func (s *scene) condition(group string) string {
	s.t.Helper()
	for _, c := range s.PodGroup(s.t, group).Status.Conditions {
		if c.Type == volcano.PodGroupUnschedulableType && c.Status == corev1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}

// ledger is what the scheduler remembers of evictions.
func (s *scene) ledger() []eviction.Decision { return s.Core.Evictions.Ledger.Decisions() }

// totals are the sums of the ledger.
func (s *scene) totals() v1alpha1.EvictionTotals { return s.Views().Cluster().Status.Evictions }
