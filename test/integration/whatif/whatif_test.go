// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package whatif_test changes a cluster after "kubectl caldera simulate --live" has told what will happen then.
package whatif_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/simulate"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/snapshot"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/simulate/report"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

const conf = `
actions: enqueue, allocate, backfill
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: capacity
  - name: binpack
`

// cases is how many random changes are made, one after the other. Each takes five seconds.
var cases = flag.Int("cases", 10, "How many random changes are made.")

// cluster is a cluster that is changed again and again.
type cluster struct {
	*env.Env
	conf string
	r    *rand.Rand
	// replaced counts the pods that were created again, added are the names of new nodes.
	replaced int
	added    []string
}

// TestWhatIsSimulatedHappens: with random jobs in a cluster, a random change is simulated, then made. As many pods of each job have nodes in the end as
// was said.
func TestWhatIsSimulatedHappens(t *testing.T) {
	t.Parallel()
	c := &cluster{
		Env:  env.New(t, localcluster.Options{Nodes: 5, Shapes: []string{"cpu=8,memory=32Gi"}}),
		conf: filepath.Join(t.TempDir(), "volcano-scheduler.conf"), r: rand.New(rand.NewPCG(20, 4)),
	}
	if err := os.WriteFile(c.conf, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	c.StartSchedulerBy(t, conf)
	for i := range *cases {
		jobs := c.populate(t, i)
		c.rest(t, jobs)
		flags, change := c.draw(t, i, jobs)
		said := c.simulate(t, flags...)
		change()
		var got map[string]int
		since := time.Now()
		env.Eventually(t, 30*time.Second, func() string {
			if got = c.placed(t, slices.Collect(maps.Keys(said))); !maps.Equal(got, said) {
				since = time.Now()
			}
			if time.Since(since) < time.Second {
				return fmt.Sprintf("case %d, %v: of each job so many pods have nodes: %v, and %v was said", i, flags, got, said)
			}
			return ""
		})
		c.clear(t, slices.Collect(maps.Keys(said)))
	}
}

// populate creates two queues and some jobs, and returns their names.
func (c *cluster) populate(t *testing.T, number int) []string {
	t.Helper()
	for i := range 2 {
		queue := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("q%d-%d", number, i)}, Spec: volcano.QueueSpec{
			Weight: 1, Capability: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(strconv.Itoa(8 + c.r.IntN(24)))},
		}}
		if _, err := c.Volcano.SchedulingV1beta1().Queues().Create(t.Context(), queue, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for i := range 4 + c.r.IntN(3) {
		g := c.gang(fmt.Sprintf("j%d-%d", number, i), number)
		c.Create(t, g)
		names = append(names, g.Name)
		// Who came first is known by the second.
		c.rest(t, names)
	}
	return names
}

// gang draws a job.
func (c *cluster) gang(name string, number int) env.Gang {
	size := 1 + c.r.IntN(6)
	return env.Gang{
		Name: name, Queue: fmt.Sprintf("q%d-%d", number, c.r.IntN(2)), Min: 1 + c.r.IntN(size), Size: size, CPU: strconv.Itoa(1 + c.r.IntN(4)),
		Pod: func(_ int, p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Trainer", Name: name, UID: types.UID(name), Controller: new(true)}}
		},
	}
}

// rest waits until nothing has changed for a while.
func (c *cluster) rest(t *testing.T, jobs []string) {
	t.Helper()
	before, since := map[string]int{}, time.Now()
	env.Eventually(t, time.Minute, func() string {
		now := c.placed(t, jobs)
		if !maps.Equal(before, now) {
			before, since = now, time.Now()
		}
		if time.Since(since) < 500*time.Millisecond {
			return "pods get nodes"
		}
		return ""
	})
}

// placed is how many pods of each job have nodes.
func (c *cluster) placed(t *testing.T, jobs []string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for _, name := range jobs {
		counts[name], _ = c.Bound(t, name)
	}
	return counts
}

