// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// stubborn has pods take for ever to end, with a grace period of a second.
func stubborn(p *corev1.Pod) {
	p.Annotations["localcluster.caldera.dev/terminate-after"] = "1h"
	p.Spec.TerminationGracePeriodSeconds = new(int64(1))
}

// impatient has victims be given up soon after their grace period.
func impatient(a *config.ReclaimArgs) { a.VictimTimeout.Duration = 2 * time.Second }

// ending returns the pods of a job that were asked to end and have not.
func (s *scene) ending(name string) []*corev1.Pod {
	s.t.Helper()
	var pods []*corev1.Pod
	for _, p := range s.Members(s.t, name) {
		if p.DeletionTimestamp != nil {
			pods = append(pods, p)
		}
	}
	return pods
}

// awaits waits until so many pods of a job have been asked to end, and room is kept for a gang meanwhile.
func (s *scene) awaits(victims string, n int, gang string) {
	s.t.Helper()
	env.Eventually(s.t, patience, func() string {
		nominated := 0
		for _, p := range s.Members(s.t, gang) {
			if p.Status.NominatedNodeName != "" {
				nominated++
			}
		}
		if got := len(s.ending(victims)); got != n || nominated == 0 {
			return fmt.Sprintf("%d pods of %s end, want %d; %d of %s are nominated\n%s", got, victims, n, nominated, gang, s.reasons())
		}
		return ""
	})
}

// release lets pods that were asked to end go at last.
func (s *scene) release(pods ...*corev1.Pod) {
	for _, p := range pods {
		s.erase(s.t, p)
	}
}

// TestTheRoomIsKeptUntilVictimsHaveGone holds the victims: the gang waits, others do not get the room, and when the
// victims are gone it starts.
func TestTheRoomIsKeptUntilVictimsHaveGone(t *testing.T) {
	st := open(t, 2)
	// play has a gang of four wait for the victims of a job.
	play := func(t *testing.T, changes ...func(*config.ReclaimArgs)) *scene {
		t.Helper()
		s := st.play(t, byShares, changes...)
		s.queues(map[string]queueSpec{"a": {weight: 1}, "b": {weight: 1}})
		s.fill(job("held", "a", 1, 8, stubborn))
		s.Create(t, job("gang", "b", 4, 4))
		s.awaits("held", 4, "gang")
		return s
	}
	t.Run("one by one, with others in want of room", func(t *testing.T) {
		s := play(t)
		s.Create(t, job("more", "a", 1, 4))
		ordinary := job("ordinary", "", 1, 4, func(p *corev1.Pod) { p.Spec.SchedulerName = corev1.DefaultSchedulerName })
		for i := range ordinary.Size {
			s.CreatePods(t, ordinary.Member(i))
		}
		victims := s.ending("held")
		for i, v := range victims {
			s.release(v)
			if i+1 < len(victims) {
				s.evicted(map[string]int{"held": 4}, time.Second)
				if got := s.running(); got["gang"] != 0 || got["more"] != 0 || got["ordinary"] != 0 {
					t.Errorf("after %d victims have gone, there run %v", i+1, got)
				}
			}
		}
		s.holds(map[string]int{"gang": 4, "held": 4, "more": 0, "ordinary": 0})
		s.evicted(map[string]int{"held": 4}, calm)
	})
	t.Run("the scheduler is restarted", func(t *testing.T) {
		s := play(t)
		s.stop()
		s.start()
		s.evicted(map[string]int{"held": 4}, calm)
		s.release(s.ending("held")...)
		s.holds(map[string]int{"gang": 4, "held": 4})
		s.evicted(map[string]int{"held": 4}, calm)
	})
	t.Run("victims go while there is no scheduler", func(t *testing.T) {
		s := play(t)
		s.stop()
		s.release(s.ending("held")...)
		s.start()
		s.holds(map[string]int{"gang": 4, "held": 4})
		s.evicted(map[string]int{"held": 4}, calm)
	})
	t.Run("the victims' queue may not be reclaimed from any more", func(t *testing.T) {
		s := play(t)
		s.ChangeQueue(t, "a", func(q *volcano.QueueSpec) { q.Reclaimable = new(false) })
		s.evicted(map[string]int{"held": 4}, calm)
		s.release(s.ending("held")...)
		s.holds(map[string]int{"gang": 4, "held": 4})
	})
	t.Run("the beneficiary is deleted", func(t *testing.T) {
		s := play(t)
		s.witness.forgive(s.Members(t, "gang")...)
		s.Delete(t, "gang")
		s.release(s.ending("held")...)
		s.Create(t, job("other", "a", 4, 4))
		s.holds(map[string]int{"other": 4, "held": 4})
		s.evicted(map[string]int{"held": 4}, calm)
		if d := s.ledger()[0]; d.Outcome != eviction.Wasted {
			t.Errorf("the decision is %s, want Wasted\n%s", d.Outcome, s.reasons())
		}
	})
	t.Run("the beneficiary's pods are deleted", func(t *testing.T) {
		s := play(t, impatient)
		members := s.Members(t, "gang")
		s.witness.forgive(members...)
		s.DeletePods(t.Context(), t, members[0])
		s.release(s.ending("held")...)
		s.Create(t, job("other", "b", 4, 4))
		s.holds(map[string]int{"other": 4, "gang": 0, "held": 4})
		s.evicted(map[string]int{"held": 4}, calm)
	})
}

