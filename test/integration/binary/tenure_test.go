// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestALeaderThatWakesUpBindsNobody freezes the leader until its lease has run out, has somebody else take the lease, and lets it go on. By upstream's code it would schedule until
// the renewal deadline.
func TestALeaderThatWakesUpBindsNobody(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=8,memory=32Gi"}})
	apply(t, e, "deploy/namespace.yaml")
	p := start(t, schedulerprocess.Options{
		Kubeconfig: e.Kubeconfig, LeaderElection: true,
		Args: []string{"--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2500ms", "--leader-elect-retry-period=200ms"},
	})
	e.Create(t, env.Gang{Name: "before", Min: 4, Size: 4, CPU: "1"})
	env.Eventually(t, time.Minute, e.AllBound(t, "before", 4))

	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Thaw() }) // One that stands still cannot end, one that has ended cannot go on.
	e.Create(t, env.Gang{Name: "meanwhile", Min: 4, Size: 4, CPU: "1"})
	time.Sleep(3 * time.Second) // The lease runs out by the clock of the process, which is that of this machine.
	leases := e.Kube.CoordinationV1().Leases(systemNamespace)
	taken := []byte(`{"spec":{"holderIdentity":"somebody-else","leaseDurationSeconds":60,"renewTime":"` + time.Now().UTC().Format(metav1.RFC3339Micro) + `"}}`)
	if _, err := leases.Patch(t.Context(), "caldera-scheduler", types.MergePatchType, taken, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.Thaw(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Exited():
	case <-time.After(time.Minute):
		t.Fatalf("it has not ended a minute after it woke up; see %s", p.LogFile)
	}
	pods, err := e.Kube.CoreV1().Pods(env.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: env.GroupLabel + "=meanwhile"})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != "" {
			t.Errorf("pod %s was bound to %s by a scheduler that does not lead", pod.Name, pod.Spec.NodeName)
		}
	}
}
