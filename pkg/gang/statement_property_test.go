// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// cluster is a random cluster whose queues hold what they want of it, and a gang that arrives.
type cluster struct {
	shapes nodeShapes
	// free is what is idle on each node, in cores.
	free    []int
	running []gangSpec
	gang    gangSpec
	queues  []*model.Queue
	parents []*model.Queue
	conf    string
	action  config.Action
	// unit: all pods ask for one core. tree: some queues are below another one.
	unit, tree bool
}

const cores = 8

func drawCluster(t *rapid.T) cluster {
	w := cluster{unit: rapid.Bool().Draw(t, "unit")}
	nodes := rapid.IntRange(1, 6).Draw(t, "nodes")
	w.shapes = nodeShapes{{count: nodes, cpu: fmt.Sprint(cores), memory: "64Gi"}}
	for range nodes {
		w.free = append(w.free, cores)
	}
	w.action = rapid.SampledFrom([]config.Action{config.Preempt, config.Reclaim, config.GangPreempt, config.GangReclaim}).Draw(t, "action")
	divider := rapid.SampledFrom([]string{"proportion", "capacity", "capacity+tree"}).Draw(t, "divider")
	w.tree = divider == "capacity+tree"
	w.conf = tiers(string(w.action), "priority gang conformance "+divider)
	left := nodes * cores
	for i := range rapid.IntRange(2, 4).Draw(t, "queues") {
		q := queue(fmt.Sprintf("q%d", i), int32(rapid.IntRange(1, 4).Draw(t, "weight")))
		q.Reclaimable = rapid.IntRange(0, 9).Draw(t, "reclaimable") > 0
		// What queues are promised together there must be.
		promised := rapid.IntRange(0, left/2).Draw(t, "promised")
		left -= promised
		if divider != "proportion" {
			q.Deserved = resource.Vector{{Name: corev1.ResourceCPU, Value: int64(promised) * 1000}}
		}
		if rapid.IntRange(0, 3).Draw(t, "guaranteed") == 0 {
			q.Guarantee = resource.Vector{{Name: corev1.ResourceCPU, Value: int64(promised) * 500}}
		}
		w.queues = append(w.queues, q)
	}
	if w.tree {
		w.plant(t)
	}
	for i := range rapid.IntRange(4, 16).Draw(t, "jobs") {
		w.running = append(w.running, w.drawJob(t, fmt.Sprintf("old%d", i))...)
	}
	size := rapid.IntRange(1, 10).Draw(t, "size")
	w.gang = in(w.queues[0].Name, "high", gangOf("new", size, size, w.drawSize(t)))
	return w
}

// plant puts some of the queues below a queue of its own, which is promised what they are.
func (w *cluster) plant(t *rapid.T) {
	above := queue("above", 1)
	for _, q := range w.queues {
		if rapid.Bool().Draw(t, "below") {
			q.Parent = above.Name
			above.Deserved.Add(q.Deserved)
			above.Guarantee.Add(q.Guarantee)
		}
	}
	w.parents = []*model.Queue{above, queue(model.RootQueue, 1)}
}

func (w *cluster) drawSize(t *rapid.T) string {
	if w.unit {
		return "1"
	}
	return fmt.Sprint(rapid.IntRange(1, 4).Draw(t, "cores"))
}

