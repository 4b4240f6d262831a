// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

// enter has a pod lead its turn, and returns who may follow.
func (d *fixture) enter(lead types.UID) (followers []types.UID) {
	d.t.Helper()
	entry := d.Enter(lead)
	if entry.Verdict != dispatch.Lead {
		d.t.Fatalf("pod %s is not asked to lead", lead)
	}
	for _, job := range entry.Followers {
		followers = append(followers, job.Tasks[0].UID)
	}
	return followers
}

// planAll plans pods of any jobs for node-0.
func (d *fixture) planAll(lead types.UID, others ...types.UID) {
	d.t.Helper()
	var pods []*corev1.Pod
	var nodes []string
	for _, uid := range append([]types.UID{lead}, others...) {
		pods, nodes = append(pods, d.state.Task(uid).Pod), append(nodes, "node-0")
	}
	if node := d.Planned(lead, pods, nodes, false); node != "node-0" {
		d.t.Fatalf("the lead goes to %q, want node-0", node)
	}
}

// newHeldFixture returns a fixture whose turns begin in steps.
func newHeldFixture(t *testing.T) *fixture {
	d := newFixture(t)
	d.Hold()
	d.want()
	return d
}

// singles adds jobs of a pod each, in the order of their turns, and begins the first turn.
func (d *fixture) singles(names ...string) {
	d.t.Helper()
	for i, name := range names {
		d.submit(name, 1, len(names)-i, "1")
	}
	d.Step()
	d.want(types.UID(names[0] + "-0"))
}

func TestEqualSinglePodsShareATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHeldFixture(t)
		d.singles("a", "b", "c", "d", "e")
		if got, want := d.enter("a-0"), []types.UID{"b-0", "c-0", "d-0", "e-0"}; !slices.Equal(got, want) {
			t.Fatalf("behind a-0 follow %v, want %v", got, want)
		}
		// There was no room for the last one.
		d.planAll("a-0", "b-0", "c-0", "d-0")
		d.want("b-0", "c-0", "d-0")
		if d.Gate("e-0") || !d.Gate("d-0") || !d.Urgent("d-0") {
			t.Error("the gate is not open for those that are planned alone")
		}
		if entry := d.Enter("d-0"); entry.Verdict != dispatch.Member || entry.Node != "node-0" {
			t.Errorf("a follower enters as %+v, want as a member for node-0", entry)
		}
		for _, uid := range []types.UID{"a-0", "b-0", "c-0", "d-0"} {
			d.want()
			d.place(uid)
			d.Step()
		}
		d.want("e-0")
		if got := d.enter("e-0"); len(got) > 0 {
			t.Errorf("behind e-0 follow %v, want nobody", got)
		}
	})
}

// TestATurnIsSharedInOrder: first, second and third ask for the same; another job, which does not, is between the last two unless it is older.
func TestATurnIsSharedInOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		between func(d *fixture)
		want    []types.UID
	}{
		"with what asks for something else": {
			func(d *fixture) { d.submit("other", 1, 2, "2") },
			[]types.UID{"second-0", "other-0", "third-0"},
		},
		"not past a gang": {
			func(d *fixture) { d.submit("other", 2, 2, "2") },
			[]types.UID{"second-0"},
		},
		"past what waits for room": {
			func(d *fixture) {
				d.submit("other", 1, 9, "2")
				d.Step()
				d.want("other-0")
				d.enter("other-0")
				d.Refused("other-0", dispatch.Refusal{Reason: noRoom})
				d.Step()
			},
			[]types.UID{"second-0", "third-0"},
		},
		"not past what may have room since": {
			func(d *fixture) {
				d.submit("older", 1, 9, "2")
				d.submit("other", 1, 2, "2")
				d.Step()
				d.want("older-0")
				d.enter("older-0")
				d.Refused("older-0", dispatch.Refusal{Reason: noRoom})
				d.state.DeletePod("older-0")
				d.addNode("node-9", "64")
			},
			[]types.UID{"second-0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newHeldFixture(t)
				tc.between(d)
				for i, name := range []string{"first", "second", "third"} {
					d.submit(name, 1, 4-i-i/2, "1")
				}
				d.Step()
				d.want("first-0")
				if got := d.enter("first-0"); !slices.Equal(got, tc.want) {
					t.Errorf("behind first-0 follow %v, want %v", got, tc.want)
				}
			})
		})
	}
}

