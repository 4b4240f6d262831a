// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/explain"
	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/jobs"
	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestWhoGoesFirstIsWhatPlacesSay has jobs wait in three queues. Of any two of them "explain order" says what the places say that the scheduler gives them.
func TestWhoGoesFirstIsWhatPlacesSay(t *testing.T) {
	t.Parallel()
	const conf = "actions: enqueue, allocate, backfill\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n- plugins:\n" +
		"  - {name: capacity, enableHierarchy: true}\n  - name: drf\n  - name: predicates\n"
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=8,memory=32Gi"}})
	args, err := schedulerprocess.InstallViews(t.Context(), e.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "volcano-scheduler.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, schedulerprocess.Options{Kubeconfig: e.Kubeconfig, Args: append(args, "--volcano-conf="+file)})
	for _, q := range []struct{ name, parent, deserved string }{{"lab", "root", "4"}, {"day", "lab", "2"}, {"night", "lab", "2"}, {"prod", "root", "4"}} {
		_, err := e.Volcano.SchedulingV1beta1().Queues().Create(t.Context(), &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: q.name}, Spec: volcano.QueueSpec{
			Weight: 1, Parent: q.parent, Deserved: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(q.deserved)},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	e.PriorityClass(t, "high", 1000)
	e.Create(t, env.Gang{Name: "holds", Queue: "day", Min: 2, Size: 2, CPU: "1"})
	// Some pods of it run, and others wait.
	e.Create(t, env.Gang{Name: "grown", Queue: "night", Min: 1, Size: 9, CPU: "1"})
	env.Eventually(t, time.Minute, e.AllBound(t, "holds", 2))
	env.Eventually(t, time.Minute, func() string {
		if bound, _ := e.Bound(t, "grown"); bound != 6 {
			return fmt.Sprintf("%d pods of grown have nodes", bound)
		}
		return ""
	})
	for _, g := range []env.Gang{
		{Name: "order", Queue: "night"},
		{Name: "early", Queue: "day"},
		{Name: "late", Queue: "day"},
		{Name: "urgent", Queue: "day", Group: func(g *volcano.PodGroup) { g.Spec.PriorityClassName = "high" }},
		{Name: "other", Queue: "prod"},
	} {
		g.Min, g.Size, g.CPU = 3, 3, "3"
		e.Create(t, g)
	}
	waiting := waits(t, e, "order", "early", "late", "urgent", "other", "grown")
	for name, a := range waiting {
		for other, b := range waiting {
			if name == other {
				continue
			}
			first, second := name, other
			if x, y := a.Position, b.Position; x.Queue > y.Queue || x.Queue == y.Queue && x.InQueue > y.InQueue {
				first, second = other, name
			}
			out, said, err := command(t.Context(), explain.New(), "order", name, other, "--kubeconfig", e.Kubeconfig)
			if err != nil || said != "" || !strings.HasPrefix(out, "default/"+first+" goes before default/"+second+"\n") || strings.Contains(out, "the other way round") {
				t.Errorf("of %s at %+v and %s at %+v is said %v, %s\n%s", name, *a.Position, other, *b.Position, err, said, out)
			}
		}
	}
	for pair, want := range map[string]string{
		"late urgent": "plugin priority", "order grown": "plugin gang", "order other": "plugin capacity", "early late": "RULE", "holds early": "default/holds does not wait (Running)",
		"holds holds": "is one job, under both names",
	} {
		out, _, err := command(t.Context(), explain.New(), append([]string{"order", "--kubeconfig", e.Kubeconfig}, strings.Fields(pair)...)...)
		if said := fmt.Sprint(out, err); !strings.Contains(said, want) {
			t.Errorf("of %s is said %s, want %q", pair, said, want)
		}
	}
	// A job may have the name of the command.
	if out, _, err := command(t.Context(), explain.New(), "order", "--what-if=false", "--kubeconfig", e.Kubeconfig); err != nil || !strings.Contains(out, "PodGroup default/order, queue night: waits") {
		t.Errorf("the job order is explained by %v\n%s", err, out)
	}
	viewer := user(t, e, "viewer")
	bind(t, e, "viewer", "view", false)
	env.Eventually(t, time.Minute, func() string {
		_, _, err := command(t.Context(), explain.New(), "order", "early", "late", "--kubeconfig", viewer)
		if err == nil || !strings.Contains(err.Error(), "takes the right to list nodes") || !strings.Contains(err.Error(), "cannot get resource \"clusterviews\"") {
			return fmt.Sprintf("who may see his namespace only is told %v", err)
		}
		return ""
	})
}

// waits waits until some jobs wait, and no others, and returns what is known of them.
func waits(t *testing.T, e *env.Env, names ...string) map[string]v1alpha1.JobViewStatus {
	t.Helper()
	var found map[string]v1alpha1.JobViewStatus
	since := time.Now()
	env.Eventually(t, time.Minute, func() string {
		out, said, err := command(t.Context(), jobs.New(), "--waiting", "-o", "json", "--kubeconfig", e.Kubeconfig)
		var list v1alpha1.JobViewList
		if err == nil {
			err = json.Unmarshal([]byte(out), &list)
		}
		if err != nil {
			return fmt.Sprint(err, said, out)
		}
		found = map[string]v1alpha1.JobViewStatus{}
		for i := range list.Items {
			found[list.Items[i].Name] = list.Items[i].Status
		}
		missing := len(found) != len(names)
		for _, name := range names {
			missing = missing || found[name].Position == nil
		}
		if missing {
			since = time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return "the jobs that wait are\n" + out
		}
		return ""
	})
	return found
}
