// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
)

// BenchmarkPlan plans whole gangs with the in-tree plugins of the default profile and reports microseconds a pod: of the first class of all, of a
// class not seen before on nodes that another one has looked at, and of one just like the job before it.
func BenchmarkPlan(b *testing.B) {
	for _, nodes := range []int{100, 1000, 5000} {
		for _, size := range []int{3, 100, 1000} {
			for _, class := range []string{"first", "new", "known"} {
				b.Run(fmt.Sprintf("nodes=%d/gang=%d/class=%s", nodes, size, class), func(b *testing.B) {
					w := newFixture(b, nodeShapes{{count: nodes, cpu: "64", memory: "256Gi"}}, nil)
					jobs := []*model.Job{w.job(gangOf("train", size, size, "1"))}
					if class == "new" {
						// A class is forgotten before it comes again.
						for i := range 40 {
							jobs = append(jobs, w.job(gangOf(fmt.Sprintf("train%d", i), size, size, fmt.Sprintf("%dm", 900+i))))
						}
						// A gang with a pod for each node looks at all of them.
						if plan := w.plan(b, w.job(gangOf("other", nodes, nodes, "40"))); len(plan.Placements) != nodes {
							b.Fatalf("%d of %d placed: %s", len(plan.Placements), nodes, plan.Reason.Message)
						}
					}
					w.planInTurn(b, jobs, size, class == "first")
				})
			}
		}
	}
}

// planInTurn measures plans of jobs of a size, one after the other. Forgetting: by a planner that remembers nothing of the plans before.
func (w *fixture) planInTurn(b *testing.B, jobs []*model.Job, size int, forgetting bool) {
	fresh, turn := *w.planner, 0
	b.ReportAllocs()
	for b.Loop() {
		if forgetting {
			*w.planner = fresh
		}
		plan := w.plan(b, jobs[turn%len(jobs)])
		turn++
		if len(plan.Placements) != size {
			b.Fatalf("%d of %d placed: %s", len(plan.Placements), size, plan.Reason.Message)
		}
	}
	perPod(b, size)
}

// BenchmarkPlanPool plans gangs whose pods select one of eight pools of nodes, which are mixed. It is BenchmarkPlan else.
func BenchmarkPlanPool(b *testing.B) {
	const nodes, pools, size = 5000, 8, 3
	pool := func(i int) string { return fmt.Sprint("pool-", i%pools) }
	for _, class := range []string{"first", "new", "known"} {
		b.Run(fmt.Sprintf("nodes=%d/gang=%d/class=%s", nodes, size, class), func(b *testing.B) {
			w := newFixture(b, nodeShapes{{count: nodes, cpu: "64", memory: "256Gi", change: func(i int, n *corev1.Node) { n.Labels["pool"] = pool(i) }}}, nil)
			of := func(i int) func(int, *corev1.Pod) {
				return func(_ int, p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"pool": pool(i)} }
			}
			jobs := []*model.Job{w.job(gangOf("train", size, size, "1", of(0)))}
			if class == "new" {
				// A class is forgotten before it comes again.
				for i := range 40 {
					jobs = append(jobs, w.job(gangOf(fmt.Sprintf("train%d", i), size, size, fmt.Sprintf("%dm", 900+i), of(i))))
				}
			}
			w.planInTurn(b, jobs, size, class == "first")
		})
	}
}

// BenchmarkSample is what upstream's plugins alone take of the plan of a class not seen before: they filter, score and normalise a sample
// of 500 nodes, as upstream takes it of 5,000. It is reported in microseconds for each of three pods, to compare with BenchmarkPlan.
func BenchmarkSample(b *testing.B) {
	w := newFixture(b, nodeShapes{{count: 500, cpu: "64", memory: "256Gi"}}, nil)
	f, p := w.planner.Framework, pod("train", "1")
	nodes, err := f.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	for b.Loop() {
		state := w.planner.NewState()
		if _, status, _ := f.RunPreFilterPlugins(ctx, state, p); !status.IsSuccess() {
			b.Fatal(status)
		}
		f.Parallelizer().Until(ctx, len(nodes), func(i int) {
			if status := f.RunFilterPlugins(ctx, state, p, nodes[i]); !status.IsSuccess() {
				b.Error(status)
			}
		}, "")
		if status := f.RunPreScorePlugins(ctx, state, p, nodes); !status.IsSuccess() {
			b.Fatal(status)
		}
		scores := make([]fwk.NodePluginScores, len(nodes))
		f.Parallelizer().Until(ctx, len(nodes), func(i int) {
			raw, status := f.RunRawScorePlugins(ctx, state, p, nodes[i])
			if !status.IsSuccess() {
				b.Error(status)
			}
			scores[i] = fwk.NodePluginScores{Name: nodes[i].Node().Name, RawScores: raw}
		}, "")
		if status := f.NormalizeScores(ctx, state, p, scores); !status.IsSuccess() {
			b.Fatal(status)
		}
	}
	perPod(b, 3)
}

