// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// What helps a job that waits wakes it, whatever that is, within two seconds: else it would have a turn after minutes, or never.

// settle refuses all turns of the next seconds, in which victims are sought, until nobody has one.
func (d *fixture) settle(r dispatch.Refusal) {
	d.t.Helper()
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(50 * time.Millisecond) {
		for _, uid := range d.take() {
			entry := d.Enter(uid)
			if entry.Verdict != dispatch.Lead {
				d.t.Fatalf("pod %s is not asked to lead", uid)
			}
			d.MayPreempt(uid)
			why := r
			if entry.Limit != (model.Reason{}) {
				why.Reason = entry.Limit
			}
			d.Refused(uid, why)
		}
	}
	d.want()
}

// soon expects a turn within two seconds.
func (d *fixture) soon(lead types.UID) {
	d.t.Helper()
	for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(10 * time.Millisecond) {
		if took := d.take(); slices.Contains(took, lead) {
			return
		} else if len(took) > 0 {
			d.t.Fatalf("activated %v, want %s", took, lead)
		}
	}
	began := time.Now()
	for time.Since(began) < 15*time.Minute {
		time.Sleep(time.Second)
		if took := d.take(); len(took) > 0 {
			d.t.Fatalf("%v has a turn after %s, want %s within 2 s", took, time.Since(began)+2*time.Second, lead)
		}
	}
	d.t.Fatalf("%s has no turn in a quarter of an hour, want one within 2 s", lead)
}

// node adds a node of so many cores, changed.
func (d *fixture) node(name, cpu string, change func(*corev1.Node)) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"disk": ""}}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("110"),
	}}}
	change(n)
	d.state.UpsertNode(n)
}

// crowded is a fixture of four cores, all held by the job "low", for which the queue sets no limit.
func crowded(t *testing.T, actions string) *fixture {
	d := evicting(t, actions)
	d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Reclaimable: true})
	d.addNode("node-0", "4")
	return d
}

// TestVictimsOnANodeThatMayBeUsedAgain: pods of lower priority run on a node that takes no others, and is full. That makes no places, but victims.
func TestVictimsOnANodeThatMayBeUsedAgain(t *testing.T) {
	for name, c := range map[string]func(*corev1.Node){
		"uncordoned": func(n *corev1.Node) { n.Spec.Unschedulable = true },
		"untainted": func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := crowded(t, "preempt")
				d.node("node-0", "4", c)
				d.occupy("low", 4)
				d.ask("urgent", 1, "high")
				d.settle(dispatch.Refusal{Reason: noRoom})
				d.node("node-0", "4", func(*corev1.Node) {})
				d.soon("urgent-0")
			})
		})
	}
}

// TestAPodLetsItselfBeEvicted: it says so by its annotation, while somebody waits that may evict it.
func TestAPodLetsItselfBeEvicted(t *testing.T) {
	for name, queueFull := range map[string]bool{"nodes full": false, "queue full": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := crowded(t, "preempt")
				if queueFull {
					d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Reclaimable: true, Capability: cores(4)})
					d.addNode("node-0", "8")
				}
				d.occupy("low", 4)
				say := func(preemptable string) {
					for i := range 4 {
						p := memberOf("low", i, "1")
						p.Spec.NodeName, p.Status.Phase = "node-0", corev1.PodRunning
						p.Annotations[model.PreemptableKey] = preemptable
						d.state.UpsertPod(p)
					}
				}
				say("false")
				d.ask("urgent", 1, "high")
				d.settle(dispatch.Refusal{Reason: noRoom})
				say("true")
				d.soon("urgent-0")
			})
		})
	}
}

// TestAPodGroupLetsItsPodsBeEvicted: it says so by its annotation.
func TestAPodGroupLetsItsPodsBeEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := crowded(t, "gangpreempt")
		say := func(preemptable string) {
			d.state.UpsertGroup(keyOf("low"), &model.Group{
				UID: "low", Queue: model.DefaultQueue, MinMember: 4, Phase: model.PhaseRunning, Created: epoch,
				Object: &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{model.PreemptableKey: preemptable}}},
			})
		}
		d.occupy("low", 4)
		say("false")
		d.ask("urgent", 1, "high")
		d.settle(dispatch.Refusal{Reason: noRoom})
		say("true")
		d.soon("urgent-0")
	})
}

