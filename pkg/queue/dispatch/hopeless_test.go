// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// planCost is how long a plan takes in these tests.
const planCost = 10 * time.Millisecond

// server leads turns one after the other, as a scheduler would: jobs whose names begin with "hopeless" are refused, others are placed.
type server struct {
	*fixture
	// plans counts the plans that came to nothing, bound is when other jobs were placed.
	plans int
	bound map[string]time.Time
	// refusal is what hopeless jobs are told.
	refusal dispatch.Refusal
}

// serve leads turns for so long.
func (s *server) serve(d time.Duration) {
	s.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		led := s.take()
		if len(led) == 0 {
			time.Sleep(time.Millisecond)
			continue
		}
		for _, uid := range led {
			s.lead(uid)
		}
	}
}

func (s *server) lead(uid types.UID) {
	entry := s.Enter(uid)
	if entry.Verdict != dispatch.Lead {
		return
	}
	time.Sleep(planCost)
	if strings.HasPrefix(entry.Job.Key.Name, "hopeless") {
		s.plans++
		s.Refused(uid, s.refusal)
		return
	}
	s.planFor(entry.Job, []types.UID{uid})
	s.place(uid)
	s.bound[entry.Job.Key.Name] = time.Now()
}

// job submits a single pod.
func (s *server) job(name string, age int, change func(*corev1.Pod)) {
	s.state.UpsertGroup(keyOf(name), &model.Group{
		UID: types.UID(name), Queue: model.DefaultQueue, MinMember: 1, Created: epoch.Add(-time.Duration(age) * time.Minute),
	})
	p := memberOf(name, 0, "1m")
	change(p)
	s.state.UpsertPod(p)
}

// probe submits a job that fits, behind all others in order, and returns how long it waits.
func (s *server) probe(name string) time.Duration {
	s.t.Helper()
	created := time.Now()
	s.job(name, 0, func(*corev1.Pod) {})
	s.serve(500 * time.Millisecond)
	at, ok := s.bound[name]
	if !ok {
		s.t.Fatalf("%s has no node after half a second", name)
	}
	return at.Sub(created)
}

func newServer(t *testing.T) *server { return serverOf(newFixture(t)) }

func serverOf(d *fixture) *server {
	return &server{fixture: d, bound: map[string]time.Time{}, refusal: dispatch.Refusal{Reason: noRoom}}
}

// choosy is a policy from outside that may judge any two jobs otherwise.
type choosy struct{}

func (choosy) Preemptable(policy.Eviction, model.Victim) (why string) { return "never" }

// beside returns a server where a policy from outside has a say in evictions.
func beside(t *testing.T) *server {
	const name = "choosy"
	rules := args("allocate preempt", byPriority, inGangs, config.TierPlugin{Name: name})
	return serverOf(newFixtureWith(t, rules, policy.Extension{Plugin: name, Policy: choosy{}}))
}

// asksApart makes the pods of hopeless jobs differ in what they ask for.
func asksApart(i int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: fmt.Sprintf("key-%d", i)}}
	}
}

// TestAPassIsOverWhenNobodyWaits: who was refused last, some time ago, is first again when there is room for both.
func TestAPassIsOverWhenNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		refuse := func(lead types.UID) {
			t.Helper()
			s.want(lead)
			s.refuse(lead, s.refusal)
		}
		s.addNode("fast-0", "8", "fast")
		s.job("first", 2, func(*corev1.Pod) {})
		refuse("first-0")
		s.job("second", 1, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "fast"} })
		refuse("second-0")
		s.addNode("slow-0", "8", "slow")
		refuse("first-0")
		s.addNode("fast-1", "8", "fast")
		s.want("first-0")
	})
}

