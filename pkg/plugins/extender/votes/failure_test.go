// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package votes_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender/protocol"
	"github.com/caldera-scheduler/caldera/pkg/plugins/extender/votes"
	"github.com/caldera-scheduler/caldera/pkg/policy"
	"github.com/caldera-scheduler/caldera/pkg/queue/account"
	"github.com/caldera-scheduler/caldera/pkg/volcano/arguments"
)

// asked is a voter with all verbs, and what it says when it may have news.
type asked struct {
	*votes.Voter
	clock *testingclock.FakeClock
	news  chan struct{}
}

func ask(t *testing.T, url string, ignorable bool, change func(*arguments.Extender)) *asked {
	a := &asked{clock: testingclock.NewFakeClock(noon), news: make(chan struct{}, 100)}
	args := arguments.Extender{
		Args:               config.ExtenderArgs{URLPrefix: url, HTTPTimeout: metav1.Duration{Duration: time.Minute}, Ignorable: ignorable},
		JobEnqueueableVerb: "jobEnqueueable", QueueOverusedVerb: "queueOverused", JobReadyVerb: "jobReady", PreemptableVerb: "preemptable", ReclaimableVerb: "reclaimable",
	}
	if change != nil {
		change(&args)
	}
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.Verbosity(-1)))
	a.Voter = votes.New(klog.NewContext(t.Context(), logger), votes.Config{
		Args:    args,
		Job:     func(model.JobKey) *model.Job { return nil },
		Session: func() (protocol.Session, error) { return protocol.Session{}, nil },
		Changed: func() { a.news <- struct{}{} },
		Clock:   a.clock,
	})
	return a
}

var job1 = &model.Job{Key: model.JobKey{Namespace: "ns", Name: "job"}, Queue: "q", Group: &model.Group{}}

// admit is the vote on a job, once there is one.
func (a *asked) admit(job *model.Job) (policy.Vote, model.Reason) {
	for {
		vote, reason := a.Admit(policy.World{}, &policy.Ranked{Job: job})
		if reason.Kind != model.Unanswered {
			return vote, reason
		}
		<-a.news
	}
}

// withholds is why a queue is kept from turns, once that is known.
func (a *asked) withholds(q *account.Queue) model.Reason {
	for {
		if reason := a.Withholds(q); reason.Kind != model.Unanswered {
			return reason
		}
		<-a.news
	}
}

func TestFailures(t *testing.T) {
	huge := bytes.Repeat([]byte("a"), 20<<20)
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	for name, tc := range map[string]struct {
		server  http.HandlerFunc
		timeout time.Duration
		message string
	}{
		"down":       {message: "connection refused"},
		"slow":       {server: func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body); <-r.Context().Done() }, timeout: 50 * time.Millisecond, message: "no answer in time"},
		"garbage":    {server: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, message: "<html>"},
		"too large":  {server: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(huge) }, message: "request body too large"},
		"status 500": {server: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, message: "500"},
	} {
		t.Run(name, func(t *testing.T) {
			url := down.URL
			if tc.server != nil {
				server := httptest.NewServer(tc.server)
				defer server.Close()
				url = server.URL
			}
			for _, ignorable := range []bool{false, true} {
				a := ask(t, url, ignorable, func(args *arguments.Extender) {
					if tc.timeout > 0 {
						args.Args.HTTPTimeout.Duration = tc.timeout
					}
				})
				vote, rejected := a.admit(job1)
				withheld := a.withholds(&account.Queue{Name: "q", Spec: &model.Queue{Name: "q"}})
				unready, _ := a.Ready(t.Context(), job1)
				task := model.NewTask(st.MakePod().Name("p").UID("p").Obj())
				inside, chosen := a.Choose(t.Context(), true, task, []*model.Task{task})
				across, _ := a.Choose(t.Context(), false, task, []*model.Task{task})
				if got, want := []policy.Vote{vote, inside, across}, slices.Repeat([]policy.Vote{policy.Abstain}, 3); ignorable && !slices.Equal(got, want) || len(chosen) > 0 {
					t.Errorf("ignored: got votes %v, want %v; victims %v", got, want, chosen)
				} else if want := slices.Repeat([]policy.Vote{policy.Reject}, 3); !ignorable && !slices.Equal(got, want) {
					t.Errorf("got votes %v, want %v", got, want)
				}
				for i, reason := range []model.Reason{rejected, withheld, unready} {
					if ignorable && reason != (model.Reason{}) || !ignorable && !strings.Contains(reason.Message, tc.message) {
						t.Errorf("ignorable %v: reason %d is %+v", ignorable, i, reason)
					}
				}
			}
		})
	}
}

