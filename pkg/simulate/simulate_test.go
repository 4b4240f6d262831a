// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

// noon is when the simulations begin.
var noon = time.Date(2026, time.August, 15, 12, 0, 0, 0, time.UTC)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// node returns a node with so many CPUs.
func node(name string, cpus int) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Node\nmetadata: {name: %s}\nstatus: {allocatable: {cpu: '%d', memory: 64Gi}}\n", name, cpus)
}

// group returns a PodGroup with pods of one CPU each.
func group(name string, least, pods int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: %s}\nspec: {minMember: %d}\n", name, least)
	for i := range pods {
		b.WriteString(pod(fmt.Sprintf("%s-%d", name, i), "schedulerName: volcano", name))
	}
	return b.String()
}

// pod returns a pod of one CPU with some more fields of its spec, in a PodGroup if that is named.
func pod(name, spec, group string) string {
	meta := "name: " + name
	if group != "" {
		meta += ", annotations: {scheduling.k8s.io/group-name: " + group + "}"
	}
	return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {%s}\nspec: {%s, containers: [{name: c, image: i, resources: {requests: {cpu: '1'}}}]}\n", meta, spec)
}

// set returns a StatefulSet that says how many of its pods start together, and two pods of it.
func set(least string) string {
	const owned = "ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: s, uid: set, controller: true}]"
	pods := pod("s-0", "schedulerName: volcano", "") + pod("s-1", "schedulerName: volcano", "")
	return "---\napiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: s, uid: set, annotations: {scheduling.volcano.sh/group-min-member: '" + least + "'}}\n" +
		"spec: {podManagementPolicy: Parallel}\n" + strings.NewReplacer("{name: s-0}", "{name: s-0, "+owned+"}", "{name: s-1}", "{name: s-1, "+owned+"}").Replace(pods)
}

const running = "status: {phase: Running}\n"

// run simulates a file by the shipped configuration.
func run(t *testing.T, file string, o simulate.Options) (*simulate.Result, error) {
	t.Helper()
	return runWithin(t.Context(), t, file, o)
}

func runWithin(ctx context.Context, t *testing.T, file string, o simulate.Options) (*simulate.Result, error) {
	t.Helper()
	read, err := scenario.Read("scenario", []byte(file))
	check(t, err)
	objects, err := scenario.Complete(read, noon)
	check(t, err)
	if o.Config == nil {
		o.Config, err = profile.Only.Config()
		check(t, err)
	}
	o.Now = noon
	// Errors only.
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(-1)))
	return simulate.Run(klog.NewContext(ctx, logger), objects, o)
}

// pods describes the pods of a result: "name node state round".
func pods(r *simulate.Result) []string {
	var all []string
	for _, p := range r.Pods {
		node := p.Node
		if node == "" {
			node = "-"
		}
		all = append(all, fmt.Sprintf("%s %s %s %d", p.Name, node, p.State, p.Round))
	}
	return all
}

// jobs describes the jobs of a result: "name placed/pods reason".
func jobs(r *simulate.Result) []string {
	var all []string
	for _, j := range r.Jobs {
		line := fmt.Sprintf("%s %d/%d", j.Name, j.Placed, j.Pods)
		if j.Waits != nil {
			line += " " + string(j.Waits.Kind)
		}
		all = append(all, line)
	}
	return all
}

// low and high are ordinary pods, for which upstream's own preemption evicts.
const priorities = `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: low}
value: 10
`