// TestThePodGroupOfVictimsAppears: pods that name a PodGroup which is missing are not evicted. Once it is there they may be.
func TestThePodGroupOfVictimsAppears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := crowded(t, "preempt")
		for i := range 4 {
			d.start("low", i)
		}
		d.ask("urgent", 1, "high")
		d.settle(dispatch.Refusal{Reason: noRoom})
		d.state.UpsertGroup(keyOf("low"), &model.Group{UID: "low", Queue: model.DefaultQueue, MinMember: 1, Phase: model.PhaseRunning, Created: epoch})
		d.soon("urgent-0")
	})
}

// TestJobsWhoseRolesAskForOtherThingsAreNotAlike: of the one the master asks for much, of the other the worker, and only masters have to start.
func TestJobsWhoseRolesAskForOtherThingsAreNotAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.addNode("node-0", "2")
		gang := func(job, master, worker string) {
			d.state.UpsertGroup(keyOf(job), &model.Group{
				UID: types.UID(job), Queue: model.DefaultQueue, MinMember: 1, MinTaskMember: map[string]int{"master": 1}, Created: epoch,
			})
			for i, cpu := range []string{master, worker} {
				p := memberOf(job, i, cpu)
				p.Annotations[model.RoleKey] = []string{"master", "worker"}[i]
				d.state.UpsertPod(p)
			}
		}
		gang("large", "4", "1")
		d.settle(dispatch.Refusal{Reason: noRoom})
		gang("small", "1", "4")
		d.soon("small-0")
	})
}

// TestAQuotaThatCountsSomeOfThePods: of two jobs that claim the same, the second has some of its pods. The quota counts these already.
func TestAQuotaThatCountsSomeOfThePods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("enqueue allocate", byPriority, inGangs, config.TierPlugin{Name: config.PluginResourceQuota}))
		d.state.UpsertQuota(&model.Quota{Namespace: "ns", Name: "quota", Hard: cores(4), Used: cores(2)})
		group := func(job string, age int) {
			d.state.UpsertGroup(keyOf(job), &model.Group{
				UID: types.UID(job), Queue: model.DefaultQueue, MinMember: 3, MinResources: cores(3), MinQuota: cores(3), Phase: model.PhasePending,
				Created: epoch.Add(-time.Duration(age) * time.Minute),
			})
		}
		group("first", 2)
		d.admitted()
		group("begun", 1)
		d.state.UpsertPod(memberOf("begun", 0, "1"))
		d.state.UpsertPod(memberOf("begun", 1, "1"))
		synctest.Wait()
		time.Sleep(5 * time.Second)
		d.admitted("begun")
		time.Sleep(time.Hour)
		d.admitted("begun")
	})
}

// TestWhoComesFirstIsNotWhoMayEvict: by its deadline a job comes before one of higher priority that asks for the same. Only the other may have pods evicted.
func TestWhoComesFirstIsNotWhoMayEvict(t *testing.T) {
	t.Run("admission", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newFixtureWith(t, args("enqueue allocate preempt", config.TierPlugin{Name: config.PluginSLA}, byPriority, inGangs, byOvercommit))
			d.state.UpsertPriorityClass("high", 1000, false)
			d.addNode("node-0", "4")
			d.occupy("low", 4)
			synctest.Wait()
			apply := func(job, class string, wait time.Duration) {
				d.state.UpsertGroup(keyOf(job), &model.Group{
					UID: types.UID(job), Queue: model.DefaultQueue, MinMember: 2, MinResources: cores(2), Phase: model.PhasePending, PriorityClass: class,
					WaitingTime: wait, Created: time.Now(),
				})
			}
			apply("patient", "", 24*time.Hour)
			d.admitted("low")
			apply("urgent", "high", 0)
			time.Sleep(5 * time.Second)
			d.admitted("low", "urgent")
		})
	})
	t.Run("turns", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := newFixtureWith(t, args("allocate preempt", config.TierPlugin{Name: config.PluginSLA}, byPriority, inGangs))
			d.state.UpsertPriorityClass("high", 1000, false)
			d.addNode("node-0", "4")
			d.occupy("low", 4)
			ask := func(job, class string, wait time.Duration) {
				d.state.UpsertGroup(keyOf(job), &model.Group{
					UID: types.UID(job), Queue: model.DefaultQueue, MinMember: 1, PriorityClass: class, WaitingTime: wait, Created: time.Now(),
				})
				d.state.UpsertPod(memberOf(job, 0, "1"))
			}
			ask("patient", "", 24*time.Hour)
			d.settle(dispatch.Refusal{Reason: noRoom})
			ask("urgent", "high", 0)
			d.soon("urgent-0")
		})
	})
}

