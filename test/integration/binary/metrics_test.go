// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package binary_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestMetricsAreServedWhateverJobsAreCalled: jobs of one name wait in two namespaces, which Volcano's metrics do not tell apart. With
// --volcano-metrics there are those of latencies as well.
func TestMetricsAreServedWhateverJobsAreCalled(t *testing.T) {
	t.Parallel()
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=8,memory=32Gi"}})
	port, err := schedulerprocess.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	start(t, schedulerprocess.Options{Kubeconfig: e.Kubeconfig, Port: port, Args: []string{
		"--volcano-metrics", "--authentication-kubeconfig=" + e.Kubeconfig, "--authorization-kubeconfig=" + e.Kubeconfig,
	}})
	e.Create(t, env.Gang{Name: "fits", Min: 2, Size: 2, CPU: "1"})
	e.Create(t, env.Gang{Name: "waits", Min: 2, Size: 2, CPU: "9"})
	namesake := &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "waits"}, Spec: volcano.PodGroupSpec{MinMember: 2}}
	if _, err := e.Volcano.SchedulingV1beta1().PodGroups("kube-public").Create(t.Context(), namesake, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		pod := builders.Member("kube-public", "waits", name, "9").UID("").Obj()
		if _, err := e.Kube.CoreV1().Pods("kube-public").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	env.Eventually(t, time.Minute, e.AllBound(t, "fits", 2))

	client, base, err := schedulerprocess.Endpoints(port, e.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`volcano_unschedule_task_count{job_id="waits"} 4`,
		`volcano_e2e_job_scheduling_start_time{job_name="waits",job_namespace="kube-public",queue="default"} `,
		`volcano_e2e_job_scheduling_duration{job_name="fits",job_namespace="` + env.Namespace + `",queue="default"} `,
		`volcano_e2e_job_scheduling_last_time{job_name="fits",`,
		"volcano_e2e_job_scheduling_latency_milliseconds_count 2",
		`volcano_task_scheduling_latency_milliseconds_count{stage="Watched"} 6`,
		`volcano_task_scheduling_latency_milliseconds_count{stage="Assumed"} 2`,
		`volcano_task_scheduling_latency_milliseconds_count{stage="Bound"} 2`,
		`volcano_action_scheduling_latency_milliseconds_count{action="allocate"} `,
		"volcano_e2e_scheduling_latency_milliseconds_count ",
	}
	env.Eventually(t, time.Minute, func() string {
		response, err := client.Get(base + "/metrics")
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close() //nolint:errcheck // It was only read.
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			return response.Status + ": " + string(text)
		}
		for _, line := range want {
			if !strings.Contains(string(text), "\n"+line) {
				return "/metrics does not have " + line
			}
		}
		return ""
	})
}
