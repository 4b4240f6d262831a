// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package monitor_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/test/soak/monitor"
)

// scene plays a cluster of 20 cores to a monitor.
type scene struct {
	m    *monitor.Monitor
	now  time.Time
	pods map[string]*corev1.Pod
}

func newScene() *scene {
	s := &scene{m: monitor.New(monitor.Defaults()), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), pods: map[string]*corev1.Pod{}}
	s.m.Node(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Status: corev1.NodeStatus{Allocatable: cpu("20")}})
	s.queue("a", nil)
	s.queue("b", nil)
	s.wait(time.Minute)
	return s
}

func cpu(amount string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
}

// wait lets time pass.
func (s *scene) wait(d time.Duration) {
	for end := s.now.Add(d); s.now.Before(end); {
		s.now = s.now.Add(min(500*time.Millisecond, end.Sub(s.now)))
		s.m.Tick(s.now)
	}
}

func (s *scene) queue(name string, change func(*volcano.QueueSpec)) {
	q := &volcano.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: volcano.QueueSpec{Weight: 1}}
	if change != nil {
		change(&q.Spec)
	}
	s.m.Queue(q, s.now)
}

// job creates a PodGroup with pods of one core each.
func (s *scene) job(name, queue string, least, size int) {
	s.m.Group(&volcano.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: volcano.PodGroupSpec{Queue: queue, MinMember: int32(least)},
	}, s.now)
	for i := range size {
		s.create(name, i)
	}
}

func (s *scene) create(job string, i int) {
	name := fmt.Sprintf("%s-%d", job, i)
	s.pods[name] = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name), Annotations: map[string]string{model.GroupNameAnnotation: job},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: cpu("1")}}}},
	}
	s.m.Pod(s.pods[name], s.now)
}

func (s *scene) each(job string, from, to int, do func(*corev1.Pod)) {
	for i := from; i < to; i++ {
		name := fmt.Sprintf("%s-%d", job, i)
		s.pods[name] = s.pods[name].DeepCopy()
		do(s.pods[name])
	}
}

// bind binds the pods of a job from one number to before another.
func (s *scene) bind(job string, from, to int) {
	s.each(job, from, to, func(p *corev1.Pod) {
		p.Spec.NodeName = "node"
		s.m.Pod(p, s.now)
	})
}

// delete has pods end for no reason that they tell, and gone a second later.
func (s *scene) delete(job string, from, to int) {
	s.each(job, from, to, func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: s.now}
		s.m.Pod(p, s.now)
	})
	s.wait(time.Second)
	s.each(job, from, to, func(p *corev1.Pod) { s.m.PodGone(p, s.now) })
}

// evict has pods end for a job of a queue.
func (s *scene) evict(job string, from, to int, taker, queue string) {
	s.each(job, from, to, func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
			Message: fmt.Sprintf("caldera-scheduler: evicting to make room for PodGroup ns/%s in queue %s (reclaim)", taker, queue),
		}}
	})
	s.delete(job, from, to)
}

// lose has pods go with their node.
func (s *scene) lose(job string, from, to int) {
	s.each(job, from, to, func(p *corev1.Pod) {
		s.m.Lost(p.UID)
		s.m.PodGone(p, s.now)
	})
}

func (s *scene) succeed(job string, from, to int) {
	s.each(job, from, to, func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodSucceeded
		s.m.Pod(p, s.now)
	})
}