// TestAMinimumThatIsRaisedMakesAJobStarve: what the job asks for besides what runs is the same as before.
func TestAMinimumThatIsRaisedMakesAJobStarve(t *testing.T) {
	for name, queueFull := range map[string]bool{"nodes full": false, "queue full": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := crowded(t, "preempt")
				if queueFull {
					d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Reclaimable: true, Capability: cores(4)})
					d.addNode("node-0", "8")
				}
				d.occupy("low", 2)
				group := func(least int) {
					d.state.UpsertGroup(keyOf("grows"), &model.Group{
						UID: "grows", Queue: model.DefaultQueue, MinMember: least, Phase: model.PhaseRunning, PriorityClass: "high", Created: epoch,
					})
				}
				group(2)
				d.start("grows", 0)
				d.start("grows", 1)
				d.state.UpsertPod(memberOf("grows", 2, "1"))
				d.settle(dispatch.Refusal{Reason: noRoom})
				group(3)
				d.soon("grows-2")
			})
		})
	}
}

// TestAVictimIsGoneAtOnce: no update tells that the API server agreed to evict it, and the room that it leaves is of no use to who waits. The room
// in its queue is.
func TestAVictimIsGoneAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := evicting(t, "preempt")
		d.node("small", "1", func(n *corev1.Node) { n.Labels["disk"] = "small" })
		d.occupy("low", 2)
		// The victim is on a node that is too small for the one that waits.
		p := memberOf("low", 2, "1")
		p.Spec.NodeName, p.Status.Phase = "small", corev1.PodRunning
		d.state.UpsertPod(p)
		synctest.Wait()
		// It does not fit at first, so that its places are counted.
		d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Reclaimable: true, Capability: cores(5)})
		d.addNode("node-0", "3")
		d.submit("waits", 1, 1, "2")
		d.settle(dispatch.Refusal{Reason: noRoom})
		d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Reclaimable: true, Capability: cores(4)})
		d.settle(dispatch.Refusal{Reason: noRoom})
		// Somebody else has the victim evicted.
		d.state.Pipeline(nil, []types.UID{p.UID})
		synctest.Wait()
		d.addNode("node-0", "8")
		d.want()
		if got := d.last("waits").Kind; got != model.WaitingForVictims {
			t.Fatalf("it waits for %s", got)
		}
		d.state.DeletePod(p.UID)
		d.soon("waits-0")
	})
}

// TestRoomIsNotKeptAnyMore: what is kept for a pod counts as idle, so that no places are gained when it is kept no more.
func TestRoomIsNotKeptAnyMore(t *testing.T) {
	for name, then := range map[string]func(d *fixture){
		"taken back": func(d *fixture) { d.state.ClearNominations("kept-0") },
		"deleted":    func(d *fixture) { d.state.DeletePod("kept-0") },
		"elsewhere":  func(d *fixture) { d.state.Assume("kept-0", "node-1") },
	} {
		for kind, change := range map[string]func(*corev1.Pod){
			"who goes by nodes alone": func(*corev1.Pod) {},
			"who goes by other pods": func(p *corev1.Pod) {
				p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
					TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{},
				}}
			},
			"who names a volume": func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"},
				}}}
			},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					d := crowded(t, "preempt")
					d.node("node-1", "8", func(n *corev1.Node) { n.Spec.Unschedulable = true })
					d.submit("kept", 1, 9, "4")
					d.want("kept-0")
					d.state.Pipeline([]model.Nomination{{UID: "kept-0", Node: "node-0"}}, nil)
					d.Pipelined("kept-0")
					d.settle(dispatch.Refusal{Reason: model.Reason{Kind: model.WaitingForVictims}})
					d.state.UpsertGroup(keyOf("other"), &model.Group{UID: "other", Queue: model.DefaultQueue, MinMember: 1, Created: epoch})
					// It has started, and has nobody evicted for what it asks for besides.
					running := memberOf("other", 1, "1")
					running.Spec.NodeName, running.Status.Phase = "node-1", corev1.PodRunning
					d.state.UpsertPod(running)
					p := memberOf("other", 0, "1")
					change(p)
					d.state.UpsertPod(p)
					d.settle(dispatch.Refusal{Reason: noRoom})
					then(d)
					for _, uid := range d.take() {
						if uid == "other-0" {
							return
						}
						d.refuse(uid, dispatch.Refusal{Reason: noRoom})
					}
					d.soon("other-0")
				})
			})
		}
	}
}

