// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// town is a full cluster of one large node, whose jobs take from each other until nobody may take any more.
type town struct {
	t     *rapid.T
	args  config.BatchQueueArgs
	total int64
	// memory: pods ask for memory, too, and queues are due some.
	memory  bool
	queues  []*model.Queue
	groups  map[model.JobKey]*model.Group
	keys    []model.JobKey
	pods    []*corev1.Pod
	running map[types.UID]bool
	// passed are the states that it was in.
	passed map[string]bool
	taken  int
	rights map[string]int
}

// divisions are plugins that divide a cluster among queues.
func divisions() map[string]config.TierPlugin {
	return map[string]config.TierPlugin{
		"weights": switched(config.PluginProportion), "flat": switched(config.PluginCapacity),
		"tree":   {Name: config.PluginCapacity, Switches: map[config.Switch]bool{config.EnableHierarchy: true}},
		"shares": {Name: config.PluginDRF, Switches: map[config.Switch]bool{config.EnableHierarchy: true}},
	}
}

func drawTown(t *rapid.T, division string, memory bool) *town {
	w := &town{
		t: t, memory: memory, groups: map[model.JobKey]*model.Group{}, running: map[types.UID]bool{}, passed: map[string]bool{}, rights: map[string]int{},
		total: rapid.Int64Range(6, 16).Draw(t, "cores"),
	}
	w.args.Actions = []config.Action{config.Reclaim, config.GangReclaim}
	if !memory {
		w.args.Actions = []config.Action{config.Preempt, config.Reclaim, config.GangPreempt, config.GangReclaim}
	}
	w.args.Tiers = []config.Tier{{Plugins: []config.TierPlugin{
		switched(config.PluginPriority), switched(config.PluginGang, config.EnableJobStarving), divisions()[division],
	}}}
	left := w.total
	w.queues = []*model.Queue{{Name: model.RootQueue}}
	for i, parent := range []string{"", "", "q0", "q0", "q1", "q1"} {
		q := &model.Queue{
			Name: fmt.Sprintf("q%d", i), Parent: parent, Weight: rapid.Int32Range(1, 4).Draw(t, "weight"), Reclaimable: true,
			Hierarchy: []string{"root", fmt.Sprint(i)}, HierarchyWeights: []float64{1, float64(1 + i%3)},
		}
		if parent != "" {
			cpu := rapid.Int64Range(0, left).Draw(t, "deserved")
			left -= cpu
			q.Deserved = both(cpu, w.ofMemory(cpu))
		}
		w.queues = append(w.queues, q)
	}
	for _, q := range w.queues[3:] {
		above := w.queues[1+int(q.Parent[1]-'0')]
		above.Deserved.Add(q.Deserved)
	}
	for i := range rapid.IntRange(4, 16).Draw(t, "jobs") {
		w.drawJob(i)
	}
	return w
}

// ofMemory is an amount of memory, none where there is none.
func (w *town) ofMemory(n int64) int64 {
	if !w.memory {
		return 0
	}
	return n
}

func (w *town) drawJob(i int) {
	key := model.JobKey{Source: model.FromVolcano, Namespace: "ns", Name: fmt.Sprintf("j%d", i)}
	n, cpu := rapid.IntRange(1, 4).Draw(w.t, "pods"), rapid.Int64Range(1, 4).Draw(w.t, "cpu")
	memory := w.ofMemory(rapid.Int64Range(0, 4).Draw(w.t, "memory"))
	w.keys = append(w.keys, key)
	w.groups[key] = &model.Group{
		UID: types.UID(key.Name), Queue: rapid.SampledFrom([]string{"q2", "q3", "q4", "q5"}).Draw(w.t, "queue"),
		MinMember: rapid.IntRange(1, n).Draw(w.t, "min"), PriorityClass: rapid.SampledFrom([]string{"low", "high"}).Draw(w.t, "class"),
		Phase: model.PhaseInqueue, Created: epoch,
	}
	for k := range n {
		pod := builders.Member("ns", key.Name, fmt.Sprintf("%s-%d", key.Name, k), fmt.Sprint(cpu)).Phase(corev1.PodPending).Obj()
		if memory > 0 {
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = *apiresource.NewQuantity(memory, apiresource.DecimalSI)
		}
		w.pods = append(w.pods, pod)
	}
}

