// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package tiers_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// TestMixed has two nodes for everybody, one with GPUs, and one each of two zones, of which the first is in its window now.
func TestMixed(t *testing.T) {
	s := open(t, localcluster.Options{Shapes: []string{
		"name=cpu,count=2,cpu=8,memory=32Gi",
		"name=gpu,count=1,cpu=16,memory=64Gi,nvidia.com/gpu=8",
		"name=night,count=1,cpu=8,memory=32Gi,label:volcano.sh/revocable-zone=night",
		"name=lunch,count=1,cpu=8,memory=32Gi,label:volcano.sh/revocable-zone=lunch",
	}})
	server := httptest.NewServer(licences(t))
	t.Cleanup(server.Close)
	later := time.Now().Add(6 * time.Hour)
	s.run("mixed.conf", []decision{
		priority,
		gang,
		conformance,
		{
			plugin:  "cdp",
			seen:    "a pod that was scheduled just now and says that this protects it stays, and the other one makes way",
			without: "the younger one makes way",
			play:    func(s *fixture) { s.protects(annotated(model.CooldownKey, "10m"), nil) },
		},
		{
			plugin:  "pdb",
			seen:    "a pod that a disruption budget does not let go stays, and the other one makes way",
			without: "the younger one is to make way, and the API server refuses that",
			play: func(s *fixture) {
				s.protects(labelled("app", "web"), func() { s.budget("web", map[string]string{"app": "web"}) })
			},
		},
		tdm,
		predicates,
		{
			plugin:  "proportion",
			seen:    "a job above the limit of its queue is not let in, and the same one in another queue runs",
			without: "both run",
			play: func(s *fixture) {
				s.queue("small", volcano.QueueSpec{Capability: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}})
				s.waits(of("small", needing("4", job("large", 1, 1, "4"))), model.NotAdmitted)
				s.runs(needing("4", job("same", 1, 1, "4")), 1)
			},
		},
		nodeOrder,
		strategies,
		extender,
	},
		"http://127.0.0.1:8713/v1", server.URL+"/v1",
		"22:00-6:00", "0:00-0:00",
		"12:00-13:00", later.Format("15:04")+"-"+later.Add(time.Hour).Format("15:04"),
	)
}

var tdm = decision{
	plugin:  "tdm",
	seen:    "a pod that may be evicted goes to the node whose zone is in its window, and waits for one whose zone is not; one that may not waits for both",
	without: "all run on the nodes that they ask for",
	play: func(s *fixture) {
		guest := annotated(model.RevocableZoneKey, "*")
		s.expect("guest", s.runs(job("guest", 1, 1, "1", guest), 1), "night-0000")
		s.waits(job("early", 1, 1, "1", guest, on("lunch-0000")), model.NotEnoughResources)
		s.waits(job("resident", 1, 1, "1", on("night-0000")), model.NotEnoughResources)
	},
}

var strategies = decision{
	plugin: "resource-strategy-fit",
	seen: "a pod without GPUs goes to a node without any though that with GPUs is emptier; one that leaves less than a core for each " +
		"idle GPU waits, and the same one with a GPU runs",
	without: "the first one goes to the node with GPUs, and all run",
	play: func(s *fixture) {
		s.hold("busy", two, "4")
		s.hold("also", one, "2")
		s.expect("plain", s.runs(job("plain", 1, 1, "1"), 1), one)
		s.waits(job("greedy", 1, 1, "10", on("gpu-0000")), model.NotEnoughResources)
		s.runs(job("device", 1, 1, "10", on("gpu-0000"), limited("1", gpu)), 1)
	},
}

var extender = decision{
	plugin: "extender",
	seen: "a pod without a licence for the node that it prefers goes to another one, and one with a licence does not; a job that the " +
		"server withholds waits",
	without: "both are on the node that they prefer, and the job runs",
	play: func(s *fixture) {
		s.expect("unlicensed", s.runs(job("unlicensed", 1, 1, "1", labelled("licence", "none"), prefers(one)), 1), two)
		s.expect("licensed", s.runs(job("licensed", 1, 1, "1", labelled("licence", "site"), prefers(one)), 1), one)
		s.waits(job("withheld", 1, 1, "1"), model.Withheld)
	},
}

// licences is an extender that keeps pods without a licence off one node, and one job from starting.
func licences(t *testing.T) http.Handler {
	mux := http.NewServeMux()
	answer := func(path string, to func(question) any) {
		mux.HandleFunc("POST /v1/"+path, func(w http.ResponseWriter, r *http.Request) {
			var q question
			if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if err := json.NewEncoder(w).Encode(to(q)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		})
	}
	answer("predicate", func(q question) any {
		if q.Task.Pod.Labels["licence"] == "none" && q.Node.Name == one {
			return map[string]any{"status": "no licence", "code": 3}
		}
		return map[string]any{"status": "", "code": 0}
	})
	answer("jobReady", func(q question) any { return map[string]bool{"status": q.Job.Name != "withheld"} })
	return mux
}

// question is what the extender reads of questions.
type question struct {
	Task struct{ Pod corev1.Pod }
	Node struct{ Name string }
	Job  struct{ Name string }
}

// budget creates a disruption budget that lets no pod with these labels go, and waits until it counts one.
func (s *fixture) budget(name string, of map[string]string) {
	s.t.Helper()
	budgets := s.Kube.PolicyV1().PodDisruptionBudgets(env.Namespace)
	_, err := budgets.Create(s.t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: of},
		},
	}, metav1.CreateOptions{})
	s.must(err)
	env.Eventually(s.t, patience, func() string {
		b, err := budgets.Get(s.t.Context(), name, metav1.GetOptions{})
		if s.must(err); b.Status.CurrentHealthy != 1 {
			return "budget " + name + " does not count its pod"
		}
		return ""
	})
}