// TestAGangThatLostAMemberGivesWayWhenItsTimeIsOver: the gang that is completed first has found no room before, and looks again.
func TestAGangThatLostAMemberGivesWayWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := evicting(t, "preempt")
		d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue})
		d.state.UpsertQueue(&model.Queue{Name: "other"})
		const soon = time.Minute
		d.state.UpsertGroup(keyOf("lost"), &model.Group{
			UID: "lost", Queue: "other", MinMember: 3, Phase: model.PhaseRunning, Created: epoch, Terms: model.Terms{BrokenTimeout: model.Say(soon)},
		})
		for i := range 3 {
			d.start("lost", i)
		}
		d.addNode("node-0", "3")
		synctest.Wait()
		d.state.DeletePod(memberOf("lost", 2, "1").UID)
		lost := time.Now()
		d.halfOf("half", model.DefaultQueue, 9)
		half := *d.state.Summary(keyOf("half")).Group
		half.Terms.HalfTimeout = model.Say[time.Duration](0) // for ever
		d.state.UpsertGroup(keyOf("half"), &half)
		d.settle(dispatch.Refusal{Reason: noRoom})
		time.Sleep(time.Until(lost.Add(soon)))
		d.soon("half-1")
		// Its PodGroup gives it more time, and that is over, too.
		d.refuse("half-1", dispatch.Refusal{Reason: noRoom})
		longer := *d.state.Summary(keyOf("lost")).Group
		longer.Terms.BrokenTimeout = model.Say(3 * soon)
		d.state.UpsertGroup(keyOf("lost"), &longer)
		d.settle(dispatch.Refusal{Reason: noRoom})
		time.Sleep(time.Until(lost.Add(3 * soon)))
		d.soon("half-1")
	})
}

// TestAQueueMayUseOtherNodes: a filter refused its pods on nodes that have room, by the queue.
func TestAQueueMayUseOtherNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, NodeGroups: &model.NodeGroups{Required: []string{"a"}}})
		d.submit("job", 1, 1, "1")
		d.want("job-0")
		shape := d.state.Task("job-0").Shape
		d.refuse("job-0", dispatch.Refusal{
			Reason: model.Reason{Kind: model.NotEnoughResources, Message: "node does not satisfy the node group affinity", FromNodes: true},
			Vetoes: []dispatch.Veto{{Shape: shape, Nodes: []string{"node-0"}}},
		})
		d.want()
		time.Sleep(5 * time.Second)
		d.want()
		d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, NodeGroups: &model.NodeGroups{Required: []string{"b"}}})
		d.soon("job-0")
	})
}

// TestAPluginLetsGoWhileItIsNoted: two members are held. While the model is told of the one, the plugin lets go of the other.
func TestAPluginLetsGoWhileItIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("gang", 3, 1, "1")
		d.want("gang-0")
		d.keepOut("gang-1", "DynamicResources")
		d.keepOut("gang-2", "DynamicResources")
		held := false
		d.state.Observe(func(c model.Change) {
			other := map[types.UID]types.UID{"gang-1": "gang-2", "gang-2": "gang-1"}
			for _, uid := range c.Tasks {
				if task := d.state.Task(uid); !held && task != nil && task.HeldBy != "" && other[uid] != "" {
					held = true
					// The scheduler takes the other one from the queue.
					d.letIn(other[uid])
					d.Begins(other[uid])
				}
			}
		})
		entry := d.Enter("gang-0")
		var nodes []string
		for range entry.Job.Tasks {
			nodes = append(nodes, "node-0")
		}
		d.Planned("gang-0", pods(entry.Job), nodes, false)
		synctest.Wait()
		if !held {
			t.Fatal("nobody was held")
		}
		// Then the first one is let go, too.
		d.letIn("gang-1")
		d.letIn("gang-2")
		for _, uid := range []types.UID{"gang-1", "gang-2"} {
			d.Begins(uid)
		}
		for began := time.Now(); time.Since(began) < time.Hour; time.Sleep(time.Second) {
			if slices.Contains(d.take(), "gang-0") {
				if waited := time.Since(began); waited > 2*time.Second {
					t.Errorf("it waited %s", waited)
				}
				return
			}
		}
		t.Errorf("no turn within an hour: %v", d.last("gang"))
	})
}