func TestWhoLeadsAlone(t *testing.T) {
	for name, submit := range map[string]func(d *fixture){
		"a gang": func(d *fixture) {
			d.submit("lead", 2, 2, "1")
			d.submit("next", 2, 1, "1")
		},
		"one of several pods of a job": func(d *fixture) {
			for age, name := range []string{"next", "lead"} {
				d.submit(name, 2, age, "1")
				d.state.UpsertGroup(keyOf(name), &model.Group{UID: types.UID(name), Queue: model.DefaultQueue, Created: epoch})
			}
		},
		"what asks for nothing": func(d *fixture) {
			d.submit("lead", 1, 2, "0")
			d.submit("next", 1, 1, "0")
		},
		"what is to be near something": func(d *fixture) {
			for age, name := range []string{"next", "lead"} {
				d.submit(name, 1, age, "1")
				d.state.UpsertGroup(keyOf(name), &model.Group{
					UID: types.UID(name), Queue: model.DefaultQueue, MinMember: 1, Topology: &model.NetworkTopology{Hard: true},
				})
			}
		},
		"while another queue has jobs": func(d *fixture) {
			d.state.UpsertQueue(&model.Queue{Name: "theirs"})
			d.submit("lead", 1, 3, "1")
			d.submit("next", 1, 2, "1")
			d.submit("other", 1, 1, "1")
			d.state.UpsertGroup(keyOf("other"), &model.Group{UID: "other", Queue: "theirs", MinMember: 1, Created: epoch})
		},
		"while an eviction is not agreed to": func(d *fixture) {
			d.submit("victim", 1, 3, "1")
			running := memberOf("victim", 0, "1")
			running.Spec.NodeName, running.Status.Phase = "node-0", corev1.PodRunning
			d.state.UpsertPod(running)
			d.state.Pipeline(nil, []types.UID{"victim-0"})
			d.submit("lead", 1, 2, "1")
			d.submit("next", 1, 1, "1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newHeldFixture(t)
				submit(d)
				d.Step()
				d.want("lead-0")
				if got := d.enter("lead-0"); len(got) > 0 {
					t.Errorf("behind it follow %v, want nobody", got)
				}
			})
		})
	}
}

// TestALostFollowerEndsTheTurn: what the others were planned for is planned again.
func TestALostFollowerEndsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHeldFixture(t)
		d.singles("a", "b", "c")
		d.enter("a-0")
		d.planAll("a-0", "b-0", "c-0")
		d.place("a-0")
		d.Lost("b-0", keyOf("b"))
		if d.Gate("c-0") {
			t.Error("the gate is open though the turn is over")
		}
		d.want("b-0", "c-0")
		d.Step()
		d.want("b-0")
		if got := d.enter("b-0"); len(got) > 0 {
			t.Errorf("behind b-0, which failed before, follow %v, want nobody", got)
		}
	})
}

// TestAJobThatChangedDoesNotFollow: what happened since the turn began is not taken in yet.
func TestAJobThatChangedDoesNotFollow(t *testing.T) {
	for name, change := range map[string]func(*fixture){
		"its pod is gone":    func(d *fixture) { d.state.DeletePod("b-0") },
		"it has another pod": func(d *fixture) { d.state.UpsertPod(memberOf("b", 1, "1")) },
		"it asks for something else": func(d *fixture) {
			d.state.DeletePod("b-0")
			d.state.UpsertPod(memberOf("b", 1, "2"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newHeldFixture(t)
				d.singles("a", "b", "c")
				change(d)
				if got := d.enter("a-0"); len(got) > 0 {
					t.Errorf("behind a-0 follow %v, want nobody: job b is not as it was", got)
				}
			})
		})
	}
}

// TestNobodyFollowsWherePoliciesFromOutsideAreAsked: they may judge a queue otherwise after each placement.
func TestNobodyFollowsWherePoliciesFromOutsideAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name = "theirs"
		d := newFixtureWith(t, args("allocate", byPriority, inGangs, config.TierPlugin{Name: name}), policy.Extension{Plugin: name, Policy: struct{}{}})
		d.Hold()
		d.want()
		d.singles("a", "b")
		if got := d.enter("a-0"); len(got) > 0 {
			t.Errorf("behind a-0 follow %v, want nobody", got)
		}
	})
}
