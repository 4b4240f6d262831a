// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/caldera-scheduler/caldera/internal/testing/builders"
	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// figures are those of a queue, and whether there are any.
func (d *fixture) figures(queue string) (dispatch.QueueFigures, bool) {
	synctest.Wait()
	for _, q := range d.View().Figures() {
		if q.Name == queue {
			return q, true
		}
	}
	return dispatch.QueueFigures{}, false
}

// othersTake has pods of another scheduler hold so many cores of a node.
func (d *fixture) othersTake(node, cpu string) {
	p := builders.Pod("ns", "other-on-"+node).UID("other-on-" + node).SchedulerName("default-scheduler").Node(node).Phase(corev1.PodRunning).
		Req(builders.CPU(cpu)).Obj()
	d.state.UpsertPod(p)
}

// holds has a job of a queue run on node-0.
func (d *fixture) holds(job, queue string, pods int) {
	d.group(job, queue, pods, 60, sumOf(pods, "1"))
	for i := range pods {
		p := memberOf(job, i, "1")
		p.Spec.NodeName, p.Status.Phase = "node-0", corev1.PodRunning
		d.state.UpsertPod(p)
	}
}

// wantBelowDue sleeps for ten seconds, for which a queue is to have been below its due, or not at all.
func (d *fixture) wantBelowDue(queue string, want bool) {
	d.t.Helper()
	before, _ := d.figures(queue)
	time.Sleep(10 * time.Second)
	after, _ := d.figures(queue)
	// The state at a moment holds until the next look, which comes within 1.1 s.
	switch got := after.BelowDue - before.BelowDue; {
	case want && (got < 8.9 || got > 10), !want && got > 1.1:
		d.t.Errorf("queue %q was below its due for %v s of 10, want all: %v", queue, got, want)
	}
}

// TestWhenAQueueIsBelowItsDue: the queue is due four cores, and others hold all nodes.
func TestWhenAQueueIsBelowItsDue(t *testing.T) {
	const queue = "research"
	gang := func(size, pods int, cpu string) func(*fixture) {
		return func(d *fixture) {
			asks := sumOf(size, cpu)
			d.group("waits", queue, size, 1, asks)
			d.pods("waits", pods, cpu)
		}
	}
	for name, tc := range map[string]struct {
		actions string
		does    func(*fixture)
		want    bool
	}{
		"nobody waits":                               {"allocate", func(*fixture) {}, false},
		"a gang waits that it is due":                {"allocate", gang(4, 4, "1"), true},
		"a gang waits that is more than its due":     {"allocate", gang(5, 5, "1"), false},
		"a gang waits whose minimum it is due":       {"allocate", gang(4, 9, "1"), true},
		"a gang waits for pods of its minimum":       {"allocate", gang(4, 3, "1"), false},
		"a gang with its pods is not let in":         {"enqueue allocate", gang(4, 4, "1"), true},
		"a gang that is not let in has no pods":      {"enqueue allocate", gang(4, 0, "1"), false},
		"a gang that is not let in has some of them": {"enqueue allocate", gang(4, 3, "1"), false},
		"it holds a part of its due": {"allocate", func(d *fixture) {
			d.holds("runs", queue, 2)
			gang(2, 2, "1")(d)
		}, true},
		"it holds so much of its due that the gang is too much": {"allocate", func(d *fixture) {
			d.holds("runs", queue, 3)
			gang(2, 2, "1")(d)
		}, false},
		"one gang is too much, and another one is not": {"allocate", func(d *fixture) {
			gang(5, 5, "1")(d)
			d.group("small", queue, 1, 1, sumOf(1, "1"))
			d.pods("small", 1, "1")
		}, true},
		"the queue is due something else than what is asked for": {"allocate", func(d *fixture) {
			d.state.UpsertQueue(&model.Queue{Name: queue, Weight: 1, Deserved: resource.Vector{{Name: "nvidia.com/gpu", Value: 4}}})
			gang(4, 4, "1")(d)
		}, false},
		"the queue is closed": {"enqueue allocate", func(d *fixture) {
			d.state.UpsertQueue(&model.Queue{Name: queue, Weight: 1, Deserved: cores(4), State: "Closed"})
			gang(4, 4, "1")(d)
		}, false},
		"the queue is due nothing": {"allocate", func(d *fixture) {
			d.state.UpsertQueue(&model.Queue{Name: queue, Weight: 1})
			gang(4, 4, "1")(d)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixtureWith(t, args(tc.actions, byPriority, inGangs, byCapacity, byOvercommit))
				d.state.UpsertQueue(&model.Queue{Name: queue, Weight: 1, Deserved: cores(4)})
				d.othersTake("node-0", "8")
				d.addNode("node-1", "8")
				d.othersTake("node-1", "8")
				tc.does(d)
				d.run()
				d.wantBelowDue(queue, tc.want)
			})
		})
	}
}

