// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
	"github.com/caldera-scheduler/caldera/pkg/simulate/live"
	"github.com/caldera-scheduler/caldera/pkg/simulate/remedy"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// sentences is how many are put to the test, one after the other. Each takes ten seconds.
var (
	sentences = flag.Int("sentences", 6, "How many sentences of explain are put to the test.")
	drawn     = flag.Uint64("drawn", 1, "What the clusters are drawn from in which they are.")
)

// TestWhatIsSaidHelpsInTheCluster: with random jobs in a cluster, one of those that wait is asked about, and one of the changes that would have it
// start is made: all of it, and it starts, or one step less, and it does not. Others would go by the step less, so that both are not made in
// the same cluster.
func TestWhatIsSaidHelpsInTheCluster(t *testing.T) {
	t.Parallel()
	c := &cluster{
		Env: env.New(t, localcluster.Options{Nodes: 5, Shapes: []string{"cpu=8,memory=32Gi"}}), r: rand.New(rand.NewPCG(20, *drawn)),
	}
	c.StartSchedulerBy(t, conf)
	config, err := profile.Read("conf", []byte(conf), profile.Only)
	if err != nil {
		t.Fatal(err)
	}
	told, kinds := 0, map[string]int{}
	for i := 0; told < *sentences; i++ {
		if i > 4**sentences {
			t.Fatalf("only %d of %d clusters had a job that waits and something that helps", told, i)
		}
		for range c.r.IntN(3) {
			c.cordon(t, c.node(t), true)
		}
		jobs := c.populate(t, 1000+i)
		c.rest(t, jobs)
		var waiting []string
		for _, name := range jobs {
			if c.PodGroup(t, name).Spec.MinMember > int32(c.placed(t, jobs)[name]) {
				waiting = append(waiting, name)
			}
		}
		if len(waiting) > 0 {
			if kind := c.helped(t, config, jobs, waiting[c.r.IntN(len(waiting))]); kind != "" {
				told++
				kinds[kind]++
			}
		}
		c.clear(t, jobs)
	}
	t.Logf("what was said: %v", kinds)
}

// helped makes one of the changes that would have a job start, or one step less. It returns what was done; empty if there is no such change.
func (c *cluster) helped(t *testing.T, config *schedulerconfig.KubeSchedulerConfiguration, jobs []string, job string) string {
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
		return ""
	}
	said := possible[c.r.IntN(len(possible))]
	what, changes := "all", said.Changes
	if c.r.IntN(2) == 0 {
		what, changes = "less", slices.Concat(said.First, said.Less)
	}
	after, err := change.Apply(objects, changes...)
	if err != nil {
		t.Fatal(err)
	}
	before := c.placed(t, jobs)
	c.write(t, objects, after)
	starts := func() string {
		least := int(c.PodGroup(t, job).Spec.MinMember)
		if placed := c.placed(t, []string{job})[job]; placed < least {
			return fmt.Sprintf("job %s, %s: %d pods have nodes, it starts with %d", job, said.Text, placed, least)
		}
		return ""
	}
	if what == "all" {
		env.Eventually(t, 30*time.Second, starts)
	} else if c.rest(t, jobs); starts() == "" {
		t.Errorf("job %s, %s: one step less has it start: of each job so many pods had nodes before: %v, after: %v", job, said.Text, before, c.placed(t, jobs))
	}
	return fmt.Sprintf("%s, %s", said.Kind, what)
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
		if err := c.bring(t, was, o); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range had {
		if p, ok := o.(*corev1.Pod); ok {
			c.DeletePods(t.Context(), t, p)
		}
	}
}

// bring writes an object as it is to be; was is nil if there is none.
func (c *cluster) bring(t *testing.T, was, o scenario.Object) (err error) {
	t.Helper()
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
	return err
}