// BenchmarkPlanAround plans gangs whose pods have terms about each other, on nodes of ten zones.
func BenchmarkPlanAround(b *testing.B) {
	self := &metav1.LabelSelector{MatchLabels: map[string]string{"gang": "train"}}
	term := func(key string) []corev1.PodAffinityTerm {
		return []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: self}}
	}
	spread := func(key string) []corev1.TopologySpreadConstraint {
		return []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key, LabelSelector: self, WhenUnsatisfiable: corev1.DoNotSchedule}}
	}
	const size = 100
	for name, relate := range map[string]func(int, *corev1.Pod){
		"onenode": func(_ int, p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term(corev1.LabelHostname)}}
		},
		"onezone": func(_ int, p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: term("zone")}}
		},
		"spread": func(_ int, p *corev1.Pod) { p.Spec.TopologySpreadConstraints = spread("zone") },
	} {
		b.Run(fmt.Sprintf("nodes=5000/gang=%d/terms=%s", size, name), func(b *testing.B) {
			var zones nodeShapes
			for i := range 10 {
				zone := fmt.Sprint(i)
				zones = append(zones, nodeShape{prefix: "zone" + zone, count: 500, cpu: "64", memory: "256Gi", labels: map[string]string{"zone": zone}})
			}
			w := newFixture(b, zones, nil)
			job := w.job(gangOf("train", size, size, "1", relate))
			for b.Loop() {
				if plan := w.plan(b, job); len(plan.Placements) != size {
					b.Fatalf("%d of %d placed: %s", len(plan.Placements), size, plan.Reason.Message)
				}
			}
			perPod(b, size)
		})
	}
}

// BenchmarkPlanElastic plans one more task of a job that has started and has 10,000 waiting.
func BenchmarkPlanElastic(b *testing.B) {
	w := newFixture(b, nodeShapes{{count: 5000, cpu: "64", memory: "256Gi"}}, nil)
	job := w.job(gangOf("train", 0, 10000, "1"))
	for b.Loop() {
		if plan := w.plan(b, job); len(plan.Placements) != 1 {
			b.Fatal(plan.Reason.Text())
		}
	}
	perPod(b, 1)
}

// BenchmarkPlanRefused plans a gang that does not fit: on nodes that are full, and on nodes with room for all but one.
func BenchmarkPlanRefused(b *testing.B) {
	for name, size := range map[string]int{"full": 1, "oneshort": 10} {
		b.Run("nodes=5000/"+name, func(b *testing.B) {
			const nodes = 5000
			var running []*corev1.Pod
			// Every node has room for no pod of the gang, except size-1 of them.
			for i := size - 1; i < nodes; i++ {
				running = append(running, onNode(pod(fmt.Sprintf("old-%d", i), "60"), fmt.Sprintf("node-%d", i)))
			}
			w := newFixture(b, nodeShapes{{count: nodes, cpu: "64", memory: "256Gi"}}, running)
			job := w.job(gangOf("train", size, size, "40"))
			for b.Loop() {
				if plan := w.plan(b, job); plan.Reason.Kind != model.NotEnoughResources {
					b.Fatal("the gang fits")
				}
			}
		})
	}
}

func perPod(b *testing.B, size int) {
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*size), "us/pod")
}

// BenchmarkEvict looks for the victims of one job on nodes of eight devices that are full of jobs of one device each: a gang
// of 500 on 1,000 nodes, the case that KAI publishes as ReclaimLargeJobs, and a single pod on 5,000.
func BenchmarkEvict(b *testing.B) {
	for _, c := range []struct{ nodes, size int }{{1000, 500}, {5000, 1}} {
		for _, action := range []config.Action{config.Reclaim, config.GangReclaim} {
			b.Run(fmt.Sprintf("%s/nodes=%d/gang=%d", action, c.nodes, c.size), func(b *testing.B) {
				var running []gangSpec
				for i := range c.nodes * 8 {
					// A job of one device that may be evicted by itself, or only as a whole.
					least := 0
					if action == config.GangReclaim {
						least = 1
					}
					g := gangOf(fmt.Sprintf("j%d", i), least, 1, "1", device)
					running = append(running, in("a", "", run(g, fmt.Sprintf("node-%d", i/8))))
				}
				w := newBusy(b, nodeShapes{{count: c.nodes, cpu: "64", memory: "512Gi", devices: "8"}}, running...)
				job := w.job(in("b", "", gangOf("train", c.size, c.size, "1", device)))
				set := w.policies(b, tiers(string(action), preempting), queue("a", 1), queue("b", 1))
				b.ReportAllocs()
				for b.Loop() {
					if st := w.evict(b, set, action, job); len(st.Victims) != c.size {
						b.Fatalf("evicts %d of %d: %s", len(st.Victims), c.size, st.Why)
					}
				}
			})
		}
	}
}