func TestScenariosEndAsTheSchedulerDecides(t *testing.T) {
	t.Parallel()
	victim := pod("victim", "priorityClassName: low, nodeName: n1", "") + running
	urgent := pod("urgent", "priorityClassName: high", "")
	for name, tc := range map[string]struct {
		file    string
		options simulate.Options
		pods    []string
		jobs    []string
		rounds  int
		// unsettled: the number of rounds ended it.
		unsettled bool
	}{
		"an empty cluster":             {rounds: 1},
		"an empty cluster for a while": {options: simulate.Options{For: 5 * time.Minute}, rounds: 60},
		"a while that is cut short":    {options: simulate.Options{For: 5 * time.Minute, Rounds: 7}, rounds: 7},
		"a cluster without nodes": {
			file: group("a", 1, 1), rounds: 1,
			pods: []string{"a-0 - Pending 0"}, jobs: []string{"a 0/1 NotAdmitted"},
		},
		"a gang that fits is bound, and runs in the next round": {
			file: node("n1", 4) + group("a", 2, 2), rounds: 2,
			pods: []string{"a-0 n1 Running 1", "a-1 n1 Running 1"}, jobs: []string{"a 2/2"},
		},
		"after one round it is bound but does not run yet": {
			file: node("n1", 4) + group("a", 2, 2), options: simulate.Options{Rounds: 1}, rounds: 1, unsettled: true,
			pods: []string{"a-0 n1 Bound 1", "a-1 n1 Bound 1"}, jobs: []string{"a 2/2"},
		},
		"a gang that is too big waits as a whole": {
			file: node("n1", 2) + group("a", 3, 3), rounds: 1,
			pods: []string{"a-0 - Pending 0", "a-1 - Pending 0", "a-2 - Pending 0"}, jobs: []string{"a 0/3 NotAdmitted"},
		},
		"a gang that another one keeps out is not let into its queue": {
			file: node("n1", 11) + group("a", 10, 10) + group("b", 2, 2), rounds: 2,
			pods: []string{
				"a-0 n1 Running 1", "a-1 n1 Running 1", "a-2 n1 Running 1", "a-3 n1 Running 1", "a-4 n1 Running 1", "a-5 n1 Running 1",
				"a-6 n1 Running 1", "a-7 n1 Running 1", "a-8 n1 Running 1", "a-9 n1 Running 1", "b-0 - Pending 0", "b-1 - Pending 0",
			},
			jobs: []string{"a 10/10", "b 0/2 NotAdmitted"},
		},
		"a gang that no node takes waits in its queue": {
			file: node("n1", 4) + group("a", 1, 0) + pod("a-0", "schedulerName: volcano, nodeSelector: {zone: west}", "a"), rounds: 1,
			pods: []string{"a-0 - Pending 0"}, jobs: []string{"a 0/1 NotEnoughResources"},
		},
		"a gang that lacks pods waits for them": {
			file: node("n1", 4) + group("a", 3, 2), rounds: 1,
			pods: []string{"a-0 - Pending 0", "a-1 - Pending 0"}, jobs: []string{"a 0/2 NotEnoughTasks"},
		},
		"a pod without a PodGroup is a job of its own": {
			file: node("n1", 1) + pod("p", "schedulerName: volcano", ""), rounds: 2,
			pods: []string{"p n1 Running 1"}, jobs: []string{"p 1/1"},
		},
		"a pod that asks for nothing runs on a full node": {
			file: node("n1", 1) + pod("a", "nodeName: n1", "") + running +
				"---\napiVersion: v1\nkind: Pod\nmetadata: {name: b}\nspec: {schedulerName: volcano, containers: [{name: c, image: i}]}\n", rounds: 2,
			pods: []string{"a n1 Running 0", "b n1 Running 1"}, jobs: []string{"b 1/1"},
		},
		"an ordinary pod is scheduled by its own profile, and is no job": {
			file: node("n1", 1) + pod("p", "schedulerName: default-scheduler", ""), rounds: 2,
			pods: []string{"p n1 Running 1"},
		},
		"a pod of a scheduler that is not there stays": {
			file: node("n1", 1) + pod("p", "schedulerName: somebody", ""), rounds: 1,
			pods: []string{"p - Pending 0"},
		},
		"an evicted pod is still there in the round it is evicted in": {
			file: priorities + node("n1", 1) + victim + urgent, options: simulate.Options{Rounds: 1}, rounds: 1, unsettled: true,
			pods: []string{"urgent - Pending 0", "victim n1 Terminating 0"},
		},
		"an evicted pod is gone in the next, in which its room is taken": {
			file: priorities + node("n1", 1) + victim + urgent, rounds: 3,
			pods: []string{"urgent n1 Running 2"},
		},
		"an evicted pod comes back and waits, if it is to": {
			file: priorities + node("n1", 1) + victim + urgent, options: simulate.Options{Recreate: true}, rounds: 3,
			pods: []string{"urgent n1 Running 2", "victim - Pending 0"},
		},
		"a pod that was bound when it all began starts to run": {
			file: node("n1", 1) + pod("p", "schedulerName: volcano, nodeName: n1", ""), rounds: 2,
			pods: []string{"p n1 Running 0"}, jobs: []string{"p 1/1"},
		},
		"a pod that terminated when it all began is gone, and its room is taken": {
			file: node("n1", 1) + strings.Replace(pod("old", "nodeName: n1", ""), "name: old", "name: old, deletionTimestamp: '2026-01-01T00:00:00Z'", 1) + running +
				group("a", 1, 1), rounds: 3,
			pods: []string{"a-0 n1 Running 2"}, jobs: []string{"a 1/1"},
		},
		"a pod that has finished counts toward the minimum of its gang": {
			file: node("n1", 1) + group("a", 2, 1) + pod("done", "schedulerName: volcano, nodeName: n1", "a") + "status: {phase: Succeeded}\n", rounds: 2,
			pods: []string{"a-0 n1 Running 1", "done n1 Finished 0"}, jobs: []string{"a 1/2"},
		},
		"a PodGroup of scheduler-plugins is a gang, too": {
			file: node("n1", 1) + "---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: g}\nspec: {minMember: 2}\n" +
				strings.ReplaceAll(pod("a", "schedulerName: volcano", "g")+pod("b", "schedulerName: volcano", "g"),
					"annotations: {scheduling.k8s.io/group-name", "labels: {scheduling.x-k8s.io/pod-group"), rounds: 1,
			pods: []string{"a - Pending 0", "b - Pending 0"}, jobs: []string{"g 0/2 NotAdmitted"},
		},
		"a StatefulSet that says how many of its pods start together makes a gang of them": {
			file: node("n1", 1) + set("2"), rounds: 1,
			pods: []string{"s-0 - Pending 0", "s-1 - Pending 0"}, jobs: []string{"statefulset/s-set 0/2 NotAdmitted"},
		},
		"and has them run where there is room for all": {
			file: node("n1", 2) + set("2"), rounds: 2,
			pods: []string{"s-0 n1 Running 1", "s-1 n1 Running 1"}, jobs: []string{"statefulset/s-set 2/2"},
		},
		"pods whose owner is not in the files are on their own": {
			file: node("n1", 1) + strings.Replace(set("2"), "uid: set", "uid: other", 1), rounds: 2,
			pods: []string{"s-0 n1 Running 1", "s-1 - Pending 0"}, jobs: []string{"s-0 1/1", "s-1 0/1 NotAdmitted", "statefulset/s-other 0/0"},
		},
		"a queue opens its gate to those for whom it has room": {
			file: node("n1", 4) + "---\napiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: default}\nspec: {capability: {cpu: '1'}}\n" +
				pod("a", "schedulerName: volcano, schedulingGates: [{name: "+model.QueueGate+"}]", "") +
				pod("b", "schedulerName: volcano, schedulingGates: [{name: "+model.QueueGate+"}]", "") +
				pod("c", "schedulerName: volcano, schedulingGates: [{name: other}]", ""), rounds: 2,
			pods: []string{"a n1 Running 1", "b - Pending 0", "c - Pending 0"}, jobs: []string{"a 1/1", "b 0/1 QueueFull", "c 0/1 SchedulingGated"},
		},
		"pods without the PodGroup they name wait for it": {
			file: node("n1", 1) + pod("p", "schedulerName: volcano", "nobody"), rounds: 1,
			pods: []string{"p - Pending 0"}, jobs: []string{"nobody 0/1 PodGroupNotFound"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := run(t, tc.file, tc.options)
			check(t, err)
			if diff := cmp.Diff(tc.pods, pods(r)); diff != "" {
				t.Errorf("pods (-want,+got)\n%s", diff)
			}
			if diff := cmp.Diff(tc.jobs, jobs(r)); diff != "" {
				t.Errorf("jobs (-want,+got)\n%s", diff)
			}
			if r.Rounds != tc.rounds || r.Settled == tc.unsettled {
				t.Errorf("it took %d rounds (settled: %t), want %d (%t)", r.Rounds, r.Settled, tc.rounds, !tc.unsettled)
			}
		})
	}
}

