// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

const (
	systemNamespace = "caldera-system"
	serviceAccount  = "caldera-scheduler"
)

// apply creates every object of the shipped files.
func apply(t *testing.T, e *env.Env, files ...string) {
	t.Helper()
	if err := e.Install(t.Context(), manifests.All, files...); err != nil {
		t.Fatal(err)
	}
}

// kubeconfigOf writes a kubeconfig with a token of the scheduler's service account.
func kubeconfigOf(t *testing.T, e *env.Env) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := e.WriteKubeconfig(t.Context(), systemNamespace, serviceAccount, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTheShippedRulesAreEnough runs the program as its service account, with the shipped configuration and leader
// election, and lets it do everything it does: start a gang, refuse another with conditions and events, create queues.
func TestTheShippedRulesAreEnough(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=8,memory=32Gi"}})
	apply(t, e, "deploy/namespace.yaml", "rbac/service-account.yaml", "rbac/roles.yaml", "rbac/bindings.yaml")
	p := start(t, schedulerprocess.Options{Kubeconfig: kubeconfigOf(t, e), LeaderElection: true, Args: []string{"-v=2"}})

	e.Create(t, env.Gang{Name: "fits", Min: 4, Size: 4, CPU: "2"})
	env.Eventually(t, time.Minute, e.AllBound(t, "fits", 4))
	// Small enough to be let in, whether its pods are there by then or not.
	e.Create(t, env.Gang{Name: "elsewhere", Min: 4, Size: 4, CPU: "1", Pod: func(_ int, p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{"zone": "none"}
	}})
	env.Eventually(t, 30*time.Second, e.Waits(t, "elsewhere", model.NotEnoughResources))
	env.Eventually(t, 30*time.Second, func() string {
		events, err := e.Kube.CoreV1().Events(env.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=PodGroup,reason=Unschedulable"})
		switch {
		case err != nil:
			return err.Error()
		case len(events.Items) == 0:
			return "there is no event Unschedulable on a PodGroup"
		case events.Items[0].LastTimestamp.IsZero():
			return "the event has no lastTimestamp"
		}
		return ""
	})
	for _, queue := range []string{model.RootQueue, model.DefaultQueue} {
		if _, err := e.Volcano.SchedulingV1beta1().Queues().Get(t.Context(), queue, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(p.LogFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "forbidden") || strings.Contains(line, "Forbidden") {
			t.Errorf("the shipped rules forbid something: %s", line)
		}
	}
}
