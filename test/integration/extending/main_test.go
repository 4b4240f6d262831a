// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

const file = "config.yaml"

// node returns a node with so many cores.
func node(name string, cores int) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: '%d', memory: 64Gi}}\n", name, cores)
}

// gang returns a PodGroup and its pods of a core each. What is said besides is of its metadata.
func gang(name string, size int, says string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s%s}\nspec: {minMember: %d}\n", name, says, size)
	for i := range size {
		fmt.Fprintf(&b, `---
apiVersion: v1
kind: Pod
metadata: {name: %s-%d, annotations: {scheduling.k8s.io/group-name: %[1]s}}
spec: {schedulerName: volcano, containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}
`, name, i)
	}
	return b.String()
}

// there returns pods that run on a node and ask for nothing.
func there(node string, count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, "---\napiVersion: v1\nkind: Pod\nmetadata: {name: there-%d}\nspec: {nodeName: %s, containers: [{name: c, image: i}]}\nstatus: {phase: Running}\n", i, node)
	}
	return b.String()
}

// play simulates a world by a configuration, and returns where pods are.
func play(t *testing.T, conf, world string) (map[string]string, error) {
	t.Helper()
	read, err := scenario.Read("world", []byte(world))
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, time.August, 15, 12, 0, 0, 0, time.UTC)
	objects, err := scenario.Complete(read, noon)
	if err != nil {
		t.Fatal(err)
	}
	c, err := profile.Decode(file, []byte(conf))
	if err != nil {
		return nil, err
	}
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(-1)))
	r, err := simulate.Run(klog.NewContext(t.Context(), logger), objects, simulate.Options{Config: c, Now: noon, Extensions: own})
	if err != nil {
		return nil, err
	}
	on := map[string]string{}
	for _, p := range r.Pods {
		on[p.Name] = p.Node
	}
	return on, nil
}

func shipped(t *testing.T) string {
	t.Helper()
	conf, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(conf)
}

// TestTheGangWithADeadlineGoesFirst has room for one gang of two, and two of them.
func TestTheGangWithADeadlineGoesFirst(t *testing.T) {
	world := node("n1", 3) + gang("early", 2, `, creationTimestamp: "2026-08-15T11:00:00Z"`) +
		gang("urgent", 2, `, creationTimestamp: "2026-08-15T11:30:00Z", annotations: {example.com/deadline: "2026-08-15T13:00:00Z"}`)
	for name, tc := range map[string]struct{ written, instead, first, last string }{
		"by the policy":                 {"", "", "urgent", "early"},
		"without it the older one does": {"{name: deadline}, ", "", "early", "urgent"},
		"by another annotation":         {"{name: deadline}", "{name: deadline, arguments: {annotation: example.com/other}}", "early", "urgent"},
	} {
		t.Run(name, func(t *testing.T) {
			on, err := play(t, strings.Replace(shipped(t), tc.written, tc.instead, 1), world)
			if err != nil {
				t.Fatal(err)
			}
			if on[tc.first+"-0"] == "" || on[tc.first+"-1"] == "" || on[tc.last+"-0"] != "" || on[tc.last+"-1"] != "" {
				t.Errorf("pods are on %v, want those of %s on nodes and no others", on, tc.first)
			}
		})
	}
}

// TestAGangGoesToTheNodeWithTheFewestPods has three pods of a gang choose between a node with three pods and an empty one: each
// that is placed there counts.
func TestAGangGoesToTheNodeWithTheFewestPods(t *testing.T) {
	on, err := play(t, shipped(t), node("n1", 8)+node("n2", 8)+there("n1", 3)+gang("train", 3, ""))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if got := on[fmt.Sprintf("train-%d", i)]; got != "n2" {
			t.Errorf("pod %d is on %q, want n2: %v", i, got, on)
		}
	}
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ written, instead, want string }{
		"of the plugin":   {"slots: 10", "slots: 0", "slots of FewestPods is 0: it must be at least 1"},
		"of the policy":   {"{name: deadline}", "{name: deadline, arguments: {anotation: x}}", "building the policy deadline at tiers[0].plugins[0]: argument anotation is unknown"},
		"of another name": {"{name: deadline}", "{name: dedline}", `tiers[0].plugins[0].name: Unsupported value: "dedline": did you mean "deadline"?`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := play(t, strings.Replace(shipped(t), tc.written, tc.instead, 1), ""); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestTheSchedulerRuns builds the command and has it schedule a gang on a real control plane: away from the node that has pods.
func TestTheSchedulerRuns(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "extending")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the scheduler: %v\n%s", err, out)
	}
	e := env.New(t, localcluster.Options{Nodes: 2, Shapes: []string{"cpu=8,memory=64Gi"}})
	p, err := schedulerprocess.Start(schedulerprocess.Options{Binary: binary, Kubeconfig: e.Kubeconfig, Config: []byte(shipped(t)), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	e.Create(t, env.Gang{Name: "first", Min: 1, Size: 1, CPU: "1"})
	env.Eventually(t, time.Minute, e.AllBound(t, "first", 1))
	e.Create(t, env.Gang{Name: "second", Min: 1, Size: 1, CPU: "1"})
	env.Eventually(t, time.Minute, e.AllBound(t, "second", 1))
	if on := e.Members(t, "first")[0].Spec.NodeName; on == e.Members(t, "second")[0].Spec.NodeName {
		t.Errorf("both pods are on %s", on)
	}
}
