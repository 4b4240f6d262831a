// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/manifests"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestOneEventAGang: with PerGang the PodGroup's event speaks for the pods with which it starts, and for no others.
func TestOneEventAGang(t *testing.T) {
	t.Parallel()
	shipped, err := manifests.All.ReadFile("config/scheduler-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	profile := []byte("- schedulerName: volcano\n")
	config := bytes.Replace(shipped, profile, append(profile, "  pluginConfig: [{name: Gang, args: {scheduledEvents: PerGang}}]\n"...), 1)
	e := env.New(t, localcluster.Options{Nodes: 3, Shapes: []string{"cpu=8,memory=32Gi"}})
	start(t, schedulerprocess.Options{Kubeconfig: e.Kubeconfig, Config: config})
	e.Create(t, env.Gang{Name: "whole", Min: 4, Size: 4, CPU: "1"})
	e.Create(t, env.Gang{Name: "elastic", Min: 3, Size: 5, CPU: "1"})
	e.CreatePods(t, env.Pod("alone", "1"))
	for name, size := range map[string]int{"whole": 4, "elastic": 5} {
		env.Eventually(t, time.Minute, e.AllBound(t, name, size))
	}
	// Which two pods of the elastic gang are not among its first three is up to the scheduler.
	want := map[string]int{"PodGroup whole": 1, "PodGroup elastic": 1, "Pod of elastic": 2, "Pod of ": 1}
	told := func() string {
		if diff := cmp.Diff(want, scheduledEvents(t, e)); diff != "" {
			return fmt.Sprintf("events differ (-want +got):\n%s", diff)
		}
		return ""
	}
	env.Eventually(t, time.Minute, told)
	env.Consistently(t, time.Second, told)
}

// scheduledEvents counts the events Scheduled by what they are about: PodGroups by name, pods by their group.
func scheduledEvents(t *testing.T, e *env.Env) map[string]int {
	t.Helper()
	list, err := e.Kube.CoreV1().Events(env.Namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Scheduled"})
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, event := range list.Items {
		about := event.InvolvedObject
		if about.Kind != "Pod" {
			counts[about.Kind+" "+about.Name]++
			continue
		}
		group := ""
		for _, name := range []string{"whole", "elastic"} {
			if slices.ContainsFunc(e.Members(t, name), func(p *corev1.Pod) bool { return p.Name == about.Name }) {
				group = name
			}
		}
		counts["Pod of "+group]++
	}
	return counts
}
