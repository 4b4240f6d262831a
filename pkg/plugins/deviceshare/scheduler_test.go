// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package deviceshare_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// gangOf is a PodGroup of pods with a vGPU of so many megabytes each.
func gangOf(name string, size, megabytes int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s}\nspec: {minMember: %d}\n", name, size)
	for i := range size {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: %[1]s-%[2]d, annotations: {scheduling.k8s.io/group-name: %[1]s}}\n"+
			"spec: {schedulerName: volcano, containers: [{name: c, image: i, resources: {limits: "+
			"{volcano.sh/vgpu-number: 1, volcano.sh/vgpu-memory: %[3]d}}}]}\n", name, i, megabytes)
	}
	return b.String()
}

// TestPodsAskForAPercentageOfACard: no node has such a resource, and no queue is limited in it. Two pods of 50 percent share the card; one of 60 waits for
// the card, and not for what it writes as a resource.
func TestPodsAskForAPercentageOfACard(t *testing.T) {
	var file strings.Builder
	file.WriteString("---\napiVersion: v1\nkind: Node\nmetadata: {name: a, annotations: {volcano.sh/node-vgpu-register: 'g,10,8000,NVIDIA-T4,true,hami-core:'}}\n" +
		"status: {allocatable: {cpu: 8, memory: 8Gi, volcano.sh/vgpu-number: 10, volcano.sh/vgpu-memory: 8000, volcano.sh/vgpu-cores: 100}}\n")
	for i, percent := range []int{50, 50, 60} {
		fmt.Fprintf(&file, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec: {schedulerName: volcano, containers: [{name: c, image: i, resources: {limits: "+
			"{volcano.sh/vgpu-number: 1, volcano.sh/vgpu-memory-percentage: %d}}}]}\n", i, percent)
	}
	got := decided(t, file.String())
	const missing = "hami-vgpuDeviceSharing error: fewer than 1 card(s) left for container c, too little memory"
	want := map[string]job{
		"p0": {1, ""}, "p1": {1, ""},
		"p2": {0, fmt.Sprintf("%[1]s; 0/1 nodes are available for the next one: 1 %[1]s", missing)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
}

// job is how many pods of a job are placed, and why it waits.
type job struct {
	Placed int
	Reason string
}

// decided runs the whole scheduler on objects, and returns what became of the jobs.
func decided(t *testing.T, file string) map[string]job {
	t.Helper()
	now := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	read, err := scenario.Read("scenario", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := scenario.Complete(read, now)
	if err != nil {
		t.Fatal(err)
	}
	config, err := profile.Read("conf", []byte("actions: enqueue, allocate\ntiers: [{plugins: [{name: gang}, {name: proportion}, {name: predicates}, "+
		"{name: deviceshare, arguments: {deviceshare.VGPUEnable: true}}]}]"), profile.Second)
	if err != nil {
		t.Fatal(err)
	}
	result, err := simulate.Run(t.Context(), objects, simulate.Options{Config: config, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]job{}
	for _, j := range result.Jobs {
		reason := ""
		if j.Waits != nil {
			reason = j.Waits.Message
		}
		got[j.Name] = job{j.Placed, reason}
	}
	return got
}

// TestGangsShareCards runs the whole scheduler: two nodes with a card of 8000 each take a gang of two pods of 5000, one of two pods
// of 3000, and no other.
func TestGangsShareCards(t *testing.T) {
	var file strings.Builder
	for _, name := range []string{"a", "b"} {
		fmt.Fprintf(&file, "---\napiVersion: v1\nkind: Node\nmetadata: {name: %s, annotations: {volcano.sh/node-vgpu-register: 'g,10,8000,NVIDIA-T4,true,hami-core:'}}\n"+
			"status: {allocatable: {cpu: 8, memory: 8Gi, volcano.sh/vgpu-number: 10, volcano.sh/vgpu-memory: 80000, volcano.sh/vgpu-cores: 100}}\n", name)
	}
	file.WriteString(gangOf("first", 2, 5000) + gangOf("second", 2, 4000) + gangOf("third", 2, 3000))
	got := decided(t, file.String())
	const missing = "hami-vgpuDeviceSharing error: fewer than 1 card(s) left for container c, too little memory"
	want := map[string]job{
		"first":  {2, ""},
		"second": {0, fmt.Sprintf("0/2 tasks in gang schedulable: %[1]s; 0/2 nodes are available for the next one: 2 %[1]s", missing)},
		"third":  {2, ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
}
