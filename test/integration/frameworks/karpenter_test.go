// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package frameworks_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// machines is the one type of node that Karpenter can get: it keeps 0.1 of the 5 cores for itself.
const machines = `[{
  "name": "five", "architecture": "amd64", "operatingSystems": ["linux"],
  "resources": {"cpu": "5", "memory": "64Gi", "ephemeral-storage": "20Gi", "pods": "110"},
  "offerings": [{"Price": 1, "Available": true, "Requirements": [
    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}]}]
}]`

const nodeClass = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
spec: {}
`

const nodePool = `
apiVersion: karpenter.sh/v1
kind: NodePool
spec:
  disruption: {consolidateAfter: Never}
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
`

// preempting has queues held by what they are capable of, and no others, and pods evicted for others of their queue.
const preempting = `
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]
`

// fromKarpenter is the beginning of the provider IDs of its nodes.
const fromKarpenter = "kwok://"

// brought returns the nodes that Karpenter has created.
func (w *world) brought(ctx context.Context) (nodes []corev1.Node, err error) {
	list, err := w.Kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Spec.ProviderID, fromKarpenter) {
			nodes = append(nodes, list.Items[i])
		}
	}
	return nodes, nil
}

// keepReady says of Karpenter's nodes what their kubelets would, until the test ends.
func (w *world) keepReady(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-done
	})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			// What fails, for a conflict with a controller, is done again in the next round.
			nodes, _ := w.brought(ctx)
			for i := range nodes {
				nodes[i].Status.Conditions = []corev1.NodeCondition{{
					Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: metav1.Now(),
				}}
				_, _ = w.Kube.CoreV1().Nodes().UpdateStatus(ctx, &nodes[i], metav1.UpdateOptions{})
			}
			time.Sleep(500 * time.Millisecond)
		}
	}()
}

// brings returns a condition: Karpenter has brought so many nodes.
func (w *world) brings(t *testing.T, want int) func() string {
	return func() string {
		nodes, err := w.brought(t.Context())
		switch {
		case err != nil:
			return err.Error()
		case len(nodes) != want:
			return fmt.Sprintf("Karpenter has brought %d nodes, want %d", len(nodes), want)
		}
		return ""
	}
}

// TestKarpenter: a gang that its queue holds back brings no nodes, nor does one for which room is promised by evictions. One that waits for nodes
// brings as many as it needs, and starts on them.
func TestKarpenter(t *testing.T) {
	t.Parallel()
	program := buildOperator(t, "karpenter", "sigs.k8s.io/karpenter/kwok")
	const module = "sigs.k8s.io/karpenter"
	w := openWith(t, preempting, "count=1,cpu=4,memory=64Gi",
		program.crds(module, "pkg/apis/crds", "karpenter.sh_nodeclaims.yaml", "karpenter.sh_nodepools.yaml", "karpenter.sh_nodeoverlays.yaml"),
		program.crds(module, "kwok/apis/crds", "karpenter.kwok.sh_kwoknodeclasses.yaml"))
	types := filepath.Join(t.TempDir(), "types.json")
	if err := os.WriteFile(types, []byte(machines), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program.path)
	command.Env = append(os.Environ(), "KUBECONFIG="+w.Kubeconfig, "INSTANCE_TYPES_FILE_PATH="+types, "SYSTEM_NAMESPACE="+env.Namespace,
		"DISABLE_LEADER_ELECTION=true", "METRICS_PORT=0", "HEALTH_PROBE_PORT=0")
	env.StartProgram(t, command)
	w.keepReady(t)
	client, err := dynamic.NewForConfig(w.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	create(t, client.Resource(schema.GroupVersionResource{Group: "karpenter.kwok.sh", Version: "v1alpha1", Resource: "kwoknodeclasses"}), "default", nodeClass)
	create(t, client.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}), "default", nodePool)
	small := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: volcano.QueueSpec{
		Weight: 1, Capability: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
	}}
	if _, err := w.Volcano.SchedulingV1beta1().Queues().Create(t.Context(), small, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.PriorityClass(t, "low", 10)
	w.PriorityClass(t, "high", 1000)
	ranked := func(name, priority, queue string, size int) env.Gang {
		return env.Gang{
			Name: name, Min: size, Size: size, CPU: "2", Queue: queue,
			Pod:   func(_ int, p *corev1.Pod) { p.Spec.PriorityClassName = priority },
			Group: func(g *volcano.PodGroup) { g.Spec.PriorityClassName = priority },
		}
	}
	base := ranked("base", "low", "", 2)
	base.Min = 1
	base.Pod = func(_ int, p *corev1.Pod) {
		p.Spec.PriorityClassName = "low"
		// Longer than Karpenter waits for more news.
		p.Annotations["localcluster.caldera.dev/terminate-after"] = "5s"
	}
	w.Create(t, base)
	env.Eventually(t, patience, w.AllBound(t, "base", 2))

	// Karpenter acts a second after the last news.
	const calm = 6 * time.Second
	w.Create(t, ranked("held-back", "low", "small", 2))
	env.Consistently(t, calm, w.brings(t, 0))

	w.Create(t, ranked("urgent", "high", "", 1))
	env.Eventually(t, patience, func() string {
		for _, p := range w.Members(t, "urgent") {
			if p.Status.NominatedNodeName != "" {
				return ""
			}
		}
		return "no room is kept for the gang that has others evicted"
	})
	env.Eventually(t, patience, w.AllBound(t, "urgent", 1))
	env.Consistently(t, calm, w.brings(t, 0))

	w.Create(t, ranked("waits", "low", "", 6))
	env.Eventually(t, patience, w.AllBound(t, "waits", 6))
	env.Consistently(t, calm, w.brings(t, 3))
	env.Consistently(t, time.Second, w.AllBound(t, "held-back", 0))
}