func TestViolations(t *testing.T) {
	const long, short = time.Minute, 2 * time.Second
	for name, tc := range map[string]struct {
		play func(*scene)
		want []monitor.Kind
	}{
		"a gang that starts within the grace": {play: func(s *scene) {
			s.job("x", "a", 4, 4)
			s.bind("x", 0, 3)
			s.wait(short)
			s.bind("x", 3, 4)
			s.wait(long)
		}},
		"a gang that starts in part": {want: []monitor.Kind{monitor.PartialGang}, play: func(s *scene) {
			s.job("x", "a", 4, 4)
			s.bind("x", 0, 3)
			s.wait(long)
		}},
		"a gang that ends pod by pod": {play: func(s *scene) {
			s.job("x", "a", 4, 4)
			s.bind("x", 0, 4)
			s.succeed("x", 0, 2)
			s.wait(long)
		}},
		"a gang that waits for lost pods": {play: func(s *scene) {
			s.job("x", "a", 4, 4)
			s.bind("x", 0, 4)
			s.lose("x", 0, 2)
			s.wait(short)
			s.create("x", 4)
			s.create("x", 5)
			s.wait(long)
		}},
		"a gang that gets only one of two lost pods back": {want: []monitor.Kind{monitor.PartialGang}, play: func(s *scene) {
			s.job("x", "a", 4, 4)
			s.bind("x", 0, 4)
			s.lose("x", 0, 2)
			s.wait(short)
			s.create("x", 4)
			s.create("x", 5)
			s.bind("x", 4, 5)
			s.wait(long)
		}},
		"a gang that loses a pod while lost ones are bound again": {play: func(s *scene) {
			s.job("x", "a", 4, 4)
			s.bind("x", 0, 4)
			s.lose("x", 0, 2)
			s.wait(short)
			s.create("x", 4)
			s.create("x", 5)
			s.lose("x", 2, 3)
			s.bind("x", 4, 6)
			s.wait(long)
		}},
		"a gang that is evicted from below its minimum": {want: []monitor.Kind{monitor.PartialGang}, play: func(s *scene) {
			s.job("x", "a", 4, 5)
			s.job("y", "a", 1, 1)
			s.bind("x", 0, 5)
			s.evict("x", 0, 2, "y", "a")
			s.bind("y", 0, 1)
			s.wait(long)
		}},
		"a loss of spare pods does not excuse a later eviction": {want: []monitor.Kind{monitor.PartialGang}, play: func(s *scene) {
			s.job("x", "a", 3, 5)
			s.job("y", "a", 1, 1)
			s.bind("x", 0, 5)
			s.lose("x", 0, 2)
			s.wait(long)
			s.evict("x", 2, 3, "y", "a")
			s.bind("y", 0, 1)
			s.wait(long)
		}},
		"a loss just before an eviction that did not know of it": {play: func(s *scene) {
			s.job("x", "a", 3, 4)
			s.job("y", "a", 1, 1)
			s.bind("x", 0, 4)
			s.lose("x", 0, 1)
			s.evict("x", 1, 2, "y", "a")
			s.bind("y", 0, 1)
			s.wait(long)
		}},
		"a queue that grows above its capability": {want: []monitor.Kind{monitor.OverCapability}, play: func(s *scene) {
			s.queue("a", func(q *volcano.QueueSpec) { q.Capability = cpu("3") })
			s.job("x", "a", 1, 4)
			s.wait(long)
			s.bind("x", 0, 4)
			s.wait(long)
		}},
		"a queue above its capability for the moment of an eviction": {play: func(s *scene) {
			s.queue("a", func(q *volcano.QueueSpec) { q.Capability = cpu("3") })
			s.job("x", "a", 1, 3)
			s.job("y", "a", 1, 1)
			s.wait(long)
			s.bind("x", 0, 3)
			s.bind("y", 0, 1)
			s.evict("x", 0, 1, "y", "a")
			s.wait(long)
		}},
		"a queue that gets pods long after its capability was lowered": {want: []monitor.Kind{monitor.OverCapability}, play: func(s *scene) {
			s.job("x", "a", 1, 6)
			s.bind("x", 0, 4)
			s.queue("a", func(q *volcano.QueueSpec) { q.Capability = cpu("3") })
			s.wait(long)
			s.bind("x", 4, 5)
			s.wait(long)
		}},
		"a capability that is lowered": {play: func(s *scene) {
			s.job("x", "a", 1, 4)
			s.bind("x", 0, 4)
			s.queue("a", func(q *volcano.QueueSpec) { q.Capability = cpu("3") })
			s.wait(long)
		}},
		"a queue evicted below its guarantee": {want: []monitor.Kind{monitor.BelowGuarantee, monitor.BelowDue}, play: func(s *scene) {
			s.queue("a", func(q *volcano.QueueSpec) { q.Guarantee.Resource = cpu("4") })
			s.job("x", "a", 1, 4)
			s.job("y", "b", 1, 1)
			s.bind("x", 0, 4)
			s.wait(long)
			s.evict("x", 0, 1, "y", "b")
			s.bind("y", 0, 1)
			s.wait(long)
		}},
		"a job that completes while its queue is evicted from": {play: func(s *scene) {
			s.queue("a", func(q *volcano.QueueSpec) { q.Guarantee.Resource = cpu("4") })
			s.job("x", "a", 1, 7)
			s.job("y", "b", 1, 1)
			s.bind("x", 0, 7)
			s.wait(long)
			s.succeed("x", 0, 3)
			s.evict("x", 3, 4, "y", "b")
			s.bind("y", 0, 1)
			s.wait(long)
		}},
		"a queue that keeps its due": {play: func(s *scene) {
			s.job("x", "a", 1, 20)
			s.job("y", "b", 1, 10)
			s.bind("x", 0, 20)
			s.wait(long)
			s.evict("x", 0, 10, "y", "b")
			s.bind("y", 0, 10)
			s.wait(long)
		}},
		"a queue for which room is kept": {play: func(s *scene) {
			s.job("x", "a", 1, 10)
			s.job("w", "a", 1, 2)
			s.job("y", "b", 1, 12)
			s.bind("x", 0, 10)
			s.bind("y", 0, 8)
			s.wait(long)
			s.m.Group(&volcano.PodGroup{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w"}, Spec: volcano.PodGroupSpec{Queue: "a", MinMember: 1},
				Status: volcano.PodGroupStatus{Conditions: []volcano.PodGroupCondition{{
					Type: volcano.PodGroupUnschedulableType, Status: corev1.ConditionTrue, Reason: string(model.WaitingForVictims),
				}}},
			}, s.now)
			s.evict("x", 0, 1, "y", "b")
			s.bind("y", 8, 9)
			s.wait(10 * time.Second)
			s.bind("w", 0, 1)
			s.wait(long)
		}},
		"a queue that loses one pod of its due": {want: []monitor.Kind{monitor.BelowDue}, play: func(s *scene) {
			s.job("x", "a", 1, 20)
			s.job("y", "b", 1, 11)
			s.bind("x", 0, 20)
			s.wait(long)
			s.evict("x", 0, 11, "y", "b")
			s.bind("y", 0, 11)
			s.wait(long)
		}},
		"jobs that take from each other": {want: []monitor.Kind{monitor.Cycle}, play: func(s *scene) {
			s.job("x", "a", 1, 2)
			s.job("y", "a", 1, 2)
			s.bind("x", 0, 2)
			s.evict("x", 0, 1, "y", "a")
			s.bind("y", 0, 1)
			s.wait(long)
			s.evict("y", 0, 1, "x", "a")
			s.wait(short)
		}},
		"jobs that take from each other a quarter of an hour apart": {play: func(s *scene) {
			s.job("x", "a", 1, 2)
			s.job("y", "a", 1, 2)
			s.bind("x", 0, 2)
			s.evict("x", 0, 1, "y", "a")
			s.bind("y", 0, 1)
			s.wait(15 * time.Minute)
			s.evict("y", 0, 1, "x", "a")
			s.wait(short)
		}},
		"a pod that ends for nobody": {want: []monitor.Kind{monitor.Unexplained}, play: func(s *scene) {
			s.job("x", "a", 1, 2)
			s.bind("x", 0, 2)
			s.delete("x", 0, 1)
			s.wait(long)
		}},
		"a job that its user ends": {play: func(s *scene) {
			s.job("x", "a", 2, 2)
			s.bind("x", 0, 2)
			s.m.Ended("ns", "x", s.now)
			s.delete("x", 0, 1)
			s.wait(long)
		}},
		"a job that its user ends before anything of it was seen": {play: func(s *scene) {
			s.m.Ended("ns", "x", s.now)
			s.job("x", "a", 2, 2)
			s.bind("x", 0, 2)
			s.delete("x", 0, 1)
			s.wait(long)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			tc.play(s)
			var got []monitor.Kind
			for _, v := range s.m.Violations() {
				got = append(got, v.Kind)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s\n%+v", diff, s.m.Violations())
			}
		})
	}
}

func TestEvictionsForNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		play                   func(*scene)
		started, wasted, ended int
	}{
		"the beneficiary starts": {started: 1, play: func(s *scene) { s.bind("y", 0, 2) }},
		"it does not":            {wasted: 1, play: func(*scene) {}},
		"it does in part":        {wasted: 1, play: func(s *scene) { s.bind("y", 0, 1) }},
		"its user ends it":       {ended: 1, play: func(s *scene) { s.m.Ended("ns", "y", s.now) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene()
			s.job("x", "a", 1, 10)
			s.job("y", "b", 2, 2)
			s.bind("x", 0, 10)
			s.evict("x", 0, 2, "y", "b")
			tc.play(s)
			s.wait(time.Minute)
			f := s.m.Figures()
			if f.StartedBatches != tc.started || f.WastedBatches != tc.wasted || f.EndedBatches != tc.ended {
				t.Errorf("started %d, wasted %d, ended %d; want %d, %d, %d", f.StartedBatches, f.WastedBatches, f.EndedBatches, tc.started, tc.wasted, tc.ended)
			}
			if got := f.Evicted[monitor.Flow{Action: "reclaim", From: "a", For: "b"}]; got != 2 || f.EvictedPods != 2 {
				t.Errorf("evicted %d pods, %d of them from a for b; want 2", f.EvictedPods, got)
			}
		})
	}
}