func TestManyPodsAtOnceAreNoTrouble(t *testing.T) {
	var file strings.Builder
	for i := range 40 {
		file.WriteString(node(fmt.Sprint("n", i), 10))
	}
	for i := range 10 {
		file.WriteString(group(fmt.Sprint("g", i), 50, 50))
	}
	r, err := run(t, file.String(), simulate.Options{})
	check(t, err)
	started := 0
	for _, j := range r.Jobs {
		if j.Started {
			started++
		}
	}
	if started != 8 {
		t.Errorf("%d gangs of 50 started on 400 CPUs, want 8", started)
	}
}

func TestRoundsAreReported(t *testing.T) {
	var got []simulate.Round
	_, err := run(t, priorities+node("n1", 1)+pod("victim", "priorityClassName: low, nodeName: n1", "")+running+pod("urgent", "priorityClassName: high", ""),
		simulate.Options{Progress: func(r simulate.Round) { got = append(got, r) }})
	check(t, err)
	want := []simulate.Round{{Number: 1, Disrupted: 1}, {Number: 2, Bound: 1}, {Number: 3}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got)\n%s", diff)
	}
}

func TestEqualScenariosGiveEqualResults(t *testing.T) {
	file := node("n1", 4) + node("n2", 4) + group("a", 3, 5) + group("b", 2, 4) + group("c", 1, 3)
	first, err := run(t, file, simulate.Options{})
	check(t, err)
	second, err := run(t, file, simulate.Options{})
	check(t, err)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("(-first,+second)\n%s", diff)
	}
}