// TestAVictimThatDoesNotGoIsGivenUp checks that a gang takes other victims for those that do not end, if there are any.
func TestAVictimThatDoesNotGoIsGivenUp(t *testing.T) {
	st := open(t, 2)
	t.Run("others go", func(t *testing.T) {
		s := st.play(t, byShares, impatient)
		s.queues(map[string]queueSpec{"a": {weight: 1}})
		s.fill(s.ranked("low", 10, job("held", "a", 1, 8, stubborn)))
		s.Create(t, s.ranked("high", 1000, job("gang", "a", 2, 2)))
		s.awaits("held", 2, "gang")
		for _, p := range s.Members(t, "held") {
			patch := []byte(`{"metadata":{"annotations":{"localcluster.caldera.dev/terminate-after":null}}}`)
			if p.DeletionTimestamp == nil {
				if _, err := s.Kube.CoreV1().Pods(p.Namespace).Patch(t.Context(), p.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		s.holds(map[string]int{"gang": 2, "held": 4})
		s.evicted(map[string]int{"held": 4}, calm)
		if got := len(s.ending("held")); got != 2 {
			t.Errorf("%d pods do not go, want 2", got)
		}
	})
	t.Run("there is no other", func(t *testing.T) {
		s := st.play(t, byShares, impatient)
		s.queues(map[string]queueSpec{"a": {weight: 1}, "b": {weight: 1}})
		s.fill(job("stays", "a", 4, 4))
		s.fill(job("never", "a", 0, 4, stubborn))
		s.Create(t, job("gang", "b", 4, 4))
		s.awaits("never", 4, "gang")
		// The room is given up, and a pod of the default scheduler may have what comes free.
		env.Eventually(t, patience, func() string {
			for _, p := range s.Members(t, "gang") {
				if p.Status.NominatedNodeName != "" {
					return fmt.Sprintf("pod %s still waits for %s\n%s", p.Name, p.Status.NominatedNodeName, s.reasons())
				}
			}
			return ""
		})
		s.evicted(map[string]int{"never": 4}, calm)
		s.release(s.ending("never")...)
		s.holds(map[string]int{"gang": 4, "stays": 4})
	})
	t.Run("a finalizer keeps what has ended", func(t *testing.T) {
		s := st.play(t, byShares)
		s.queues(map[string]queueSpec{"a": {weight: 1}, "b": {weight: 1}})
		s.fill(job("kept", "a", 1, 8, func(p *corev1.Pod) { p.Finalizers = []string{"caldera.test/kept"} }))
		s.Create(t, job("gang", "b", 4, 4))
		s.holds(map[string]int{"gang": 4, "kept": 4})
		s.evicted(map[string]int{"kept": 4}, calm)
		if got := len(s.ending("kept")); got != 4 {
			t.Errorf("%d pods are kept by their finalizer, want 4", got)
		}
	})
}

// TestPodsOfTheGangThatArriveWhileVictimsGo checks that it does not matter which of a gang's pods start when there are
// more of them than when room was made: those that come later may be first in the order of their names.
func TestPodsOfTheGangThatArriveWhileVictimsGo(t *testing.T) {
	st := open(t, 2)
	for _, c := range []struct {
		name        string
		early, late []int
	}{
		{name: "before those for which room is kept", early: []int{4, 5, 6, 7}, late: []int{0, 1, 2, 3}},
		{name: "between them", early: []int{0, 2, 4, 6}, late: []int{1, 3, 5, 7}},
		{name: "after them", early: []int{0, 1, 2, 3}, late: []int{4, 5, 6, 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := st.play(t, byShares)
			s.queues(map[string]queueSpec{"a": {weight: 1}, "b": {weight: 1}})
			s.fill(job("held", "a", 1, 8, stubborn))
			// Nothing is known from jobs before of where pods like these fit.
			gang := job("a-gang", "b", 4, 8, func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Requests[corev1.ResourceMemory] = resource.MustParse("1Mi")
			})
			s.CreateGroup(t, gang)
			for _, i := range c.early {
				s.CreatePods(t, gang.Member(i))
			}
			s.awaits("held", 4, gang.Name)
			for _, i := range c.late {
				s.CreatePods(t, gang.Member(i))
			}
			s.evicted(map[string]int{"held": 4}, time.Second)
			s.recreate(false)
			s.release(s.ending("held")...)
			s.holds(map[string]int{gang.Name: 4, "held": 4})
			s.evicted(map[string]int{"held": 4}, calm)
			if d := s.ledger(); len(d) != 1 || d[0].Outcome != eviction.Started {
				t.Errorf("want one decision, by which the gang started\n%s", s.reasons())
			}
		})
	}
}

// TestWhatAnotherSchedulerNominated checks that a nomination which nobody stands for does not keep a gang from its room.
func TestWhatAnotherSchedulerNominated(t *testing.T) {
	s := single(t, 2, "actions: \"allocate, backfill\"")
	s.stop()
	elsewhere := job("elsewhere", "default", 2, 2)
	elsewhere.Pod = func(_ int, p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "none"} }
	s.Create(t, elsewhere)
	s.Create(t, job("gang", "default", 8, 8))
	for _, name := range []string{"elsewhere", "gang"} {
		for i, p := range []string{name + "-0", name + "-1"} {
			patch := fmt.Sprintf(`{"status":{"nominatedNodeName":"node-000%d"}}`, i)
			_, err := s.Kube.CoreV1().Pods(env.Namespace).Patch(t.Context(), p, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	s.start()
	s.holds(map[string]int{"gang": 8, "elsewhere": 0})
	if phase := s.PodGroup(t, "elsewhere").Status.Phase; phase == volcano.PodGroupRunning {
		t.Errorf("the PodGroup that has no node is %s", phase)
	}
}