// TestHopelessJobsLeaveTheTurnsToOthers has 500 jobs of as many shapes that seem to have room and are refused all the same, while pods
// come and go on the nodes.
func TestHopelessJobsLeaveTheTurnsToOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		open  func(t *testing.T) *server
		shape func(i int) func(*corev1.Pod)
	}{
		"that go by their nodes":                       {newServer, asksApart},
		"that are alike, beside a policy from outside": {beside, func(int) func(*corev1.Pod) { return func(*corev1.Pod) {} }},
		"that go by other pods": {newServer, func(i int) func(*corev1.Pod) {
			return func(p *corev1.Pod) {
				p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
					{TopologyKey: fmt.Sprintf("zone-%d", i)},
				}}}
			}
		}},
		"that name volumes": {newServer, func(i int) func(*corev1.Pod) {
			return func(p *corev1.Pod) {
				p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
					ClaimName: fmt.Sprintf("missing-%d", i),
				}}}}
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := tc.open(t)
				for i := range 500 {
					s.job(fmt.Sprintf("hopeless-%d", i), 9, tc.shape(i))
				}
				// Their first plans alternate with those of others.
				if waited := s.probe("first"); waited > 10*planCost {
					t.Errorf("the first probe waited %s", waited)
				}
				s.serve(6 * time.Second)
				if s.plans < 500 {
					t.Fatalf("%d of 500 jobs had a first plan", s.plans)
				}
				stop, stopped := make(chan struct{}), make(chan struct{})
				go func() {
					defer close(stopped)
					for i := 0; ; i++ {
						select {
						case <-stop:
							return
						case <-time.After(50 * time.Millisecond):
						}
						other := memberOf("other", i%2, "1")
						other.Spec.NodeName = "node-0"
						s.state.UpsertPod(other)
						time.Sleep(5 * time.Millisecond)
						s.state.DeletePod(other.UID)
					}
				}()
				defer func() {
					close(stop)
					<-stopped
				}()
				before, began := s.plans, time.Now()
				for i := range 10 {
					if waited := s.probe(fmt.Sprintf("probe-%d", i)); waited > 8*planCost {
						t.Errorf("probe %d waited %s", i, waited)
					}
				}
				spent := time.Duration(s.plans-before) * planCost
				if part := spent.Seconds() / time.Since(began).Seconds(); part < 0.02 || part > 0.15 {
					t.Errorf("plans that came to nothing took %.2f of the time, want about a tenth", part)
				}
			})
		})
	}
}

// TestJobsThatDifferInLabelsAreParkedTogether: pods of Jobs have a label of their own each.
func TestJobsThatDifferInLabelsAreParkedTogether(t *testing.T) {
	label := func(i int) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels = map[string]string{"job-name": fmt.Sprint(i)} }
	}
	for name, tc := range map[string]struct {
		refusal dispatch.Refusal
		want    int
	}{
		"one plan answers for all":                        {dispatch.Refusal{Reason: noRoom}, 1},
		"each is asked where somebody goes by the labels": {dispatch.Refusal{Reason: noRoom, Exact: true}, 30},
		"a stale cache is asked again":                    {dispatch.Refusal{Reason: noRoom, Stale: true}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t)
				s.refusal = tc.refusal
				for i := range 30 {
					s.job(fmt.Sprintf("hopeless-%d", i), 9, label(i))
				}
				s.serve(3*time.Second + 500*time.Millisecond)
				if s.plans != tc.want {
					t.Errorf("%d plans, want %d", s.plans, tc.want)
				}
				for i := range 30 {
					if told := s.last(fmt.Sprintf("hopeless-%d", i)); told != noRoom {
						t.Errorf("job %d was told %v", i, told)
					}
				}
			})
		})
	}
}