func TestASimulationThatIsBrokenOffSaysWhatWasMoving(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := runWithin(ctx, t, node("n1", 1)+group("a", 1, 1), simulate.Options{})
	if err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("got %v, want that it was canceled", err)
	}
}

func TestASimulationNeedsAConfiguration(t *testing.T) {
	if _, err := simulate.Run(t.Context(), nil, simulate.Options{}); err == nil {
		t.Error("no error")
	}
}

// TestAHalfGangIsNotReleasedBeforeItsVictimsHaveLeft: within a round nobody leaves, and so not more time passes than that takes.
func TestAHalfGangIsNotReleasedBeforeItsVictimsHaveLeft(t *testing.T) {
	t.Parallel()
	config, err := profile.Read("conf", []byte("actions: allocate, preempt\ntiers:\n- plugins: [{name: priority}, {name: gang}]\n"), profile.Only)
	check(t, err)
	file := priorities + node("n1", 3) + strings.Replace(group("half", 3, 0), "minMember", "priorityClassName: high, minMember", 1)
	for i, on := range []string{"n1", "''", "''"} {
		file += pod(fmt.Sprintf("half-%d", i), "schedulerName: volcano, priorityClassName: high, nodeName: "+on, "half")
		if i == 0 {
			file += running
		}
	}
	file += strings.Replace(group("low", 0, 0), "minMember", "priorityClassName: low, minMember", 1)
	for i := range 2 {
		file += pod(fmt.Sprintf("low-%d", i), "schedulerName: volcano, priorityClassName: low, nodeName: n1", "low") + running
	}
	file = strings.ReplaceAll(file, "scheduling.k8s.io/group-name:", "volcano.sh/preemptable: 'true', scheduling.k8s.io/group-name:")
	r, err := run(t, file, simulate.Options{Config: config})
	check(t, err)
	if diff := cmp.Diff([]string{"half 3/3", "low 0/0"}, jobs(r)); diff != "" {
		t.Errorf("jobs (-want,+got)\n%s", diff)
	}
}