// drawJob draws a job that runs, as far as there is room for it.
func (w *cluster) drawJob(t *rapid.T, name string) []gangSpec {
	size := w.drawSize(t)
	need := int(resource.FromList(pod("x", size).Spec.Containers[0].Resources.Requests).Get(corev1.ResourceCPU)) / 1000
	var nodes []string
	for range rapid.IntRange(1, 8).Draw(t, "tasks") {
		n := rapid.IntRange(0, len(w.free)-1).Draw(t, "node")
		if w.free[n] >= need {
			w.free[n] -= need
			nodes = append(nodes, fmt.Sprintf("node-%d", n))
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	least := rapid.IntRange(0, len(nodes)).Draw(t, "least")
	q := rapid.SampledFrom(w.queues).Draw(t, "queue")
	class := rapid.SampledFrom([]string{"low", "", "high"}).Draw(t, "class")
	return []gangSpec{in(q.Name, class, run(gangOf(name, least, len(nodes), size), nodes...))}
}

// settled is a cluster after a statement was carried out: the victims run no more and wait, created again, and the gang runs.
func (w *cluster) settled(st gang.Statement) *cluster {
	after := *w
	gone := map[string]bool{}
	for _, v := range st.Victims {
		gone[v.Task.Pod.Name] = true
	}
	after.running = nil
	for _, g := range w.running {
		again := g
		again.pods = nil
		for _, p := range g.pods {
			p = p.DeepCopy()
			if gone[p.Name] {
				p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
				p.UID += "-again"
			}
			again.pods = append(again.pods, p)
		}
		after.running = append(after.running, again)
	}
	placed := w.gang
	placed.pods = nil
	for _, p := range st.Placements {
		placed.pods = append(placed.pods, onNode(p.Task.Pod.DeepCopy(), p.Node))
	}
	after.running = append(after.running, placed)
	return &after
}

func (w *cluster) build(tb testing.TB) *fixture {
	var onNodes []gangSpec
	var waiting []*corev1.Pod
	for _, g := range w.running {
		on := g
		on.pods = nil
		for _, p := range g.pods {
			if p.Spec.NodeName == "" {
				waiting = append(waiting, p)
			} else {
				on.pods = append(on.pods, p)
			}
		}
		onNodes = append(onNodes, on)
	}
	built := newBusy(tb, w.shapes, onNodes...)
	for _, p := range waiting {
		built.state.UpsertPod(p)
	}
	return built
}

// TestEvictKeepsItsPromises carries statements out on random clusters and looks at what is left.
func TestEvictKeepsItsPromises(t *testing.T) {
	acted := 0
	rapid.Check(t, func(r *rapid.T) {
		cluster := drawCluster(r)
		w := cluster.build(t)
		job := w.job(cluster.gang)
		set := w.policies(t, cluster.conf, append(cluster.parents, cluster.queues...)...)
		if plan := w.plan(t, job); len(plan.Placements) > 0 {
			return
		}
		due := map[string]float64{}
		for _, q := range set.Book().Queues() {
			due[q.Name] = q.Deserved.Get(corev1.ResourceCPU)
		}
		st := w.evict(t, set, cluster.action, job)
		if len(st.Placements) == 0 {
			if len(st.Victims) > 0 {
				r.Fatalf("%d victims for nothing", len(st.Victims))
			}
			cluster.mustNotHelp(r, w, job, due)
			return
		}
		acted++
		within := func(back ...model.Victim) bool { return cluster.affords(set, job, st, back) }
		cluster.check(r, w, job, st, due, within)
		// Nobody who lost something may evict for it, and the gang has what it wanted.
		first, after := st, cluster.settled(st)
		later := after.build(t)
		again := later.policies(t, cluster.conf, append(cluster.parents, cluster.queues...)...)
		for _, v := range st.Victims {
			loser := later.state.Job(v.Job.Key)
			if !again.Starving(loser) {
				continue
			}
			// Whoever lost its place to a higher priority may take that of a lower one, and nobody else's.
			for _, next := range later.evict(t, again, cluster.action, loser).Victims {
				if reclaims(cluster.action) || next.Job.Priority >= loser.Priority {
					r.Fatalf("%s evicts %s after it lost %s to %s of %v, placed %v",
						loser.Key, next.Task.Pod.Name, v.Task.Pod.Name, cluster.action, victims(first), placements(first))
				}
			}
		}
	})
	t.Logf("evictions in %d cases", acted)
}

// check looks at the outcome of a statement.
func (w *cluster) check(r *rapid.T, before *fixture, job *model.Job, st gang.Statement, due map[string]float64, within func(...model.Victim) bool) {
	used := map[string]int{}
	for _, g := range w.running {
		for _, p := range g.pods {
			used[p.Spec.NodeName] += need(p)
		}
	}
	held, left := map[string]int{}, map[model.JobKey]int{}
	for _, g := range w.running {
		for _, p := range g.pods {
			held[g.group.Queue] += need(p)
		}
	}
	for _, v := range st.Victims {
		used[v.Task.Node] -= need(v.Task.Pod)
		held[v.Job.Queue] -= need(v.Task.Pod)
		left[v.Job.Key]++
		switch {
		case reclaims(w.action) && (v.Job.Queue == job.Queue || !named(w.queues, v.Job.Queue).Reclaimable):
			r.Fatalf("%s reclaims from queue %s", w.action, v.Job.Queue)
		case !reclaims(w.action) && (v.Job.Queue != job.Queue || v.Job.Priority >= job.Priority):
			r.Fatalf("%s preempts %s of queue %s, priority %d", w.action, v.Task.Pod.Name, v.Job.Queue, v.Job.Priority)
		}
	}
	for _, p := range st.Placements {
		used[p.Node] += need(p.Task.Pod)
	}
	if len(st.Placements) != job.Min() {
		r.Fatalf("%d of %d tasks are placed", len(st.Placements), job.Min())
	}
	for node, n := range used {
		if n > cores {
			r.Fatalf("%s holds %d cores: %s evicts %v, placed %v", node, n, w.action, victims(st), placements(st))
		}
	}
	for key, n := range left {
		j := before.state.Job(key)
		if rest := j.Counts.Ready() - n; rest > 0 && rest < j.Min() {
			r.Fatalf("%s is left with %d of %d", key, rest, j.Min())
		}
	}
	w.checkQueues(r, st, held, due)
	w.checkReprieve(r, before, st, used, within)
}

// checkQueues: all that queues lose of their dues by a reclaim is less than what the gang's queue gains of its own. None falls below its
// guarantee.
func (w *cluster) checkQueues(r *rapid.T, st gang.Statement, held map[string]int, due map[string]float64) {
	if !reclaims(w.action) {
		return
	}
	of := func(q string, cores int) float64 { return min(float64(cores)*1000, due[q]) }
	gave := map[string]int{}
	for _, v := range st.Victims {
		gave[v.Job.Queue] += need(v.Task.Pod)
	}
	var lost float64
	for name, cores := range gave {
		if guaranteed := named(w.queues, name).Guarantee.Get(corev1.ResourceCPU); int64(held[name]*1000) < guaranteed {
			r.Fatalf("queue %s is left with %d cores of the %d milli that it is guaranteed", name, held[name], guaranteed)
		}
		lost += of(name, held[name]+cores) - of(name, held[name])
	}
	taker, asked := w.gang.group.Queue, 0
	for _, p := range st.Placements {
		asked += need(p.Task.Pod)
	}
	gained := of(taker, held[taker]+asked) - of(taker, held[taker])
	if lost > 1e-3 && lost > gained-1e-3 {
		r.Fatalf("queues lose %g milli of what they are due, and queue %s gains %g: %s evicts %v", lost, taker, gained, w.action, victims(st))
	}
	for _, above := range w.parents {
		below, taken := 0, false
		for _, q := range w.queues {
			if q.Parent == above.Name {
				below += held[q.Name]
				taken = taken || slices.ContainsFunc(st.Victims, func(v model.Victim) bool { return v.Job.Queue == q.Name })
			}
		}
		inside := named(w.queues, w.gang.group.Queue).Parent == above.Name
		if guaranteed := above.Guarantee.Get(corev1.ResourceCPU); taken && !inside && int64(below*1000) < guaranteed {
			r.Fatalf("the queues below %s are left with %d cores of the %d milli that it is guaranteed", above.Name, below, guaranteed)
		}
	}
}

// checkReprieve: no victim can be put back, nor a whole job that had nothing to spare.
func (w *cluster) checkReprieve(r *rapid.T, before *fixture, st gang.Statement, used map[string]int, within func(...model.Victim) bool) {
	lost := map[model.JobKey][]model.Victim{}
	for _, v := range st.Victims {
		lost[v.Job.Key] = append(lost[v.Job.Key], v)
	}
	for key, vs := range lost {
		j := before.state.Job(key)
		if whole := len(vs) == j.Counts.Ready() && j.Counts.Ready() <= j.Min(); whole {
			fits := true
			back := map[string]int{}
			for _, v := range vs {
				back[v.Task.Node] += need(v.Task.Pod)
				fits = fits && used[v.Task.Node]+back[v.Task.Node] <= cores
			}
			if fits && within(vs...) {
				r.Fatalf("job %s was evicted for nothing", key)
			}
			continue
		}
		for _, v := range vs {
			if len(vs) != j.Counts.Ready() && used[v.Task.Node]+need(v.Task.Pod) <= cores && within(v) {
				r.Fatalf("%s was evicted for nothing: %s evicts %v, places %v", v.Task.Pod.Name, w.action, victims(st), placements(st))
			}
		}
	}
}

// affords reports whether the limits of the queue would allow the gang if some victims were back.
func (w *cluster) affords(set *policy.Set, job *model.Job, st gang.Statement, back []model.Victim) bool {
	budget := set.Budget(set.Book().Queue(job.Queue), job.OwnHalf(), false)
	for _, v := range st.Victims {
		if !slices.ContainsFunc(back, func(b model.Victim) bool { return b.Task == v.Task }) {
			budget.Release(v.Job.Queue, v.Task.Request)
		}
	}
	return budget.Refuses(job.Need()) == (model.Reason{})
}

// mustNotHelp checks, where all pods are alike and jobs are not taken as a whole, that evictions would really not do.
func (w *cluster) mustNotHelp(r *rapid.T, before *fixture, job *model.Job, due map[string]float64) {
	if !w.unit || w.tree || w.action == config.GangPreempt || w.action == config.GangReclaim {
		return
	}
	room := 0
	for _, n := range w.free {
		room += n
	}
	spare, held := map[string]int{}, map[string]int{}
	for j := range before.state.Snapshot().Jobs {
		if j.Key == job.Key {
			continue
		}
		held[j.Queue] += j.Counts.Ready()
		if w.action == config.Reclaim || j.Queue == job.Queue && j.Priority < job.Priority {
			spare[j.Queue] += max(0, j.Counts.Ready()-j.Min())
		}
	}
	for _, q := range w.queues {
		switch {
		case w.action == config.Preempt:
			room += spare[q.Name]
		case q.Name == job.Queue || !q.Reclaimable:
		default:
			least := int(math.Ceil(max(due[q.Name], float64(q.Guarantee.Get(corev1.ResourceCPU))) / 1000))
			room += max(0, min(spare[q.Name], held[q.Name]-least))
		}
	}
	entitled := w.action == config.Preempt || due[job.Queue] >= float64((held[job.Queue]+job.Min())*1000)
	// Within its queue a job may also be kept by what the queue is due.
	if entitled && w.action == config.Reclaim && room >= job.Min() {
		r.Fatalf("nobody is evicted, though %d cores can be had for the %d that are needed", room, job.Min())
	}
}

func need(p *corev1.Pod) int {
	return int(resource.OfPod(p).Get(corev1.ResourceCPU)) / 1000
}

func named(queues []*model.Queue, name string) *model.Queue {
	for _, q := range queues {
		if q.Name == name {
			return q
		}
	}
	return nil
}

// placements are the nodes of the tasks that are placed, by name.
func placements(st gang.Statement) map[string]string {
	nodes := map[string]string{}
	for _, p := range st.Placements {
		nodes[p.Task.Pod.Name] = p.Node
	}
	return nodes
}

func reclaims(action config.Action) bool {
	return action == config.Reclaim || action == config.GangReclaim
}