// TestAVetoHoldsUntilItsNodeChanges: filters refuse the only node with room; what happens on others is not worth a plan.
func TestAVetoHoldsUntilItsNodeChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.addNode("node-1", "4")
		for i := range 2 {
			taken := memberOf("taken", i, "8")
			taken.Spec.NodeName = fmt.Sprintf("node-%d", i)
			s.state.UpsertPod(taken)
		}
		s.state.DeletePod("taken-0")
		s.job("hopeless", 9, func(p *corev1.Pod) { p.Spec = memberOf("hopeless", 0, "1").Spec })
		shape := s.state.Job(keyOf("hopeless")).Tasks[0].Shape
		s.refusal.Vetoes = []dispatch.Veto{{Shape: shape, Nodes: []string{"node-0"}}}
		want := func(what string, plans int) {
			t.Helper()
			s.serve(time.Second)
			if s.plans != plans {
				t.Errorf("%s: %d plans, want %d", what, s.plans, plans)
			}
		}
		want("the job comes", 1)
		s.addNode("node-2", "1")
		want("a node comes", 2)
		s.refusal.Vetoes[0].Nodes = append(s.refusal.Vetoes[0].Nodes, "node-2")
		s.addNode("node-2", "2")
		want("the node grows, and is vetoed", 3)
		other := memberOf("other", 0, "1")
		other.Spec.NodeName = "node-1"
		s.state.UpsertPod(other)
		s.state.DeletePod("other-0")
		want("a pod ends on a full node", 3)
		s.addNode("node-0", "16")
		want("the vetoed node grows", 4)
	})
}

// TestASweepFindsWhatWasMissed: a parked job has a turn now and then though nothing happened.
func TestASweepFindsWhatWasMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.job("hopeless", 9, asksApart(0))
		s.serve(time.Second)
		for _, want := range []int{1, 3} {
			if s.plans != want {
				t.Errorf("%d plans, want %d", s.plans, want)
			}
			s.serve(10*time.Minute + time.Second)
		}
	})
}

// TestWhatNamesSomethingMissingWaitsForThat: pods that come and go do not help it.
func TestWhatNamesSomethingMissingWaitsForThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		s.refusal.Unmet = true
		s.job("hopeless", 9, func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "typo"}}}}
		})
		s.serve(time.Second)
		for range 10 {
			other := memberOf("other", 0, "1")
			other.Spec.NodeName = "node-0"
			s.state.UpsertPod(other)
			s.serve(100 * time.Millisecond)
			s.state.DeletePod(other.UID)
			// Nor does room that was kept for somebody.
			s.state.Raise(model.KeptRoomFreed)
			s.serve(100 * time.Millisecond)
		}
		if s.plans != 1 {
			t.Errorf("%d plans while pods come and go, want 1", s.plans)
		}
		s.state.Raise(model.StorageChanged)
		s.serve(100 * time.Millisecond)
		if s.plans < 2 {
			t.Error("no plan after volumes changed")
		}
	})
}

// TestWhatNamesSomethingMissingIsNotHelpedByRoomThatIsMadeMeanwhile: while it is found out that nothing else is missing, others end.
func TestWhatNamesSomethingMissingIsNotHelpedByRoomThatIsMadeMeanwhile(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(*fixture)
		again     bool
	}{
		"a pod ends": {meanwhile: func(d *fixture) {
			other := memberOf("other", 0, "1")
			other.Spec.NodeName = "node-0"
			d.state.UpsertPod(other)
			d.state.DeletePod(other.UID)
		}},
		"a volume comes": {meanwhile: func(d *fixture) { d.state.Raise(model.StorageChanged) }, again: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newFixture(t)
				pod := memberOf("a", 0, "1")
				pod.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "typo"}}}}
				d.state.UpsertPod(pod)
				d.group("a", "default", 1, 1, nil)
				d.want("a-0")
				for range 2 {
					d.Enter("a-0")
					tc.meanwhile(d)
					d.Refused("a-0", dispatch.Refusal{Reason: model.Reason{Kind: model.NotEnoughResources, Message: "no such claim", FromNodes: true}, Unmet: true})
					if !tc.again {
						time.Sleep(3 * time.Second)
						d.want()
						return
					}
					d.want("a-0")
				}
			})
		})
	}
}
