// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/report"
)

var rewrite = flag.Bool("rewrite", false, "write the files of testdata again")

// figures are those of two queues, one of which is limited.
func figures(held, share float64) simulate.Figures {
	return simulate.Figures{
		Queues: map[string]simulate.QueueFigures{
			"default": {
				Allocated: simulate.Amounts{}, Request: simulate.Amounts{}, Deserved: simulate.Amounts{}, Inqueue: simulate.Amounts{},
				RealCapability: simulate.Amounts{corev1.ResourceCPU: math.Inf(1), corev1.ResourceMemory: math.Inf(1)}, Share: new(0.0),
			},
			"research": {
				Allocated:      simulate.Amounts{corev1.ResourceCPU: 1000 * held, corev1.ResourceMemory: held * (1 << 30), "nvidia.com/gpu": 0},
				Request:        simulate.Amounts{corev1.ResourceCPU: 8000, corev1.ResourceMemory: 8 << 30},
				Deserved:       simulate.Amounts{corev1.ResourceCPU: 2666.6667, corev1.ResourceMemory: 4 << 30, "nvidia.com/gpu": 2},
				Inqueue:        simulate.Amounts{},
				RealCapability: simulate.Amounts{corev1.ResourceCPU: 4000, corev1.ResourceMemory: math.Inf(1), "nvidia.com/gpu": 2},
				Share:          new(share),
			},
		},
		JobShares: map[string]float64{"team/train": held / 8},
	}
}

// results are what the files of testdata are written from.
func results() map[string]*simulate.Result {
	full := &simulate.Result{
		Rounds: 3, Settled: true,
		Nodes: []string{"n1", "n2", "n3"},
		Pods: []simulate.Pod{
			{Namespace: "other", Name: "web", State: simulate.PodPending, Message: "0/3 nodes are available: 3 Insufficient cpu."},
			{Namespace: "team", Name: "alone", Node: "n2", State: simulate.PodBound, Round: 3},
			{Namespace: "team", Name: "old-0", Job: "old", Node: "n2", State: simulate.PodTerminating},
			{Namespace: "team", Name: "old-1", Job: "old", Node: "n1", State: simulate.PodRunning},
			{Namespace: "team", Name: "train-0", Job: "train", Node: "n1", State: simulate.PodRunning, Round: 1},
			{Namespace: "team", Name: "train-1", Job: "train", Node: "n1", State: simulate.PodRunning, Round: 1},
			{Namespace: "team", Name: "train-2", Job: "train", Node: "n2", State: simulate.PodRunning, Round: 1},
			{Namespace: "team", Name: "train-3", Job: "train", State: simulate.PodPending},
			{Namespace: "team", Name: "wide-0", Job: "wide", State: simulate.PodPending, Message: "no room"},
		},
		Jobs: []simulate.Job{
			{Namespace: "team", Name: "alone", Queue: "default", MinMember: 1, Pods: 1, Placed: 1, Started: true},
			{Namespace: "team", Name: "old", PodGroup: true, Queue: "default", MinMember: 1, Phase: volcano.PodGroupRunning, Pods: 2, Placed: 1, Evicted: 1, Started: true},
			{
				Namespace: "team", Name: "train", PodGroup: true, Queue: "research", MinMember: 3, Phase: volcano.PodGroupRunning, Pods: 4, Placed: 3, Started: true,
				Conditions: []simulate.Condition{{Type: "Scheduled", Status: "True", Reason: "tasks in gang are ready to be scheduled"}},
				Waits:      &simulate.Reason{Kind: model.NotEnoughResources, Message: "3/4 tasks in gang schedulable: insufficient cpu, short by 1"},
			},
			{
				Namespace: "team", Name: "wide", PodGroup: true, Queue: "research", MinMember: 100, Phase: volcano.PodGroupPending, Pods: 1,
				Waits: &simulate.Reason{Kind: model.NotEnoughTasks, Message: "1 of 100 pods exist: create the missing ones, or lower spec.minMember"},
			},
		},
		Queues: []simulate.Queue{
			{Name: "default", State: volcano.QueueStateOpen, Parent: "root"},
			{Name: "research", State: volcano.QueueStateClosed},
		},
		Initial: figures(0, 0),
		Final:   figures(3, 1.125),
	}
	many := &simulate.Result{Rounds: 1, Nodes: []string{"n1"}}
	for i := range 9 {
		name := "g-" + string(rune('0'+i))
		many.Pods = append(many.Pods, simulate.Pod{Namespace: "default", Name: name, Job: "g", Node: "n1", State: simulate.PodBound, Round: 1})
	}
	many.Jobs = []simulate.Job{{Namespace: "default", Name: "g", PodGroup: true, Queue: "default", MinMember: 9, Pods: 9, Placed: 9, Started: true, Phase: volcano.PodGroupRunning}}
	return map[string]*simulate.Result{"full": full, "many": many, "empty": {
		Rounds: 1, Settled: true, Pods: []simulate.Pod{}, Jobs: []simulate.Job{}, Queues: []simulate.Queue{}, Nodes: []string{},
		Initial: simulate.Figures{Queues: map[string]simulate.QueueFigures{}}, Final: simulate.Figures{Queues: map[string]simulate.QueueFigures{}},
	}}
}

func TestResultsAreWrittenAsInTheFiles(t *testing.T) {
	for name, result := range results() {
		for _, format := range report.Formats() {
			t.Run(name+"/"+format, func(t *testing.T) {
				var got strings.Builder
				if err := report.Write(&got, format, result); err != nil {
					t.Fatal(err)
				}
				file := filepath.Join("testdata", name+"."+format)
				if *rewrite {
					if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got.String()); diff != "" {
					t.Errorf("%s (-want,+got)\n%s", file, diff)
				}
			})
		}
	}
}

func TestAnUnknownFormatIsAnErrorThatNamesTheKnownOnes(t *testing.T) {
	err := report.Write(&strings.Builder{}, "xml", &simulate.Result{})
	if err == nil || !strings.Contains(err.Error(), "table, json, conformance") {
		t.Errorf("got %v", err)
	}
}
