// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/heap"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// TestWhatIsImpliedIsWhatAVoteWouldTell: of random claims in a random order, in a cluster that is full to a random part and has promised
// some of itself to jobs that nodes have refused for long.
func TestWhatIsImpliedIsWhatAVoteWouldTell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(0, 12)
		vector := func(label string) resource.Vector {
			return resource.Vector{{Name: "cpu", Value: amount.Draw(t, label+" cpu")}, {Name: "memory", Value: amount.Draw(t, label+" memory")}}
		}
		policies := drawPolicies(t)
		policies.SetQueue("q", &model.Queue{Name: "q", Weight: 1, Capability: resource.Vector{{Name: "cpu", Value: 2 + amount.Draw(t, "capability")}}})
		policies.SetCluster(resource.Vector{{Name: "cpu", Value: 12}, {Name: "memory", Value: 12}})
		for _, name := range []string{"admitted", "stalled"} {
			job := &model.Job{Key: model.JobKey{Name: name}, Queue: "q", Admitted: true, Stalled: name == "stalled", Group: &model.Group{MinMember: 1, MinResources: vector(name)}}
			job.Counts.ByStatus[model.Pending] = 1
			policies.SetJob(job.Key, job)
		}
		policies.Update()
		kept := vector("kept for holders")
		asked := &admissions{cfg: &Config{Rules: Rules{Policies: policies}}, keptIdle: func() resource.Vector { return kept }}
		world := policy.World{Used: vector("used")}
		var so verdicts
		implied := 0
		for i := range rapid.IntRange(1, 12).Draw(t, "claims") {
			job := &model.Job{Key: model.JobKey{Name: fmt.Sprint(i)}, Queue: "q", Group: &model.Group{MinMember: 1, MinResources: vector("claim")}}
			job.Counts.ByStatus[model.Pending] = rapid.IntRange(0, 1).Draw(t, "pods")
			a := applicantsOf(policies.Rank(job))
			a.reason = model.Reason{Kind: model.NotAdmitted}
			w := a.jobs.Top().waiting
			votedOut := policies.Admit(world, w.job) != (model.Reason{}) && !asked.trusted(world, w)
			votedGuest := votedOut && asked.hosts(world, w)
			rejected, guests := so.imply(a)
			if rejected && (!votedOut || guests != votedGuest) {
				t.Fatalf("claim %s: implied to be rejected, as a guest: %t; voted out: %t, as a guest: %t", w.job.Claim(), guests, votedOut, votedGuest)
			}
			if rejected {
				implied++
			} else if votedOut && policies.AdmitsByClaim() {
				a.guests = votedGuest
				so.note(a)
			}
		}
		if implied > 0 && !policies.AdmitsByClaim() {
			t.Fatalf("%d are implied though policies go by more than claims", implied)
		}
	})
}

// drawPolicies returns the policies of a configuration by which admission goes by claims, or of one by which it does not.
func drawPolicies(t *rapid.T) *policy.Set {
	overcommit := config.TierPlugin{Name: config.PluginOvercommit}
	plugins := rapid.SampledFrom([][]config.TierPlugin{
		{overcommit},
		{{Name: config.PluginProportion}, overcommit},
		{{Name: config.PluginCapacity}, overcommit},
		{{Name: config.PluginResourceQuota}, overcommit},
	}).Draw(t, "plugins")
	policies, err := policy.Compile(&config.BatchQueueArgs{Tiers: []config.Tier{{Plugins: plugins}}})
	if err != nil {
		t.Fatal(err)
	}
	return policies
}

// applicantsOf returns applicants of one job.
func applicantsOf(job *policy.Ranked) *applicants {
	a := &applicants{at: -1, jobs: heap.New(func(a, b *application) bool { return a.job.Key.Name < b.job.Key.Name })}
	a.jobs.Put(&application{waiting: &waiting{inLine: inLine{job: job}, at: -1}, to: a, place: -1})
	return a
}

// TestOnlyTheLeastClaimsAreVotedOn: those of which others claim less, or as guests more, are not noted.
func TestOnlyTheLeastClaimsAreVotedOn(t *testing.T) {
	var v verdicts
	of := func(cpu int64, guests bool) *applicants {
		job := &model.Job{Group: &model.Group{MinMember: 1, MinResources: resource.Vector{{Name: "cpu", Value: cpu}}}}
		job.Counts.ByStatus[model.Pending] = 1
		a := applicantsOf(&policy.Ranked{Job: job})
		a.guests, a.reason = guests, model.Reason{Kind: model.NotAdmitted}
		return a
	}
	for _, a := range []*applicants{of(9, false), of(5, true), of(7, false), of(3, true), of(8, false), of(4, true)} {
		v.note(a)
	}
	if len(v.least) != 1 || len(v.outside) != 1 || len(v.guests) != 1 {
		t.Fatalf("noted are %d, %d and %d, want the least of all, of those outside, and the greatest guest", len(v.least), len(v.outside), len(v.guests))
	}
	asking := of(9, false)
	asking.asks = true
	podless := of(9, false)
	podless.jobs.Top().job.Job.Counts = model.Counts{}
	for name, tc := range map[string]struct {
		a                *applicants
		rejected, guests bool
	}{
		"more than somebody outside":       {a: of(7, false), rejected: true},
		"between guests":                   {a: of(4, false), rejected: true, guests: true},
		"more than guests, but not others": {a: of(6, false)},
		"less than all":                    {a: of(2, false)},
		"somebody new":                     {a: asking},
		"somebody without pods":            {a: podless},
	} {
		if rejected, guests := v.imply(tc.a); rejected != tc.rejected || guests != tc.guests {
			t.Errorf("%s: implied to be rejected: %t, as a guest: %t; want %t and %t", name, rejected, guests, tc.rejected, tc.guests)
		}
	}
}
