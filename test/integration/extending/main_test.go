// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/localcluster"
	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins"
	"github.com/caldera-scheduler/caldera/pkg/scheduler/core"
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
	r, err := simulated(t, conf, world, own)
	if err != nil {
		return nil, err
	}
	return places(r), nil
}

// simulated simulates a world at noon by a configuration, which may be a volcano-scheduler.conf.
func simulated(t *testing.T, conf, world string, extensions plugins.Extensions) (*simulate.Result, error) {
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
	c, err := profile.Read(file, []byte(conf), profile.Second, slices.Collect(maps.Keys(extensions.Policies))...)
	if err != nil {
		return nil, err
	}
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(-1)))
	return simulate.Run(klog.NewContext(t.Context(), logger), objects, simulate.Options{Config: c, Now: noon, Extensions: extensions})
}

// places are the nodes of pods by their names.
func places(r *simulate.Result) map[string]string {
	on := map[string]string{}
	for _, p := range r.Pods {
		on[p.Name] = p.Node
	}
	return on
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

// running returns a PodGroup of a queue whose pods have run on a node since a time, each with a core.
func running(name, queue, node string, size int, since string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s}\nspec: {minMember: 1, queue: %s}\nstatus: {phase: Running}\n", name, queue)
	for i := range size {
		fmt.Fprintf(&b, `---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s-%[2]d, annotations: {scheduling.k8s.io/group-name: %[1]s}}
spec: {schedulerName: volcano, nodeName: %[3]s, containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}
status: {phase: Running, startTime: "%[4]s"}
`, name, i, node, since)
	}
	return b.String()
}

// TestJobsEvictThoseOfALowerGrade has a full node, and a gang of one that waits, in Volcano's form of configuration.
func TestJobsEvictThoseOfALowerGrade(t *testing.T) {
	const conf = "actions: \"allocate, %s, backfill\"\ntiers:\n- plugins:\n  - {name: grade, arguments: {settling: 10m}}\n  - name: gang\n"
	const queue = "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: other}\nspec: {weight: 1}\n"
	graded := func(grade string) string { return gang("high", 1, `, annotations: {example.com/grade: "`+grade+`"}`) }
	for name, tc := range map[string]struct {
		action, queue, since, grade string
		// evicted is how many pods go, waits what the gang says that waits; empty: it has its node.
		evicted int
		waits   string
	}{
		"of the same queue":           {"preempt", "default", "2026-08-15T11:00:00Z", "1", 1, ""},
		"of another queue":            {"reclaim", "other", "2026-08-15T11:00:00Z", "1", 1, ""},
		"not by the other action":     {"preempt", "other", "2026-08-15T11:00:00Z", "1", 0, "no room"},
		"not of its own grade":        {"preempt", "default", "2026-08-15T11:00:00Z", "0", 0, "no room"},
		"not what has just started":   {"preempt", "default", "2026-08-15T11:55:00Z", "1", 0, "it started less than 10m0s ago"},
		"a grade that is none at all": {"preempt", "default", "2026-08-15T11:00:00Z", "A", 0, `the annotation example.com/grade is "A": write a whole number`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := simulated(t, fmt.Sprintf(conf, tc.action), queue+node("n1", 2)+running("low", tc.queue, "n1", 2, tc.since)+graded(tc.grade), own)
			if err != nil {
				t.Fatal(err)
			}
			for _, job := range r.Jobs {
				switch {
				case job.Name == "low" && job.Evicted != tc.evicted:
					t.Errorf("%d pods were evicted, want %d", job.Evicted, tc.evicted)
				case job.Name == "high" && job.Started != (tc.waits == ""):
					t.Errorf("the gang has started: %v; it waits for %v", job.Started, job.Waits)
				case job.Name == "high" && tc.waits != "" && tc.waits != "no room" && (job.Waits == nil || !strings.Contains(job.Waits.Message, tc.waits)):
					t.Errorf("the gang waits for %v, want %q", job.Waits, tc.waits)
				}
			}
		})
	}
}

// apart has gangs start on two nodes at least.
type apart struct{}

func (apart) NotReady(job *model.Job) (why string) {
	if nodes := job.Nodes(); len(slices.Compact(slices.Sorted(slices.Values(nodes)))) < 2 {
		return "all of it would be on " + strings.Join(nodes[:1], "")
	}
	return ""
}

func TestAPolicyMayFindAGangNotReady(t *testing.T) {
	extensions := plugins.Extensions{Policies: map[string]core.PolicyFactory{"apart": func(*config.TierPlugin) (any, error) { return apart{}, nil }}}
	for name, tc := range map[string]struct {
		conf, world, waits string
	}{
		"all on one node": {"{name: apart}, {name: gang}", node("n1", 4), "all of it would be on n1"},
		"on two nodes":    {"{name: apart}, {name: gang}", node("n1", 1) + node("n2", 1), ""},
		"when it is not asked": {
			"{name: apart, enableJobReady: false}, {name: gang}", node("n1", 4), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := simulated(t, "actions: allocate\ntiers:\n- plugins: ["+tc.conf+"]\n", tc.world+gang("train", 2, ""), extensions)
			if err != nil {
				t.Fatal(err)
			}
			job := r.Jobs[0]
			if job.Started != (tc.waits == "") || tc.waits != "" && (job.Waits == nil || job.Waits.Message != tc.waits) {
				t.Errorf("it has started: %v; it waits for %v, want %q", job.Started, job.Waits, tc.waits)
			}
		})
	}
}

// TestTheSchedulerRuns builds the command and has it schedule a gang on a real control plane: away from the node that has pods.
func TestTheSchedulerRuns(t *testing.T) {
	dir := t.TempDir()
	binary := build(t)
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

// command is the program of this folder, which TestMain leaves a place for.
var command struct {
	dir   string
	build sync.Once
	err   error
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "extending")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	command.dir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// build compiles the command, once for all tests.
func build(t *testing.T) (binary string) {
	t.Helper()
	binary = filepath.Join(command.dir, "extending")
	command.build.Do(func() {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			command.err = fmt.Errorf("building the scheduler: %w\n%s", err, out)
		}
	})
	if command.err != nil {
		t.Fatal(command.err)
	}
	return binary
}

// TestVolcanosConfigurationNamesThePolicy: the command with --volcano-conf has the job with the earliest deadline go first.
func TestVolcanosConfigurationNamesThePolicy(t *testing.T) {
	dir := t.TempDir()
	binary := build(t)
	conf := filepath.Join(dir, "volcano-scheduler.conf")
	if err := os.WriteFile(conf, []byte("actions: \"enqueue, allocate\"\ntiers:\n- plugins: [{name: deadline}, {name: gang}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := env.New(t, localcluster.Options{Nodes: 1, Shapes: []string{"cpu=8,memory=64Gi"}})
	e.Create(t, env.Gang{Name: "early", Min: 1, Size: 1, CPU: "8"})
	e.Create(t, env.Gang{Name: "urgent", Min: 1, Size: 1, CPU: "8", Group: func(g *volcano.PodGroup) {
		g.Annotations = map[string]string{"example.com/deadline": "2026-08-15T13:00:00Z"}
	}})
	p, err := schedulerprocess.Start(schedulerprocess.Options{Binary: binary, Dir: dir, Args: []string{
		"--volcano-conf=" + conf, "--kubeconfig=" + e.Kubeconfig, "--leader-elect=false", "--secure-port=0",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	env.Eventually(t, time.Minute, e.AllBound(t, "urgent", 1))
	if bound, _ := e.Bound(t, "early"); bound != 0 {
		t.Error("the gang without a deadline is on the node, too")
	}
}
