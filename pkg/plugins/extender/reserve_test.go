// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package extender_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/gang"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender"
)

func TestReservations(t *testing.T) {
	const allocated, pending = "allocate on n status 2", "deallocate on n status 1"
	for name, tc := range map[string]struct {
		// answer is that of allocate; "500" is a failure.
		answer           string
		change           func(*config.ExtenderArgs)
		planning         bool
		code             fwk.Code
		message          string
		asked, unreserve []string
	}{
		"a reservation is told, and taken back":        {answer: `{}`, asked: []string{allocated}, unreserve: []string{pending}},
		"one that the extender refuses is not":         {answer: `{"errorMessage": "no license"}`, asked: []string{allocated}, code: fwk.Unschedulable, message: "refuses node n: no license"},
		"one that may have arrived is":                 {answer: "500", asked: []string{allocated}, unreserve: []string{pending}, code: fwk.Error, message: "status 500"},
		"an extender that may fail does not hold up":   {answer: "500", change: func(a *config.ExtenderArgs) { a.Ignorable = true }, asked: []string{allocated}, unreserve: []string{pending}},
		"one that may fail may refuse all the same":    {answer: `{"errorMessage": "no license"}`, change: func(a *config.ExtenderArgs) { a.Ignorable = true }, asked: []string{allocated}, code: fwk.Unschedulable, message: "no license"},
		"what a gang only plans is not told":           {answer: `{"errorMessage": "asked"}`, planning: true},
		"pods without managed resources are not told":  {answer: `{"errorMessage": "asked"}`, change: func(a *config.ExtenderArgs) { a.ManagedResources = []string{"x.com/y"} }},
		"without a verb only what is taken back is":    {answer: `{}`, change: func(a *config.ExtenderArgs) { a.AllocateFuncVerb = "" }, unreserve: []string{pending}},
		"without the other verb nothing is taken back": {answer: `{}`, change: func(a *config.ExtenderArgs) { a.DeallocateFuncVerb = "" }, asked: []string{allocated}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var q struct {
					Task struct {
						NodeName string
						Status   int
					}
				}
				_ = json.NewDecoder(r.Body).Decode(&q)
				asked = append(asked, fmt.Sprintf("%s on %s status %d", strings.TrimPrefix(r.URL.Path, "/"), q.Task.NodeName, q.Task.Status))
				switch {
				case r.URL.Path == "/deallocate":
					fmt.Fprint(w, "{}")
				case tc.answer == "500":
					w.WriteHeader(http.StatusInternalServerError)
				default:
					fmt.Fprint(w, tc.answer)
				}
			}))
			defer server.Close()
			args := &config.ExtenderArgs{
				URLPrefix: server.URL, HTTPTimeout: metav1.Duration{Duration: time.Minute}, MaxScore: 1,
				PredicateVerb: "p", AllocateFuncVerb: "allocate", DeallocateFuncVerb: "deallocate",
			}
			if tc.change != nil {
				tc.change(args)
			}
			plugin, err := extender.New(model.NewState(), testingclock.NewFakeClock(time.Unix(0, 0)))(t.Context(), args, nil)
			if err != nil {
				t.Fatal(err)
			}
			pl, state := plugin.(fwk.ReservePlugin), framework.NewCycleState()
			if tc.planning {
				gang.MarkPlan(state, nil)
			}
			pod := st.MakePod().Name("p").UID("p").Req(map[corev1.ResourceName]string{"cpu": "1"}).Obj()
			status := pl.Reserve(t.Context(), state, pod, "n")
			if status.Code() != tc.code || !strings.Contains(status.Message(), tc.message) {
				t.Errorf("got status %v", status)
			}
			if !slices.Equal(asked, tc.asked) {
				t.Errorf("asked %q, want %q", asked, tc.asked)
			}
			asked = nil
			// It is called whatever became of the reservation, and may be called again.
			pl.Unreserve(t.Context(), state, pod, "n")
			pl.Unreserve(t.Context(), state, pod, "n")
			if !slices.Equal(asked, tc.unreserve) {
				t.Errorf("asked %q when it was taken back, want %q", asked, tc.unreserve)
			}
		})
	}
}

// TestNodesThatWereRefusedAreLookedAtAgain: nobody tells when an extender would answer otherwise.
func TestNodesThatWereRefusedAreLookedAtAgain(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status": "full"}`) }))
	defer server.Close()
	clock := testingclock.NewFakeClock(time.Unix(0, 0))
	state := model.NewState()
	events := make(chan model.Event, 2)
	state.Observe(func(c model.Change) { events <- c.Events })
	args := &config.ExtenderArgs{URLPrefix: server.URL, HTTPTimeout: metav1.Duration{Duration: time.Minute}, MaxScore: 1, PredicateVerb: "p"}
	plugin, err := extender.New(state, clock)(t.Context(), args, nil)
	if err != nil {
		t.Fatal(err)
	}
	node := framework.NewNodeInfo()
	node.SetNode(st.MakeNode().Name("n").Obj())
	for range 3 {
		status := plugin.(fwk.FilterPlugin).Filter(t.Context(), framework.NewCycleState(), st.MakePod().Name("p").UID("p").Obj(), node)
		if status.Code() != fwk.UnschedulableAndUnresolvable || status.Message() != "full" {
			t.Fatalf("got status %v", status)
		}
	}
	if n := clock.Waiters(); n != 1 {
		t.Errorf("%d timers run, want one for all refusals", n)
	}
	clock.Step(10 * time.Second)
	if got := <-events; got != model.JudgedAnew {
		t.Errorf("got event %b, want %b", got, model.JudgedAnew)
	}
}

// TestNoPlanGoesByTheAnswersForAnother: nobody knows for how long an answer holds.
func TestNoPlanGoesByTheAnswersForAnother(t *testing.T) {
	pod := st.MakePod().Name("p").UID("p").Req(map[corev1.ResourceName]string{"cpu": "1"}).Obj()
	for verb, want := range map[string]bool{"predicate": true, "": false} {
		args := &config.ExtenderArgs{URLPrefix: "http://localhost", HTTPTimeout: metav1.Duration{Duration: time.Minute}, MaxScore: 1, PredicateVerb: verb, AllocateFuncVerb: "allocate"}
		plugin, err := extender.New(model.NewState(), testingclock.NewFakeClock(time.Unix(0, 0)))(t.Context(), args, nil)
		if err != nil {
			t.Fatal(err)
		}
		first, second := framework.NewCycleState(), framework.NewCycleState()
		for _, state := range []fwk.CycleState{first, second} {
			if _, status := plugin.(fwk.PreFilterPlugin).PreFilter(t.Context(), state, pod, nil); !status.IsSuccess() {
				t.Fatal(status)
			}
		}
		if got := gang.Seen(first) != gang.Seen(second); got != want {
			t.Errorf("with the predicate verb %q plans differ: %t, want %t", verb, got, want)
		}
	}
}