// world is the state and the policies as they are now.
func (w *town) world() (*policy.Set, *model.State) {
	d := &drawn{args: w.args, queues: w.queues, groups: w.groups, keys: w.keys, pods: w.pods}
	set, state := d.make(w.t, slices.Collect(maps.Keys(w.running)), nil)
	set.SetCluster(both(w.total, w.ofMemory(w.total)))
	set.Update()
	return set, state
}

// lacking is what is not idle of a need.
func (w *town) lacking(state *model.State, need resource.Vector) resource.Vector {
	idle := both(w.total, w.ofMemory(w.total))
	for _, key := range w.keys {
		idle.Sub(state.Job(key).Usage.Allocated)
	}
	lacks := resource.Vector{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if short := need.Get(name) - idle.Get(name); need.Get(name) > 0 && short > 0 {
			lacks.Add(resource.Vector{{Name: name, Value: short}})
		}
	}
	return lacks
}

// step starts a job where there is room, or has others make room for it, and reports whether it did.
func (w *town) step(key model.JobKey) bool {
	set, state := w.world()
	job := state.Job(key)
	turn := job.Need()
	var tasks []*model.Task
	for _, task := range job.Tasks {
		if task.Placeable() && len(tasks) < max(1, job.Requirement().Tasks) {
			tasks = append(tasks, task)
		}
	}
	if len(tasks) == 0 {
		return false
	}
	lacks := w.lacking(state, turn)
	if len(lacks) == 0 {
		if set.Refuses(set.Book().Queue(job.Queue), nil, turn, true) != (model.Reason{}) {
			return false
		}
		w.start(tasks)
		return true
	}
	for _, action := range set.MayEvict(job) {
		tr := set.Trial(action, job, policy.EvictionWorld{Now: epoch})
		if tr.Seek(turn) != (model.Reason{}) {
			continue
		}
		for again := true; again; again = tr.Relax() {
			if victims := w.search(tr, state, lacks, tasks); victims != nil {
				w.evict(set, tr, action, job, victims, tasks)
				return true
			}
		}
	}
	return false
}

func (w *town) start(tasks []*model.Task) {
	for _, task := range tasks {
		w.running[task.UID] = true
	}
	w.pass("starts")
}

// pass remembers the state, which is to be a new one.
func (w *town) pass(what string) {
	state := fmt.Sprint(slices.Sorted(maps.Keys(w.running)))
	if w.passed[state] {
		w.t.Fatalf("%s, and the cluster is as it was before: %s", what, state)
	}
	w.passed[state] = true
}

// search takes whom the trial offers until there is room, and whole jobs where it offers those; nil, and nothing taken, if there is none.
func (w *town) search(tr *policy.Trial, state *model.State, lacks resource.Vector, tasks []*model.Task) (taken []model.Victim) {
	lacks = lacks.Clone()
	enough := func() bool { return lacks.Exceeding(nil) == nil }
	var all []model.Victim
	for _, key := range w.keys {
		job := state.Job(key)
		for _, task := range job.Tasks {
			if v := (model.Victim{Task: task, Job: job}); task.Status.HoldsNode() && tr.Candidate(v) == "" {
				all = append(all, v)
			}
		}
	}
	slices.SortFunc(all, tr.Compare)
	gone := map[types.UID]bool{}
	take := func(vs ...model.Victim) {
		for _, v := range vs {
			gone[v.Task.UID] = true
			tr.Take(v)
			taken = append(taken, v)
			lacks.Sub(v.Task.Charge)
		}
	}
	for _, v := range all {
		if enough() || gone[v.Task.UID] {
			continue
		}
		if tr.Evaluate(v) == "" {
			take(v)
		} else if whole := rest(all, v.Job.Key, gone); tr.WholeJobs() && len(whole) > 1 && tr.Evaluate(whole...) == "" {
			take(whole...)
		}
	}
	if enough() {
		for _, task := range tasks {
			tr.Gain(task)
		}
		if tr.Reversible(taken, tasks) == "" {
			return taken
		}
		for _, task := range tasks {
			tr.Lose(task)
		}
	}
	for _, v := range slices.Backward(taken) {
		tr.Return(v)
	}
	return nil
}