// device makes a pod ask for one device.
func device(_ int, p *corev1.Pod) {
	requests := p.Spec.Containers[0].Resources.Requests
	requests["nvidia.com/gpu"] = resource.MustParse("1")
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"nvidia.com/gpu": requests["nvidia.com/gpu"]}
}

// BenchmarkPlanParts plans 64 subgroups of 16 pods on 5,000 nodes: anywhere, and inside of one rack of 8 nodes each, beside one gang of as
// many pods. All are of a class not seen before.
func BenchmarkPlanParts(b *testing.B) {
	const parts, size, rack = 64, 16, 8
	for _, tc := range []struct {
		name     string
		policies []model.SubGroupPolicy
	}{
		{name: "whole"},
		{"anywhere", []model.SubGroupPolicy{by("w", size, parts, 0)}},
		{"racks", []model.SubGroupPolicy{by("w", size, parts, 1)}},
	} {
		b.Run("parts="+tc.name, func(b *testing.B) {
			var shapes nodeShapes
			for i := range 5000 / rack {
				name := fmt.Sprintf("rack%d", i)
				shapes = append(shapes, nodeShape{prefix: name, count: rack, cpu: "64", memory: "256Gi", labels: map[string]string{"rack": name}})
			}
			w := newFixture(b, shapes, nil)
			w.planner.Domains = fabric{}
			job := w.job(dividedBy(gangOf("train", parts*size, parts*size, "4", inParts("w", size)), tc.policies...))
			fresh := *w.planner
			b.ReportAllocs()
			for b.Loop() {
				*w.planner = fresh
				if plan := w.plan(b, job); len(plan.Placements) != parts*size {
					b.Fatalf("%d of %d placed: %s", len(plan.Placements), parts*size, plan.Reason.Message)
				}
			}
			perPod(b, parts*size)
		})
	}
}

// BenchmarkAhead plans a gang of 100 pods for the time at which it fits, on 5,000 full nodes with 10,000 pods that end one after the other.
func BenchmarkAhead(b *testing.B) {
	const nodes = 5000
	var running []gangSpec
	for i := range nodes {
		g := gangOf(fmt.Sprintf("old%d", i), 1, 2, "4", func(k int, p *corev1.Pod) {
			p.Spec.RestartPolicy, p.Spec.ActiveDeadlineSeconds = corev1.RestartPolicyNever, new(int64(7200+(2*i+k)*7919%86400))
		})
		running = append(running, run(g, fmt.Sprintf("node-%d", i)))
	}
	w := newBusy(b, nodeShapes{{count: nodes, cpu: "8", memory: "64Gi"}}, running...)
	request := asking(w.job(gangOf("new", 100, 100, "8")))
	b.ResetTimer()
	for range b.N {
		ahead, err := w.planner.Ahead(b.Context(), request, w.outlook(), time.Time{})
		if err != nil || len(ahead.Placements) != 100 {
			b.Fatalf("%d tasks are placed: %v", len(ahead.Placements), err)
		}
	}
}

// BenchmarkMoves looks for pods to move on 5,000 nodes with a pod each. Either the first that is tried fits another node, or none does.
func BenchmarkMoves(b *testing.B) {
	for name, size := range map[string]string{"found": "2", "none": "5"} {
		b.Run("nodes=5000/"+name, func(b *testing.B) {
			var running []gangSpec
			for i := range 5000 {
				g := owned(run(in("q", "", gangOf(fmt.Sprintf("pod%d", i), 1, 1, size)), fmt.Sprintf("node-%d", i)))
				running = append(running, g)
			}
			w := newBusy(b, nodeShapes{{count: 5000, cpu: "8", memory: "64Gi"}}, running...)
			job := w.job(in("q", "", gangOf("big", 1, 1, "8")))
			set := w.policies(b, tiers("consolidate", "gang")+"configurations: [{name: consolidate, arguments: {maxAge: 0s}}]\n", queue("q", 1))
			for b.Loop() {
				if st := w.evict(b, set, config.Consolidate, job); (st.Placements != nil) != (name == "found") {
					b.Fatalf("moves %v: %s", moves(st), st.Why)
				}
			}
		})
	}
}
