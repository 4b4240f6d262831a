// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/caldera-scheduler/caldera/cmd/kubectl-caldera/top"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestWhatIsFreeIsShown has three of the eight GPUs of one node taken, and three of another one's. It is shown once, since nobody looks at a terminal.
func TestWhatIsFreeIsShown(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=8,memory=32Gi,nvidia.com/gpu=8"}})
	args, err := schedulerprocess.InstallViews(t.Context(), e.Cluster)
	if err != nil {
		t.Fatal(err)
	}
	start(t, schedulerprocess.Options{Kubeconfig: e.Kubeconfig, Args: args})
	e.Create(t, env.Gang{Name: "train", Min: 2, Size: 2, CPU: "5", Pod: func(_ int, p *corev1.Pod) {
		three := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("3")}
		p.Spec.Containers[0].Resources.Limits, p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = three, three["nvidia.com/gpu"]
	}})
	env.Eventually(t, time.Minute, e.AllBound(t, "train", 2))
	words := func(text string) map[string]bool {
		lines := map[string]bool{}
		for line := range strings.Lines(text) {
			lines[strings.Join(strings.Fields(line), " ")] = true
		}
		return lines
	}
	env.Eventually(t, time.Minute, func() string {
		out, said, err := command(t.Context(), top.New(), "--kubeconfig", e.Kubeconfig)
		lines := words(out)
		// 5 and 5 are free: of pods of four two fit, and none of eight, though ten are free.
		if err != nil || said != "" || !lines["all 2 nvidia.com/gpu - 10 16 10 4 2 0"] || !strings.Contains(out, "===.....") || !strings.Contains(out, "├─ default") && !strings.Contains(out, "└─ default") {
			return fmt.Sprintf("it shows %v, %s\n%s", err, said, out)
		}
		return ""
	})
	out, _, err := command(t.Context(), top.New(), "nodes", "--kubeconfig", e.Kubeconfig)
	if err != nil || strings.Contains(out, "QUEUE") {
		t.Errorf("nodes alone are %v\n%s", err, out)
	}
	out, _, err = command(t.Context(), top.New(), "queues", "--resource", "cpu", "--kubeconfig", e.Kubeconfig)
	if err != nil || strings.Contains(out, "NODE") || !strings.Contains(out, "CPU") {
		t.Errorf("queues alone are %v\n%s", err, out)
	}
	if _, _, err = command(t.Context(), top.New(), "pods", "--kubeconfig", e.Kubeconfig); err == nil || !strings.Contains(err.Error(), `invalid argument "pods"`) {
		t.Errorf("of pods is said %v", err)
	}
	viewer := user(t, e, "viewer")
	bind(t, e, "viewer", "view", false)
	const refused = `nodes is forbidden: User "system:serviceaccount:default:viewer" cannot list resource "nodes" in API group "" at the cluster scope`
	env.Eventually(t, time.Minute, func() string {
		out, said, err := command(t.Context(), top.New(), "--kubeconfig", viewer)
		if err != nil || said != "" || !strings.Contains(out, "You may not see all queues") || !strings.Contains(out, "default") || !strings.Contains(out, "Nodes are not shown: "+refused) {
			return fmt.Sprintf("a viewer sees %v, %s\n%s", err, said, out)
		}
		return ""
	})
	if _, _, err := command(t.Context(), top.New(), "nodes", "--kubeconfig", viewer); err == nil || err.Error() != refused {
		t.Errorf("a viewer is told of nodes %v", err)
	}
}
