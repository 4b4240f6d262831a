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
		write("{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: q%d}, spec: {%sweight: %d, reclaimable: %s}, status: {state: %s}}",
			i, capability, 1+r.IntN(3), pick("true", "true", "false"), pick("Open", "Open", "Open", "Open", "Closed"))
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
		write("{apiVersion: v1, kind: Node, metadata: {name: n%d, labels: {zone: %s, kubernetes.io/hostname: n%d}}%s, status: {allocatable: {cpu: '32', memory: 128Gi, nvidia.com/gpu: '%d', pods: '110'}}}",
			i, pick("a", "a", "b"), i, extra, gpus)
	}
	job := func(name, queue, class string, least, gpus int, spec string, on []int, pods int) {
		write("{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: %s, namespace: ml}, spec: {minMember: %d, queue: %s%s}, status: {phase: %s}}",
			name, least, queue, class, map[bool]string{true: "Running", false: "Pending"}[on != nil])
		for p := range pods {
			where, phase := "", ""
			if on != nil {
				where, phase = fmt.Sprintf("nodeName: n%d, ", on[p]), ", status: {phase: Running}"
			}
			write("{apiVersion: v1, kind: Pod, metadata: {name: %s-%d, namespace: ml, labels: {job: %s}, annotations: {scheduling.k8s.io/group-name: %s}}, "+
				"spec: {schedulerName: volcano, %s%s%s containers: [{name: c, image: i, resources: {requests: {cpu: '1', nvidia.com/gpu: '%d'}}}]}%s}",
				name, p, name, name, where, strings.TrimPrefix(strings.Replace(class, ", priorityClassName", "priorityClassName", 1)+", ", ", "), spec, gpus, phase)
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
			if budget := r.IntN(6); budget < 2 {
				write("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: r%d, namespace: ml}, spec: {maxUnavailable: %d, "+
					"selector: {matchLabels: {job: r%d}}}, status: {disruptionsAllowed: %d}}", i, budget, i, budget)
			}
			job(fmt.Sprintf("r%d", i), fmt.Sprintf("q%d", r.IntN(3)), pick("", ", priorityClassName: mid"), len(on), gpus, "", on, len(on))
		}
	}
	for i := range 1 + r.IntN(5) {
		pods := 1 + r.IntN(6)
		job(fmt.Sprintf("w%d", i), fmt.Sprintf("q%d", r.IntN(3)), pick("", ", priorityClassName: mid", ", priorityClassName: high"),
			1+r.IntN(pods), 1+r.IntN(9), pick("", "", "", "nodeSelector: {zone: b},", "schedulingGates: [{name: example.com/wait}],", apart(i), evenly(i)), nil,
			max(1, pods-r.IntN(2)))
	}
	return b.String()
}

// apart has no two pods of a job on one node.
func apart(job int) string {
	return fmt.Sprintf("affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "+
		"[{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {job: w%d}}}]}},", job)
}

// evenly has the pods of a job spread evenly over zones.
func evenly(job int) string {
	return fmt.Sprintf("topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {job: w%d}}}],", job)
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
		// A job that is submitted again is younger than all others.
		objects, err := scenario.Complete(read, noon.Add(-time.Hour))
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
	for _, kind := range []remedy.Kind{remedy.OfNodes, remedy.OfQueue, remedy.OfJobs, remedy.OfItself} {
		if kinds[kind] == 0 {
			t.Errorf("none of the remedies is of kind %s", kind)
		}
	}
	if without*10 > jobs {
		t.Errorf("%d of %d jobs have no remedies, want a tenth at most", without, jobs)
	}
}

// found looks for remedies of job waits in a text of objects.
func found(t *testing.T, text string, o remedy.Options) (*remedy.Result, error) {
	t.Helper()
	return foundBy(t, text, isIt, o)
}

