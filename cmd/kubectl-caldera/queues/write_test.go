// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package queues

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
)

// amounts are GPUs and cores.
func amounts(gpus, cores string) corev1.ResourceList {
	return corev1.ResourceList{"nvidia.com/gpu": resource.MustParse(gpus), "cpu": resource.MustParse(cores)}
}

func tables() []View {
	now := metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	queue := func(name, parent string, s v1alpha1.QueueViewStatus) View {
		s.AsOf, s.Parent = now, parent
		if s.State == "" {
			s.State = "Open"
		}
		return View{name, &s}
	}
	return []View{
		queue("lab", "root", v1alpha1.QueueViewStatus{Held: amounts("10", "20"), Due: amounts("12", "40"), Waiting: 3, WaitingSince: new(metav1.NewTime(now.Add(-time.Hour)))}),
		queue("night", "lab", v1alpha1.QueueViewStatus{Held: amounts("9", "1"), Due: amounts("4", "1"), Limit: amounts("16", "1")}),
		queue("day", "lab", v1alpha1.QueueViewStatus{Held: amounts("1", "1"), State: "Closed", Waiting: 1, ReservedFor: &v1alpha1.JobReference{Namespace: "ml", Name: "big"}}),
		queue("root", "", v1alpha1.QueueViewStatus{}),
		queue("prod", "root", v1alpha1.QueueViewStatus{LimitOfOthers: v1alpha1.NothingElse, Fault: &v1alpha1.Reason{Message: "its guarantee is more than its parent has"}}),
		queue("ring-a", "ring-b", v1alpha1.QueueViewStatus{}), queue("ring-b", "ring-a", v1alpha1.QueueViewStatus{}),
	}
}

func TestQueuesAreATree(t *testing.T) {
	const want = `QUEUE          GPU HELD   DUE   LIMIT   WAITING   OLDEST   STATE
root           0          -     -       0         -        Open
├─ lab         10         12    -       3         60m      Open, 2 below its due
│  ├─ day      1          -     -       1         -        Closed, room is reserved for ml/big
│  └─ night    9          4     16      0         -        Open, borrows 5
└─ prod        0          -     0       0         -        Left out: its guarantee is more than its parent has
ring-a         0          -     -       0         -        Open
ring-b         0          -     -       0         -        Open
`
	var out strings.Builder
	if err := write(&out, tables(), "", false); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Fields(want), strings.Fields(out.String())); diff != "" {
		t.Errorf("(-want,+got)\n%s\n%s", diff, out.String())
	}
	// Columns are aligned by what people see, not by bytes.
	column := 0
	for i, line := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
		runes := []rune(line)
		if i == 0 {
			column = strings.Index(line, "GPU")
		} else if runes[column] == ' ' || runes[column-1] != ' ' {
			t.Errorf("line %d does not have its second column at %d: %q", i, column, line)
		}
	}
}

func TestOneResourceIsShown(t *testing.T) {
	var out strings.Builder
	if err := write(&out, tables(), "cpu", false); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "CPU HELD") || !strings.Contains(got, "20 below its due") {
		t.Errorf("by cpu the table is\n%s", got)
	}
	if name := Shown([]View{{"a", &v1alpha1.QueueViewStatus{Held: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}); name != corev1.ResourceCPU {
		t.Errorf("without devices %s is shown", name)
	}
}

func TestWideShowsAllResources(t *testing.T) {
	var out strings.Builder
	if err := write(&out, tables(), "", true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"cpu", "nvidia.com/gpu", "GUARANTEE"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the wide table lacks %s\n%s", want, out.String())
		}
	}
}
