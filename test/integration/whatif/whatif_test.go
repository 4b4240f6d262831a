// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package whatif_test changes a cluster after "kubectl caldera simulate --live" has told what will happen then.
package whatif_test

import (
	"bytes"
	"encoding/json"
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

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"sigs.k8s.io/yaml"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/simulate"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/snapshot"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
	"github.com/caldera-scheduler/caldera/pkg/simulate/live"
	"github.com/caldera-scheduler/caldera/pkg/simulate/remedy"
	"github.com/caldera-scheduler/caldera/pkg/simulate/report"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
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

// cases is how many random changes are made, one after the other.
const cases = 50

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
	for i := range cases {
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

// attempts is how many jobs are asked about.
const attempts = 15

// TestWhatIsSaidHelpsInTheCluster: what would have a job start that waits is done to the cluster, first one step less, and then all.
func TestWhatIsSaidHelpsInTheCluster(t *testing.T) {
	t.Parallel()
	c := &cluster{
		Env: env.New(t, localcluster.Options{Nodes: 5, Shapes: []string{"cpu=8,memory=32Gi"}}), r: rand.New(rand.NewPCG(20, 1)),
	}
	c.StartSchedulerBy(t, conf)
	config, err := profile.Read("conf", []byte(conf), profile.Only)
	if err != nil {
		t.Fatal(err)
	}
	told, kinds := 0, map[remedy.Kind]int{}
	for i := 0; told < attempts; i++ {
		if i > 4*attempts {
			t.Fatalf("only %d of %d clusters had a job that waits and something that helps", told, i)
		}
		for range c.r.IntN(3) {
			c.cordon(t, c.node(t), true)
		}
		jobs := c.populate(t, 100+i)
		c.rest(t, jobs)
		var waiting []string
		for _, name := range jobs {
			if c.PodGroup(t, name).Spec.MinMember > int32(c.placed(t, jobs)[name]) {
				waiting = append(waiting, name)
			}
		}
		if len(waiting) > 0 && c.helped(t, config, waiting[c.r.IntN(len(waiting))], kinds) {
			told++
		}
		c.clear(t, jobs)
	}
	t.Logf("what was said: %v", kinds)
}

// helped does what would have a job start. It reports whether there is such a thing.
func (c *cluster) helped(t *testing.T, config *schedulerconfig.KubeSchedulerConfiguration, job string, kinds map[remedy.Kind]int) bool {
	t.Helper()
	read, err := live.Read(t.Context(), c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	objects, err := scenario.Complete(read, now)
	if err != nil {
		t.Fatal(err)
	}
	result, err := remedy.Find(klog.NewContext(t.Context(), logr.Discard()), objects, func(k model.JobKey) bool { return k.Name == job },
		remedy.Options{Config: config, Now: now, Budget: time.Minute, Most: 20})
	if err != nil {
		t.Fatal(err)
	}
	// Nobody submits a job again here. Of several things each is done at a time of its own, so that others may come between.
	possible := slices.DeleteFunc(result.Remedies, func(r remedy.Remedy) bool {
		return strings.Contains(r.Text, "submitted again") || len(r.First) > 0 || len(r.Changes) > 1 || len(change.Steps(objects, change.Together(r.Changes))) > 1
	})
	if len(possible) == 0 {
		return false
	}
	said := possible[c.r.IntN(len(possible))]
	kinds[said.Kind]++
	least := int(c.PodGroup(t, job).Spec.MinMember)
	objects = c.make(t, objects, said.First)
	less := c.make(t, objects, said.Less)
	c.rest(t, []string{job})
	if placed := c.placed(t, []string{job})[job]; placed >= least {
		t.Errorf("job %s, %s: one step less has it start: %d pods have nodes, it starts with %d", job, said.Text, placed, least)
	}
	// The rest of it, whatever the scheduler has done since.
	want, err := change.Apply(objects, said.Changes...)
	if err != nil {
		t.Fatal(err)
	}
	c.write(t, less, want)
	env.Eventually(t, 30*time.Second, func() string {
		least := int(c.PodGroup(t, job).Spec.MinMember)
		if placed := c.placed(t, []string{job})[job]; placed < least {
			return fmt.Sprintf("job %s, %s: %d pods have nodes, it starts with %d", job, said.Text, placed, least)
		}
		return ""
	})
	return true
}

// make makes changes of objects in the cluster, and returns the objects after them.
func (c *cluster) make(t *testing.T, objects []scenario.Object, changes []change.Change) []scenario.Object {
	t.Helper()
	after, err := change.Apply(objects, changes...)
	if err != nil {
		t.Fatal(err)
	}
	c.write(t, objects, after)
	return after
}

// write writes what is different between two lists of objects.
func (c *cluster) write(t *testing.T, before, after []scenario.Object) {
	t.Helper()
	key := func(o scenario.Object) string { return fmt.Sprintf("%T %s/%s", o, o.GetNamespace(), o.GetName()) }
	had := map[string]scenario.Object{}
	for _, o := range before {
		had[key(o)] = o
	}
	for _, o := range after {
		was := had[key(o)]
		delete(had, key(o))
		var err error
		switch o := o.(type) {
		case *corev1.Node:
			if was == nil {
				n := o.DeepCopy()
				n.ResourceVersion = ""
				_, err = c.Kube.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
				c.added = append(c.added, o.Name)
			} else if o.Spec.Unschedulable != was.(*corev1.Node).Spec.Unschedulable {
				c.cordon(t, o.Name, o.Spec.Unschedulable)
			}
		case *volcano.Queue:
			if !equality.Semantic.DeepEqual(o.Spec, was.(*volcano.Queue).Spec) {
				patch, _ := json.Marshal(map[string]any{"spec": map[string]any{"capability": o.Spec.Capability}})
				_, err = c.Volcano.SchedulingV1beta1().Queues().Patch(t.Context(), o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			}
		case *volcano.PodGroup:
			if o.Spec.MinMember != was.(*volcano.PodGroup).Spec.MinMember {
				patch := fmt.Appendf(nil, `{"spec":{"minMember":%d}}`, o.Spec.MinMember)
				_, err = c.Volcano.SchedulingV1beta1().PodGroups(o.Namespace).Patch(t.Context(), o.Name, types.MergePatchType, patch, metav1.PatchOptions{})
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range had {
		if p, ok := o.(*corev1.Pod); ok {
			c.DeletePods(t.Context(), t, p)
		}
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
	switch c.r.IntN(4) {
	case 0, 1:
		node := c.node(t)
		return []string{"--drain", node}, func() { c.drain(t, node) }
	case 2:
		queue, cpus := fmt.Sprintf("q%d-%d", number, c.r.IntN(2)), strconv.Itoa(4+c.r.IntN(40))
		return []string{"--set", fmt.Sprintf("queue.%s.capability.cpu=%s", queue, cpus)}, func() {
			patch := fmt.Appendf(nil, `{"spec":{"capability":{"cpu":%q}}}`, cpus)
			if _, err := c.Volcano.SchedulingV1beta1().Queues().Patch(t.Context(), queue, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	g := c.gang(fmt.Sprintf("j%d-added", number), number)
	file := filepath.Join(t.TempDir(), "gang.yaml")
	var b bytes.Buffer
	for _, o := range append([]any{g.PodGroup()}, asAny(g.Members())...) {
		document, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		kind := "apiVersion: v1\nkind: Pod\n"
		if b.Len() == 0 {
			kind = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\n"
		}
		fmt.Fprintf(&b, "---\n%s%s", kind, document)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--add", file}, func() {
		// A PodGroup that is there before its pods may be let in before anybody knows what they ask for. In the simulation all is there at once.
		c.CreatePods(t, g.Members()...)
		c.CreateGroup(t, g)
	}
}

func asAny(pods []*corev1.Pod) []any {
	list := make([]any, len(pods))
	for i, p := range pods {
		list[i] = p
	}
	return list
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
func (c *cluster) drain(t *testing.T, node string) {
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
		time.Sleep(200 * time.Millisecond)
		c.DeletePods(t.Context(), t, &list.Items[i])
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
	env.Eventually(t, time.Minute, func() string {
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
