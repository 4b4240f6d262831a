// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package remedy_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/simulate"
	"github.com/caldera-scheduler/caldera/pkg/simulate/change"
	"github.com/caldera-scheduler/caldera/pkg/simulate/remedy"
	"github.com/caldera-scheduler/caldera/pkg/simulate/scenario"
	"github.com/caldera-scheduler/caldera/pkg/volcano/profile"
)

var noon = time.Date(2026, time.August, 15, 12, 0, 0, 0, time.UTC)

// seeds is in how many random clusters a job is asked about. With the race detector each takes seconds.
var seeds = flag.Int("seeds", 24, "In how many random clusters a job is asked about.")

// confs are the configurations under which jobs wait.
var confs = map[string]string{
	"shipped":  "",
	"capacity": "actions: enqueue, allocate, backfill\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n- plugins:\n  - name: predicates\n  - name: capacity\n  - name: nodeorder\n",
	"evicting": "actions: enqueue, allocate, preempt, reclaim, backfill\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n  - name: conformance\n- plugins:\n  - name: overcommit\n  - name: drf\n  - name: predicates\n  - name: proportion\n  - name: nodeorder\n",
}

func configOf(t testing.TB, name string) *schedulerconfig.KubeSchedulerConfiguration {
	t.Helper()
	config, err := profile.Only.Config()
	if confs[name] != "" {
		config, err = profile.Read(name, []byte(confs[name]), profile.Only)
	}
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// world draws a cluster in which jobs wait for all kinds of reasons.
func world(r *rand.Rand) string {
	var b strings.Builder
	write := func(format string, args ...any) { fmt.Fprintf(&b, "---\n"+format+"\n", args...) }
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	for i, value := range []int{1000, 100} {
		write("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: %d}", []string{"high", "mid"}[i], value)
	}
	for i := range 3 {
		capability := pick("", "", "capability: {nvidia.com/gpu: '8', cpu: '64'}, ", "capability: {nvidia.com/gpu: '4'}, ")
		write("{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q%d}, spec: {%sweight: %d}, status: {state: %s}}",
			i, capability, 1+r.IntN(3), pick("Open", "Open", "Open", "Open", "Closed"))
	}
	nodes := 3 + r.IntN(8)
	free := make([]int, nodes)
	for i := range nodes {
		gpus, extra := 8, ""
		if r.IntN(4) == 0 {
			gpus = 4
		}
		if r.IntN(6) == 0 {
			extra = ", spec: {unschedulable: true}"
		} else if r.IntN(6) == 0 {
			extra = ", spec: {taints: [{key: dedicated, value: infra, effect: NoSchedule}]}"
		}
		free[i] = gpus
		write("{apiVersion: v1, kind: Node, metadata: {name: n%d, labels: {zone: %s}}%s, status: {allocatable: {cpu: '32', memory: 128Gi, nvidia.com/gpu: '%d', pods: '110'}}}",
			i, pick("a", "a", "b"), extra, gpus)
	}
	job := func(name, queue, class string, least, gpus int, spec string, on []int, pods int) {
		write("{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: %s, namespace: ml}, spec: {minMember: %d, queue: %s%s}, status: {phase: %s}}",
			name, least, queue, class, map[bool]string{true: "Running", false: "Pending"}[on != nil])
		for p := range pods {
			where, phase := "", ""
			if on != nil {
				where, phase = fmt.Sprintf("nodeName: n%d, ", on[p]), ", status: {phase: Running}"
			}
			write("{apiVersion: v1, kind: Pod, metadata: {name: %s-%d, namespace: ml, annotations: {scheduling.k8s.io/group-name: %s}}, "+
				"spec: {schedulerName: volcano, %s%s%s containers: [{name: c, image: i, resources: {requests: {cpu: '1', nvidia.com/gpu: '%d'}}}]}%s}",
				name, p, name, where, strings.TrimPrefix(strings.Replace(class, ", priorityClassName", "priorityClassName", 1)+", ", ", "), spec, gpus, phase)
		}
	}
	for i := range 2 + r.IntN(6) {
		gpus, pods := 1+r.IntN(4), 1+r.IntN(4)
		var on []int
		for n := range nodes {
			for free[n] >= gpus && len(on) < pods {
				free[n] -= gpus
				on = append(on, n)
			}
		}
		if len(on) > 0 {
			job(fmt.Sprintf("r%d", i), fmt.Sprintf("q%d", r.IntN(3)), pick("", ", priorityClassName: mid"), len(on), gpus, "", on, len(on))
		}
	}
	for i := range 1 + r.IntN(5) {
		pods := 1 + r.IntN(6)
		job(fmt.Sprintf("w%d", i), fmt.Sprintf("q%d", r.IntN(3)), pick("", ", priorityClassName: mid", ", priorityClassName: high"),
			1+r.IntN(pods), 1+r.IntN(9), pick("", "", "", "nodeSelector: {zone: b},", "schedulingGates: [{name: example.com/wait}],"), nil, max(1, pods-r.IntN(2)))
	}
	return b.String()
}

// settled are the objects of a world after nothing more happens.
func settled(t testing.TB, objects []scenario.Object, config *schedulerconfig.KubeSchedulerConfiguration) ([]scenario.Object, []*model.Job) {
	t.Helper()
	trials := simulate.NewTrials(klog.NewContext(t.Context(), logr.Discard()), simulate.Options{Config: config, Now: noon})
	defer trials.Stop()
	sight, err := trials.Rest(objects)
	if err != nil {
		t.Fatal(err)
	}
	return sight.Objects(), slices.SortedFunc(maps.Values(sight.Jobs()), func(a, b *model.Job) int { return a.Key.Compare(b.Key) })
}

// starts reports whether a job starts when a cluster that is at rest is changed, step by step.
func starts(t testing.TB, objects []scenario.Object, config *schedulerconfig.KubeSchedulerConfiguration, key model.JobKey, steps ...[]change.Change) bool {
	t.Helper()
	o := simulate.Options{Config: config, Now: noon}
	for _, changes := range steps {
		if len(changes) > 0 {
			o.Changes = append(o.Changes, change.Together(changes))
		}
	}
	result, err := simulate.Run(klog.NewContext(t.Context(), logr.Discard()), objects, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range result.Jobs {
		if j.Namespace == key.Namespace && j.Name == key.Name {
			return j.Started
		}
	}
	t.Fatalf("job %v is gone", key)
	return false
}

// TestWhatIsSaidHelps: for random jobs that wait, each remedy is applied to the objects that a scheduler of its own then begins with. The job starts;
// with one step less it does not.
func TestWhatIsSaidHelps(t *testing.T) {
	t.Parallel()
	kinds, without, jobs := map[remedy.Kind]int{}, 0, 0
	for seed := range *seeds {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		name := []string{"shipped", "capacity", "evicting"}[seed%3]
		config := configOf(t, name)
		read, err := scenario.Read("world", []byte(world(r)))
		if err != nil {
			t.Fatal(err)
		}
		objects, err := scenario.Complete(read, noon)
		if err != nil {
			t.Fatal(err)
		}
		objects, all := settled(t, objects, config)
		waiting := slices.DeleteFunc(all, func(j *model.Job) bool { return j.Whole() || j.Key.Name[0] != 'w' })
		if len(waiting) == 0 {
			continue
		}
		job := waiting[r.IntN(len(waiting))].Key
		jobs++
		result, err := remedy.Find(klog.NewContext(t.Context(), logr.Discard()), objects, func(key model.JobKey) bool { return key.Name == job.Name }, remedy.Options{
			Config: config, Now: noon, Budget: time.Minute,
		})
		if err != nil {
			t.Errorf("seed %d, %s, %s: %v", seed, name, job.Name, err)
			continue
		}
		if result.Starts {
			t.Errorf("seed %d, %s: %s starts without any change", seed, name, job.Name)
		}
		if len(result.Remedies) == 0 {
			without++
			t.Logf("seed %d, %s, %s: nothing helps (%s; %s)", seed, name, job.Name, result.Reason.Text(), result.Impossible)
		}
		for _, m := range result.Remedies {
			kinds[m.Kind]++
			for changes, want := range map[*[]change.Change]bool{&m.Changes: true, &m.Less: false} {
				if got := starts(t, objects, config, job, m.First, *changes); got != want {
					t.Errorf("seed %d, %s: %s: %s: %s; started is %t with %.300v, want %t", seed, name, job.Name, m.Kind, m.Text, got, *changes, want)
				}
			}
		}
	}
	t.Logf("%d jobs, %d without remedies, %v", jobs, without, kinds)
}