// TestTheQueueHasRoomWhateverTheAnswer: an eviction is not agreed to yet, and another pod of the queue ends.
func TestTheQueueHasRoomWhateverTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Nobody evicts but for pods of other profiles.
		d := newFixtureWith(t, args("allocate", byPriority, inGangs, byCapacity))
		d.node("small", "8", func(n *corev1.Node) { n.Spec.Unschedulable = true })
		d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Reclaimable: true, Capability: cores(8)})
		d.addNode("node-0", "1")
		d.state.UpsertGroup(keyOf("low"), &model.Group{UID: "low", Queue: model.DefaultQueue, MinMember: 1, Phase: model.PhaseRunning, Created: epoch})
		for i := range 4 {
			p := memberOf("low", i, "1")
			p.Spec.NodeName, p.Status.Phase = "small", corev1.PodRunning
			d.state.UpsertPod(p)
		}
		d.submit("waits", 1, 1, "2")
		// It does not fit at first, so that its places are counted.
		d.settle(dispatch.Refusal{Reason: noRoom})
		d.state.UpsertQueue(&model.Queue{Name: model.DefaultQueue, Reclaimable: true, Capability: cores(5)})
		d.settle(dispatch.Refusal{Reason: noRoom})
		d.state.Pipeline(nil, []types.UID{"low-3"})
		d.addNode("node-0", "8")
		d.want()
		if got := d.last("waits").Kind; got != model.WaitingForVictims {
			t.Fatalf("it waits for %s", got)
		}
		d.state.DeletePod("low-2")
		d.soon("waits-0")
	})
}

// TestANodeShrinksSoThatAJobFitsNowhere: what was promised to that job keeps nobody out any more.
func TestANodeShrinksSoThatAJobFitsNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("enqueue allocate", byPriority, inGangs, byOvercommit))
		d.addNode("node-1", "4")
		d.group("large", model.DefaultQueue, 1, 9, cores(8))
		d.pods("large", 1, "8")
		d.want("large-0")
		d.refuse("large-0", dispatch.Refusal{Reason: noRoom})
		d.admitted("large")
		d.addNode("node-0", "7")
		d.group("small", model.DefaultQueue, 1, 1, cores(8))
		time.Sleep(2 * time.Second)
		d.admitted("large", "small")
	})
}

// TestANodeShrinksSoThatAQueueHoldsTooMuch: the other queue takes what it is due.
func TestANodeShrinksSoThatAQueueHoldsTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("allocate reclaim", byPriority, inGangs, byProportion))
		for _, name := range []string{"rich", "poor"} {
			d.state.UpsertQueue(&model.Queue{Name: name, Weight: 1, Reclaimable: true})
		}
		d.addNode("node-1", "8")
		d.state.UpsertGroup(keyOf("peers"), &model.Group{UID: "peers", Queue: "rich", MinMember: 1, Created: epoch})
		for i := range 8 {
			d.start("peers", i)
		}
		d.state.UpsertGroup(keyOf("own"), &model.Group{UID: "own", Queue: "poor", MinMember: 1, Created: epoch})
		for i := range 4 {
			p := memberOf("own", i, "1")
			p.Spec.NodeName, p.Status.Phase = "node-1", corev1.PodRunning
			d.state.UpsertPod(p)
		}
		time.Sleep(5 * time.Second)
		d.addNode("node-1", "4")
		time.Sleep(5 * time.Second)
		d.askIn("poor", "first", 2)
		d.want("first-0")
		d.Enter("first-0")
		if a := d.MayPreempt("first-0"); !slices.Equal(a.Actions, []config.Action{config.Reclaim}) {
			t.Errorf("it may preempt by %v (%s), want %v", a.Actions, a.None, config.Reclaim)
		}
	})
}