// foundBy looks for remedies of the job for which is returns true.
func foundBy(t *testing.T, text string, is func(model.JobKey) bool, o remedy.Options) (*remedy.Result, error) {
	t.Helper()
	read, err := scenario.Read("test", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := scenario.Complete(read, noon)
	if err != nil {
		t.Fatal(err)
	}
	o.Config, o.Now = configOf(t, "shipped"), noon
	return remedy.Find(klog.NewContext(t.Context(), logr.Discard()), objects, is, o)
}

func isIt(key model.JobKey) bool { return key.Name == "waits" }

// texts are the remedies of a result.
func texts(r *remedy.Result) []string {
	list := []string{}
	for _, m := range r.Remedies {
		list = append(list, string(m.Kind)+": "+m.Text)
	}
	return list
}

// waits is a job of two pods that ask for so many GPUs.
func waits(gpus int) string {
	text := "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: waits, namespace: ml}, spec: {minMember: 2}}\n"
	for i := range 2 {
		text += fmt.Sprintf("---\n{apiVersion: v1, kind: Pod, metadata: {name: waits-%d, namespace: ml, annotations: {scheduling.k8s.io/group-name: waits}}, "+
			"spec: {schedulerName: volcano, containers: [{name: c, image: i, resources: {requests: {nvidia.com/gpu: '%d'}, limits: {nvidia.com/gpu: '%d'}}}]}}\n", i, gpus, gpus)
	}
	return text
}

const node = "---\n{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: '32', memory: 128Gi, nvidia.com/gpu: '8'}}}\n"

func TestOddClusters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		objects    string
		impossible string
		starts     bool
		want       []string
	}{
		"no node at all":            {waits(1), "", false, []string{}},
		"no node is large enough":   {waits(9) + node, "1 node: a pod asks for 9 nvidia.com/gpu, the node has 8", false, []string{"itself: 4 nvidia.com/gpu a pod instead of 9, submitted again"}},
		"nothing stands in its way": {waits(4) + node, "", true, []string{}},
		"one node more would do":    {waits(8) + node, "", false, []string{"nodes: 1 more node like n1 (8 nvidia.com/gpu)", "itself: minMember 1 instead of 2"}},
		"its queue is not there":    {strings.Replace(waits(4), "minMember: 2", "minMember: 2, queue: gone", 1) + node, "", false, []string{}},
		"its only node is cordoned": {
			waits(4) + strings.Replace(node, "status:", "spec: {unschedulable: true}, status:", 1), "", false,
			[]string{"nodes: uncordon n1", "nodes: 1 more node like n1 (8 nvidia.com/gpu)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := found(t, c.objects, remedy.Options{Budget: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			if result.Starts != c.starts || result.Impossible != c.impossible || !slices.Equal(c.want, texts(result)) || result.Cut {
				t.Errorf("it starts: %t; impossible: %q; %q; want %+v", result.Starts, result.Impossible, texts(result), c)
			}
		})
	}
}

// TestOfJobsOfOneSecondTheSmallerUIDGoesFirst: as in the cluster, whatever was tried before.
func TestOfJobsOfOneSecondTheSmallerUIDGoesFirst(t *testing.T) {
	t.Parallel()
	text := node + "---\n{apiVersion: scheduling.volcano.sh/v1beta1, kind: Queue, metadata: {name: default}, spec: {weight: 1, capability: {nvidia.com/gpu: '1'}}}\n"
	for _, job := range []struct{ uid, text string }{{"b", strings.ReplaceAll(waits(1), "waits", "other")}, {"a", waits(1)}} {
		text += "---\n" + strings.ReplaceAll(job.text, "metadata: {", fmt.Sprintf("metadata: {uid: %s, creationTimestamp: '2026-08-15T11:00:00Z', ", job.uid))
	}
	result, err := found(t, text, remedy.Options{Budget: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if want := "queue: queue default may hold 2 nvidia.com/gpu instead of 1"; !slices.Contains(texts(result), want) {
		t.Errorf("the remedies are %q, want %q among them", texts(result), want)
	}
}

// Who is out of time says so, and tells what is known.
func TestTimeIsUp(t *testing.T) {
	t.Parallel()
	result, err := found(t, waits(8)+node, remedy.Options{Budget: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	if !result.Cut || len(result.Remedies) > 0 || result.Reason.Kind == "" {
		t.Errorf("after no time it is %+v", result)
	}
}

// TestTheBudgetBeginsWithTheFirstChange: however long the scheduler takes to see the cluster as it is, changes are tried then.
func TestTheBudgetBeginsWithTheFirstChange(t *testing.T) {
	t.Parallel()
	const budget = 500 * time.Millisecond
	// It is asked for once the scheduler has planned, and before anything is changed.
	late := func(key model.JobKey) bool {
		time.Sleep(budget + time.Millisecond)
		return isIt(key)
	}
	result, err := foundBy(t, waits(8)+node, late, remedy.Options{Budget: budget})
	if err != nil {
		t.Fatal(err)
	}
	if result.Trials < 2 {
		t.Errorf("there were %d trials, want one with a change at least", result.Trials)
	}
}

func TestAJobThatIsGoneIsTold(t *testing.T) {
	t.Parallel()
	if _, err := found(t, strings.ReplaceAll(waits(1), "waits", "other")+node, remedy.Options{}); err == nil || !strings.Contains(err.Error(), "there is no such job") {
		t.Errorf("a job that is gone is answered by %v", err)
	}
}

// A cluster in which the names of what would be added are taken is told about all the same.
func TestNamesThatAreTaken(t *testing.T) {
	t.Parallel()
	lacking := strings.Replace(waits(2), "minMember: 2", "minMember: 3", 1)
	taken := "---\n{apiVersion: v1, kind: Pod, metadata: {name: waits-0-new-0, namespace: ml}, spec: {nodeName: n1, containers: [{name: c, image: i}]}, status: {phase: Running}}\n" +
		"---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: caldera-trial-1}, value: 7}\n"
	result, err := found(t, lacking+node+taken, remedy.Options{Budget: time.Minute})
	if err != nil || !slices.Contains(texts(result), "itself: 1 more pod of it") {
		t.Errorf("the remedies are %v, %v", texts(result), err)
	}
}