// TestTheTimeBelowItsDueEndsWithTheWait: and is forgotten with the queue.
func TestTheTimeBelowItsDueEndsWithTheWait(t *testing.T) {
	for name, plugin := range map[string]config.TierPlugin{"capacity": byCapacity, "proportion": byProportion} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixtureWith(t, args("allocate", byPriority, inGangs, plugin))
				queue := func(name string) { d.state.UpsertQueue(&model.Queue{Name: name, Weight: 1, Deserved: cores(4)}) }
				queue("a")
				queue("b")
				d.holds("holder", "b", 8)
				d.group("waits", "a", 4, 1, sumOf(4, "1"))
				d.pods("waits", 4, "1")
				d.run()
				d.wantBelowDue("a", true)
				d.wantBelowDue("b", false)
				for i := range 8 {
					d.state.DeletePod(memberOf("holder", i, "1").UID)
				}
				d.run()
				for i := range 4 {
					p := memberOf("waits", i, "1")
					p.Spec.NodeName = "node-0"
					d.state.UpsertPod(p)
				}
				d.wantBelowDue("a", false)
				if q, _ := d.figures("a"); q.BelowDue < 8.9 {
					t.Errorf("the queue was below its due for %v s in all, want 9 or more", q.BelowDue)
				}
				for i := range 4 {
					d.state.DeletePod(memberOf("waits", i, "1").UID)
				}
				d.state.DeleteGroup(keyOf("waits"))
				d.state.DeleteQueue("a")
				if _, there := d.figures("a"); there {
					t.Error("there are figures of a queue that is gone")
				}
				queue("a")
				if q, _ := d.figures("a"); q.BelowDue != 0 {
					t.Errorf("a queue that has just come was below its due for %v s", q.BelowDue)
				}
			})
		})
	}
}

// TestAStandbyCountsNoTimeBelowDue: nobody decides there.
func TestAStandbyCountsNoTimeBelowDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStandbyWith(t, args("allocate", inGangs, byCapacity))
		d.state.UpsertQueue(&model.Queue{Name: "a", Deserved: cores(4)})
		d.group("waits", "a", 4, 1, sumOf(4, "1"))
		d.pods("waits", 4, "1")
		d.wantBelowDue("a", false)
	})
}

// TestWhoWaitsIsToldWithQueueAndReason: of those that are next, too.
func TestWhoWaitsIsToldWithQueueAndReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newFixtureWith(t, args("allocate", byPriority, inGangs, byCapacity))
		d.state.UpsertQueue(&model.Queue{Name: "a", Deserved: cores(4)})
		d.group("large", "a", 9, 1, sumOf(9, "1"))
		d.pods("large", 9, "1")
		d.group("lacks", "a", 2, 1, sumOf(2, "1"))
		d.pods("lacks", 1, "1")
		d.run()
		d.group("next", "nowhere", 1, 1, sumOf(1, "1"))
		d.pods("next", 1, "1")
		synctest.Wait()
		got := map[string]string{}
		for _, w := range d.View().Waiting() {
			got[w.Job.Name] = fmt.Sprintf("%s %s", w.Queue, w.Reason.Kind)
		}
		for job, want := range map[string]string{"large": "a NotEnoughResources", "lacks": "a NotEnoughTasks", "next": "nowhere QueueNotFound"} {
			if got[job] != want {
				t.Errorf("%s waits in %q, want %q", job, got[job], want)
			}
		}
	})
}