// TestWhoIsTrustedDoesNotWaitBehindWhoIsNot: two jobs claim the same. Of the first one a pod is there, so that it has to show that it can start.
func TestWhoIsTrustedDoesNotWaitBehindWhoIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := blocked(t)
		group := func(job string, age int) {
			d.state.UpsertGroup(keyOf(job), &model.Group{
				UID: types.UID(job), Queue: model.DefaultQueue, MinMember: 2, MinResources: cores(2), MinQuota: cores(2), Phase: model.PhasePending,
				Created: epoch.Add(-time.Duration(age) * time.Minute),
			})
		}
		group("begun", 5)
		d.state.UpsertPod(memberOf("begun", 0, "1"))
		group("trusted", 4)
		time.Sleep(stalledAfter + 2*time.Second)
		d.admitted("stuck", "trusted")
	})
}

// TestANodeChangesWhileAPlanIsMade: what a filter said of it may not hold any more.
func TestANodeChangesWhileAPlanIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		label := func(group string) {
			d.node("node-0", "8", func(n *corev1.Node) { n.Labels[model.NodeGroupLabel] = group })
		}
		label("a")
		d.submit("job", 1, 1, "1")
		d.want("job-0")
		r := dispatch.Refusal{
			Reason: model.Reason{Kind: model.NotEnoughResources, Message: "node does not satisfy the node group affinity", FromNodes: true},
			Vetoes: []dispatch.Veto{{Shape: d.state.Task("job-0").Shape, Nodes: []string{"node-0"}}},
		}
		d.refuse("job-0", r)
		d.want()
		time.Sleep(5 * time.Second)
		label("b")
		d.want("job-0")
		d.begin("job-0")
		if entry := d.Enter("job-0"); entry.Verdict != dispatch.Lead {
			t.Fatal("it is not asked to lead")
		}
		// The plan is made with the label as it was.
		label("c")
		d.Refused("job-0", r)
		d.Between()
		d.soon("job-0")
	})
}

// TestRoomIsCountedBeforeTheDispatcherIsToldOfIt: a node comes while the plan is made without it, and the refusal has its places counted before the
// dispatcher is told of the node.
func TestRoomIsCountedBeforeTheDispatcherIsToldOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("big", 3, 1, "4")
		d.want("big-0")
		d.begin("big-0")
		if entry := d.Enter("big-0"); entry.Verdict != dispatch.Lead {
			t.Fatal("it is not asked to lead")
		}
		d.beforeNotified = func() { d.Refused("big-0", dispatch.Refusal{Reason: noRoom}) }
		d.addNode("node-1", "8")
		d.Between()
		d.soon("big-0")
	})
}

// TestRoomThatWasGoneForAMomentIsNoticed: another pod is on the node for so short a time that the count of places has no news of it. Whoever looked
// just then found no room.
func TestRoomThatWasGoneForAMomentIsNoticed(t *testing.T) {
	other := memberOf("other", 0, "1")
	other.Spec.NodeName, other.Status.Phase = "node-0", corev1.PodRunning
	for name, makeRoom := range map[string]func(*fixture){
		"when the next turn is chosen": func(d *fixture) {
			d.mayFit = func(job *model.Job, _ model.Totals) bool {
				d.mayFit = nil
				came, seen := make(chan struct{}), make(chan struct{})
				d.beforeNotified = func() {
					close(came)
					<-seen
					d.state.DeletePod(other.UID)
				}
				go d.state.UpsertPod(other)
				<-came
				defer close(seen)
				return gang.MayFit(job, d.state.Totals())
			}
			d.state.DeletePod("running-0")
		},
		"while it is planned": func(d *fixture) {
			d.state.DeletePod("running-0")
			d.want("late-0")
			d.begin("late-0")
			d.Enter("late-0")
			d.state.UpsertPod(other)
			d.state.DeletePod(other.UID)
			d.Refused("late-0", dispatch.Refusal{Reason: noRoom})
			d.Between()
		},
		"after it was planned": func(d *fixture) {
			d.state.DeletePod("running-0")
			d.want("late-0")
			d.begin("late-0")
			d.Enter("late-0")
			// The scheduler's cache has heard of the other pod before the model.
			d.Refused("late-0", dispatch.Refusal{Reason: noRoom})
			d.Between()
			d.beforeNotified = func() { d.state.DeletePod(other.UID) }
			d.state.UpsertPod(other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t)
				d.occupy("running", 8)
				d.submit("late", 1, 1, "1")
				d.want("late-0")
				d.begin("late-0")
				d.refuse("late-0", dispatch.Refusal{Reason: noRoom})
				d.Between()
				synctest.Wait()
				makeRoom(d)
				d.soon("late-0")
			})
		})
	}
}

