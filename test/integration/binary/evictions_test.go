// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/clock"
	volcanoclient "volcano.sh/apis/pkg/client/clientset/versioned"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/status"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// disruptions remembers what conditions DisruptionTarget pods had, in order and as "status reason: message".
type disruptions struct {
	mu   sync.Mutex // guards seen
	seen map[string][]string
}

func (d *disruptions) observe(_, after *corev1.Pod) {
	if after == nil {
		return
	}
	_, c := podutil.GetPodCondition(&after.Status, corev1.DisruptionTarget)
	if c == nil {
		return
	}
	said := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
	d.mu.Lock()
	defer d.mu.Unlock()
	if list := d.seen[after.Name]; len(list) == 0 || list[len(list)-1] != said {
		d.seen[after.Name] = append(list, said)
	}
}

// of returns what a pod had.
func (d *disruptions) of(name string) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.seen[name])
}

// evictor is an executor that has the rights of the scheduler's service account.
type evictor struct {
	*eviction.Executor
	ledger  *eviction.Ledger
	refused chan error
}

func newEvictor(t *testing.T, e *env.Env) *evictor {
	t.Helper()
	rest, err := clientcmd.BuildConfigFromFlags("", kubeconfigOf(t, e))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := volcanoclient.NewForConfig(rest)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := status.New(groups, client, model.NewState())
	if err != nil {
		t.Fatal(err)
	}
	writer.StartEvents()
	t.Cleanup(writer.Close)
	ev := &evictor{ledger: eviction.NewLedger(10, time.Minute), refused: make(chan error, 10)}
	ev.Executor = eviction.NewExecutor(eviction.Config{
		Ledger: ev.ledger, Client: client, Writer: writer, Clock: clock.RealClock{}, Concurrency: 4, VictimTimeout: time.Minute,
		Refused: func(_ *eviction.Decision, _ *eviction.Victim, err error) { ev.refused <- err },
	})
	go ev.Run(t.Context())
	return ev
}

// evict has pods evicted for a job and returns what became of the last of them when all is done.
func (ev *evictor) evict(t *testing.T, pods ...*corev1.Pod) eviction.Victim {
	t.Helper()
	d := eviction.Decision{Action: eviction.Reclaim, Beneficiary: model.JobKey{Source: model.FromVolcano, Namespace: env.Namespace, Name: "train"}, Queue: "research"}
	for _, p := range pods {
		d.Victims = append(d.Victims, &eviction.Victim{Pod: p, UID: p.UID, Job: model.JobByMarks(p), Queue: "prod", Node: p.Spec.NodeName})
	}
	ev.Execute(ev.ledger.Begin(time.Now(), d))
	env.Eventually(t, 30*time.Second, func() string {
		if !ev.Idle() {
			return "the executor is busy"
		}
		return ""
	})
	victims := ev.ledger.Decisions()[0].Victims
	return *victims[len(victims)-1]
}

// running creates pods on the node and returns them when they run. They take a second to end, as a container does: the
// condition that the scheduler writes once the API server has agreed has to come before that.
func running(t *testing.T, e *env.Env, labels map[string]string, names ...string) []*corev1.Pod {
	t.Helper()
	pods := make([]*corev1.Pod, len(names))
	for i, name := range names {
		p := env.Pod(name, "1")
		p.Labels, p.Spec.NodeName, p.Spec.TerminationGracePeriodSeconds = labels, "node-0000", new(int64(2))
		p.Annotations = map[string]string{"localcluster.caldera.dev/terminate-after": "1s"}
		e.CreatePods(t, p)
		env.Eventually(t, 30*time.Second, func() string {
			var err error
			if pods[i], err = e.Kube.CoreV1().Pods(env.Namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
				return err.Error()
			}
			if pods[i].Status.Phase != corev1.PodRunning || !podutil.IsPodReady(pods[i]) {
				return fmt.Sprintf("pod %s is %s", name, pods[i].Status.Phase)
			}
			return ""
		})
	}
	return pods
}

// TestTheShippedRulesAllowEvictions evicts through a real API server with the rights of the scheduler's service account:
// budgets are heeded, and a pod that is evicted says for whom in the end, whatever the API server itself wrote.
func TestTheShippedRulesAllowEvictions(t *testing.T) {
	t.Parallel()
	seen := &disruptions{seen: map[string][]string{}}
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=8,memory=32Gi"}}, seen.observe)
	apply(t, e, "deploy/namespace.yaml", "rbac/service-account.yaml", "rbac/roles.yaml", "rbac/bindings.yaml")
	ev := newEvictor(t, e)
	pods := running(t, e, nil, "free")
	guarded := running(t, e, map[string]string{"app": "web"}, "web")

	if v := ev.evict(t, pods...); v.State != eviction.Leaving && v.State != eviction.Gone || !v.Evicted {
		t.Errorf("the pod without a budget is %s: %s", v.State, v.Problem)
	}
	const forTrain = "True PreemptionByScheduler: caldera-scheduler: evicting to make room for PodGroup default/train in queue research (reclaim)"
	env.Eventually(t, 30*time.Second, func() string {
		if said := seen.of("free"); len(said) == 0 || said[len(said)-1] != forTrain {
			return fmt.Sprintf("the conditions of the pod were %q", said)
		}
		return ""
	})
	env.Eventually(t, 30*time.Second, func() string {
		list, err := e.Kube.CoreV1().Events(env.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=free,reason=Evict"})
		if err != nil || len(list.Items) == 0 {
			return fmt.Sprintf("events Evict on the pod: none (%v)", err)
		}
		return ""
	})
	replaced := pods[0].DeepCopy()
	replaced.UID = "of another pod"
	if v := ev.evict(t, replaced); v.State != eviction.Gone || v.Evicted {
		t.Errorf("a pod whose name is not its own any more is %s: %s", v.State, v.Problem)
	}

	_, err := e.Kube.PolicyV1().PodDisruptionBudgets(env.Namespace).Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	env.Eventually(t, 30*time.Second, func() string {
		b, err := e.Kube.PolicyV1().PodDisruptionBudgets(env.Namespace).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil || b.Status.ObservedGeneration == 0 {
			return fmt.Sprintf("the budget has no status (%v)", err)
		}
		return ""
	})
	if v := ev.evict(t, guarded...); v.State != eviction.Refused || !strings.Contains(v.Problem, "disruption budget") {
		t.Errorf("the pod that its budget protects is %s: %s", v.State, v.Problem)
	}
	select {
	case <-ev.refused:
	default:
		t.Error("the refusal was not reported")
	}
	if said := seen.of("web"); said != nil {
		t.Errorf("a pod that was not evicted had the conditions %q", said)
	}
}