// draw draws a change: the flags by which it is simulated, and what makes it.
func (c *cluster) draw(t *testing.T, number int, jobs []string) (flags []string, change func()) {
	t.Helper()
	if c.r.IntN(3) > 0 {
		node := c.node(t)
		return []string{"--drain", node}, func() { c.drain(t, node, jobs) }
	}
	queue, cpus := fmt.Sprintf("q%d-%d", number, c.r.IntN(2)), strconv.Itoa(4+c.r.IntN(40))
	return []string{"--set", fmt.Sprintf("queue.%s.capability.cpu=%s", queue, cpus)}, func() {
		patch := fmt.Appendf(nil, `{"spec":{"capability":{"cpu":%q}}}`, cpus)
		if _, err := c.Volcano.SchedulingV1beta1().Queues().Patch(t.Context(), queue, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// node draws the name of a node.
func (c *cluster) node(t *testing.T) string {
	t.Helper()
	list, err := c.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items[c.r.IntN(len(list.Items))].Name
}

// drain does what kubectl drain and the controllers of the pods do.
func (c *cluster) drain(t *testing.T, node string, jobs []string) {
	t.Helper()
	c.cordon(t, node, true)
	list, err := c.Kube.CoreV1().Pods(env.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		gone := &list.Items[i]
		c.replaced++
		again := env.Pod(fmt.Sprintf("%s-r%d", gone.Name, c.replaced), "")
		again.Labels, again.Annotations, again.OwnerReferences = gone.Labels, gone.Annotations, gone.OwnerReferences
		again.Spec.Containers[0].Resources = gone.Spec.Containers[0].Resources
		c.CreatePods(t, again)
	}
	// Pods end at times of their own.
	for i := range list.Items {
		c.DeletePods(t.Context(), t, &list.Items[i])
		c.rest(t, jobs)
	}
}

func (c *cluster) cordon(t *testing.T, node string, closed bool) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, closed)
	if _, err := c.Kube.CoreV1().Nodes().Patch(t.Context(), node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// simulate returns how many pods of each job have nodes after a change, as the command says.
func (c *cluster) simulate(t *testing.T, flags ...string) map[string]int {
	t.Helper()
	cmd, out := simulate.New(), &bytes.Buffer{}
	cmd.SetOut(out)
	cmd.SetArgs(append([]string{"--live", "--kubeconfig", c.Kubeconfig, "--config", c.conf, "-o", "json"}, flags...))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v: %v", flags, err)
	}
	var said report.Comparison
	if err := json.Unmarshal(out.Bytes(), &said); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, j := range said.With.Jobs {
		counts[j.Name] = j.Placed
	}
	return counts
}

// clear deletes all jobs and new nodes, and opens all others.
func (c *cluster) clear(t *testing.T, jobs []string) {
	t.Helper()
	for _, name := range jobs {
		c.Delete(t, name)
	}
	for _, name := range c.added {
		if err := c.Kube.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.added = nil
	list, err := c.Kube.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Spec.Unschedulable {
			c.cordon(t, list.Items[i].Name, false)
		}
	}
	// Kubelets that were refused a write wait before they try again.
	env.Eventually(t, 2*time.Minute, func() string {
		left, err := c.Kube.CoreV1().Pods(env.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(left.Items) > 0 {
			return fmt.Sprintf("%d pods are left: %v", len(left.Items), err)
		}
		return ""
	})
}

// TestASnapshotIsSimulated: what snapshot writes is what simulate reads, and it has no settings of what runs.
func TestASnapshotIsSimulated(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=8,memory=32Gi"}})
	e.StartSchedulerBy(t, conf)
	e.Create(t, env.Gang{Name: "runs", Min: 2, Size: 2, CPU: "2", Pod: func(_ int, p *corev1.Pod) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", Value: "very-secret"}}
		p.Spec.Containers[0].Command = []string{"sh", "-c", "very-secret"}
	}})
	env.Eventually(t, time.Minute, e.AllBound(t, "runs", 2))
	cmd, out := snapshot.New(), &bytes.Buffer{}
	cmd.SetOut(out)
	cmd.SetArgs([]string{"--kubeconfig", e.Kubeconfig})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "very-secret") || strings.Contains(out.String(), "managedFields") {
		t.Errorf("the snapshot says too much:\n%s", out)
	}
	file := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(file, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	simulation, table := simulate.New(), &bytes.Buffer{}
	simulation.SetOut(table)
	simulation.SetArgs([]string{file, "--set", "node.node-0000.unschedulable=true"})
	if err := simulation.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := "The changes change nothing for any of 1 job.\n"; table.String() != want {
		t.Errorf("simulated, the snapshot is\n%s\nwant\n%s", table, want)
	}
}