// TestRoomElsewhereIsNoReasonToTryAgain: a job that was refused though the count has room for it hears of room on the nodes that admit it, and of no other.
func TestRoomElsewhereIsNoReasonToTryAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.addNode("node-1", "8", "ssd")
		elsewhere := func(step func()) {
			p := memberOf("other", 0, "1")
			p.Spec.NodeName, p.Status.Phase = "node-0", corev1.PodRunning
			d.state.UpsertPod(p)
			step()
			d.state.DeletePod(p.UID)
		}
		p := memberOf("picky", 0, "1")
		p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		d.state.UpsertGroup(keyOf("picky"), &model.Group{UID: "picky", Queue: model.DefaultQueue, MinMember: 1, Created: epoch})
		d.state.UpsertPod(p)
		for range 2 {
			d.want("picky-0")
			d.begin("picky-0")
			d.Enter("picky-0")
			elsewhere(func() {})
			d.Refused("picky-0", dispatch.Refusal{Reason: noRoom})
			d.Between()
		}
		elsewhere(synctest.Wait)
		d.want()
	})
}

// TestMoreOfAJobMayBeMissing: its PodGroup says so by its annotation.
func TestMoreOfAJobMayBeMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("allocate preempt", config.TierPlugin{Name: config.PluginTDM}, byPriority))
		d.state.UpsertPriorityClass("high", 1000, false)
		d.addNode("node-0", "4")
		say := func(most string) {
			d.state.UpsertGroup(keyOf("low"), &model.Group{
				UID: "low", Queue: model.DefaultQueue, MinMember: 1, Phase: model.PhaseRunning, Created: epoch,
				Object: &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{model.MaxUnavailableAnnotation: most}}},
			})
		}
		d.occupy("low", 4)
		say("0")
		d.ask("urgent", 1, "high")
		d.settle(dispatch.Refusal{Reason: noRoom})
		say("2")
		d.soon("urgent-0")
	})
}

// TestAJobThatMayNotBeEvictedStarves: the plugin tdm has no job starve that may be evicted. Its PodGroup says otherwise now.
func TestAJobThatMayNotBeEvictedStarves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("allocate preempt", config.TierPlugin{Name: config.PluginTDM}, byPriority))
		d.state.UpsertPriorityClass("high", 1000, false)
		d.addNode("node-0", "4")
		d.occupy("low", 4)
		say := func(preemptable string) {
			d.state.UpsertGroup(keyOf("urgent"), &model.Group{
				UID: "urgent", Queue: model.DefaultQueue, MinMember: 1, PriorityClass: "high", Created: epoch,
				Object: &volcano.PodGroup{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{model.PreemptableKey: preemptable}}},
			})
		}
		say("true")
		d.state.UpsertPod(memberOf("urgent", 0, "1"))
		d.settle(dispatch.Refusal{Reason: noRoom})
		say("false")
		d.soon("urgent-0")
	})
}

// TestANodeDeclaresOtherFeatures: a filter refused pods on it for those that were missing.
func TestANodeDeclaresOtherFeatures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixture(t)
		d.submit("job", 1, 1, "1")
		d.want("job-0")
		d.refuse("job-0", dispatch.Refusal{
			Reason: model.Reason{Kind: model.NotEnoughResources, Message: "node declared features check failed", FromNodes: true},
			Vetoes: []dispatch.Veto{{Shape: d.state.Task("job-0").Shape, Nodes: []string{"node-0"}}},
		})
		d.settle(dispatch.Refusal{Reason: noRoom})
		d.node("node-0", "8", func(n *corev1.Node) { n.Status.DeclaredFeatures = []string{"SomeFeature"} })
		d.soon("job-0")
	})
}