// rest are the victims of a job that are not gone.
func rest(all []model.Victim, job model.JobKey, gone map[types.UID]bool) (left []model.Victim) {
	for _, v := range all {
		if v.Job.Key == job && !gone[v.Task.UID] {
			left = append(left, v)
		}
	}
	return left
}

// evict has a decision come about, and checks what it is to be.
func (w *town) evict(set *policy.Set, tr *policy.Trial, action config.Action, job *model.Job, victims []model.Victim, tasks []*model.Task) {
	before := sumsOf(set.Book())
	for _, v := range victims {
		delete(w.running, v.Task.UID)
	}
	for _, task := range tasks {
		w.running[task.UID] = true
	}
	w.taken++
	w.pass(fmt.Sprintf("job %s evicts %d pods by %s, %s", job.Key, len(victims), action, tr.Right()))
	if action != config.Reclaim && action != config.GangReclaim || set.Book().Mode() == account.Undivided {
		return
	}
	next, _ := w.world()
	after := sumsOf(next.Book())
	right := tr.Right()
	w.rights[right]++
	if w.memory && right == "due" {
		// By the first right a queue keeps its due of one resource.
		return
	}
	rises := false
	for i, name := range counted {
		due, flow := after.due[i]-before.due[i], after.flow[i]-before.flow[i]
		if due < -rounding || right == "flow" && flow < -rounding {
			w.t.Fatalf("job %s evicts %d pods by %s, and of the %s that is due %g more is held, of what flows %g", job.Key, len(victims), right, name, due, flow)
		}
		rises = rises || due > rounding || right == "flow" && flow > rounding
	}
	if !rises {
		w.t.Fatalf("job %s evicts %d pods by %s, and no more is held of what is due or flows", job.Key, len(victims), right)
	}
}

// rounding is what sums of what was divided by weight may be off by: thousandths of cores, and bytes.
const rounding = 1e-6

// counted are the resources of which sums are made.
var counted = [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory}

// sums are what all leaves hold of what they are due, and of what flows to them, of each resource.
type sums struct{ due, flow [len(counted)]float64 }

func sumsOf(b *account.Book) (s sums) {
	for _, q := range b.Queues() {
		if q.Name == model.RootQueue || b.Mode() == account.Hierarchy && !q.Leaf() {
			continue
		}
		for i, name := range counted {
			held := float64(q.Own.Allocated.Get(name))
			s.due[i] += min(held, q.Deserved.Get(name))
			s.flow[i] += min(held, q.Flow().Get(name))
		}
	}
	return s
}

// TestDecisionsGoNowhereTwice has jobs of a full cluster take from each other until nobody may: no state comes twice, and with every decision more is
// held of what is due or, where that is by a flow, of what flows.
func TestDecisionsGoNowhereTwice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		division string
		memory   bool
	}{{"weights", false}, {"weights", true}, {"flat", false}, {"flat", true}, {"tree", false}, {"tree", true}, {"shares", false}, {"shares", true}} {
		t.Run(fmt.Sprintf("%s, memory counts: %t", c.division, c.memory), func(t *testing.T) {
			t.Parallel()
			division := c.division
			rights, taken := map[string]int{}, 0
			rapid.Check(t, func(t *rapid.T) {
				w := drawTown(t, division, c.memory)
				for range 400 {
					order := rapid.Permutation(w.keys).Draw(t, "order")
					if !slices.ContainsFunc(order, w.step) {
						for right, n := range w.rights {
							rights[right] += n
						}
						taken += w.taken
						return
					}
				}
				t.Fatalf("%d decisions, and no end", w.taken)
			})
			t.Log(taken, rights)
			if taken == 0 || division == "weights" && rights["gain"] == 0 || division == "tree" && rights["flow"] == 0 {
				t.Fatalf("%d decisions, by %v: the test tells nothing", taken, rights)
			}
		})
	}
}