func TestHowLongAnswersStand(t *testing.T) {
	answers := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, <-answers) }))
	defer server.Close()
	a := ask(t, server.URL, false, nil)
	// now is the vote without waiting for an answer.
	now := func(job *model.Job) string {
		vote, reason := a.Admit(policy.World{}, &policy.Ranked{Job: job})
		switch {
		case reason.Kind == model.Unanswered:
			return "unanswered"
		case vote == policy.Reject:
			return "rejected"
		}
		return "permitted"
	}
	step := func(want string, job *model.Job) {
		t.Helper()
		if got := now(job); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	other := *job1
	other.Group = &model.Group{}

	step("unanswered", job1)
	step("unanswered", job1)
	answers <- `{"status": 1}`
	<-a.news
	step("permitted", job1)
	a.clock.Step(time.Second)
	// A yes is good for a second only, and for the version of the job that it was given for.
	step("unanswered", job1)
	answers <- `{"status": 1}`
	<-a.news
	step("permitted", job1)
	step("unanswered", &other)
	answers <- `{"status": -1}`
	<-a.news
	if at := a.Again(); !at.IsZero() {
		t.Errorf("it is to be asked again at %v, and nobody was rejected", at)
	}
	// A no stands while it is asked for again.
	step("rejected", &other)
	if at := a.Again(); !at.Equal(a.clock.Now().Add(time.Second)) {
		t.Errorf("it is to be asked again at %v", at)
	}
	a.clock.Step(time.Second)
	a.Asked()
	step("rejected", &other)
	if !a.Asking() || !a.Again().IsZero() {
		t.Errorf("asking: %v, again at %v", a.Asking(), a.Again())
	}
	answers <- `{"status": 0}`
	<-a.news
	step("permitted", &other)
}

func TestOneSessionFollowsAnother(t *testing.T) {
	calls := make(chan string, 100)
	fail := make(chan bool, 1)
	fail <- true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-fail:
			w.WriteHeader(http.StatusInternalServerError)
		default:
		}
		calls <- r.URL.Path
	}))
	defer server.Close()
	a := ask(t, server.URL, false, func(args *arguments.Extender) { args.OnSessionOpenVerb, args.OnSessionCloseVerb = "open", "close" })
	next := func(want string) {
		t.Helper()
		if got := <-calls; got != want {
			t.Fatalf("called %s, want %s", got, want)
		}
	}
	if reason, _ := a.ExternalHold(); reason == (model.Reason{}) || !a.Asking() {
		t.Error("something may start before the first session is open")
	}
	go a.Run(t.Context())
	next("/open")
	<-a.news
	if reason, again := a.ExternalHold(); !strings.Contains(reason.Message, "500") || !again.Equal(noon.Add(time.Second)) {
		t.Errorf("got reason %+v, again at %v", reason, again)
	}
	if vote, reason := a.admit(job1); vote != policy.Reject || !strings.Contains(reason.Message, "500") {
		t.Errorf("got vote %v, reason %+v", vote, reason)
	}
	// A session that was not opened is not closed.
	a.clock.Step(time.Second)
	next("/open")
	<-a.news
	if reason, _ := a.ExternalHold(); reason != (model.Reason{}) {
		t.Errorf("got reason %+v", reason)
	}
	a.clock.Step(time.Second)
	next("/close")
	next("/open")
}
