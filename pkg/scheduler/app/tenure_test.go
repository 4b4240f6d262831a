// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// lease is a lock in memory.
type lease struct {
	resourcelock.Interface
	// takes is how long a write takes.
	takes time.Duration

	mu     sync.Mutex // guards the rest
	record *resourcelock.LeaderElectionRecord
	// fails is what comes of requests instead of an answer.
	fails error
	// unanswered: writes are done, and nobody hears of it.
	unanswered bool
}

func (l *lease) Identity() string   { return "us" }
func (l *lease) Describe() string   { return "lease" }
func (l *lease) RecordEvent(string) {}

// fail has all requests fail from now on.
func (l *lease) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails = err
}

// take gives the lease to somebody.
func (l *lease) take(r resourcelock.LeaderElectionRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record = &r
}

func (l *lease) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails != nil {
		return nil, nil, l.fails
	}
	return l.read()
}

// read is what LeaseLock makes of the lease.
func (l *lease) read() (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{}, "lease")
	}
	record := *l.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

func (l *lease) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, r)
}

func (l *lease) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	time.Sleep(l.takes)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails != nil {
		return l.fails
	}
	if l.record != nil && l.record.HolderIdentity != "" && l.record.HolderIdentity != "us" {
		return apierrors.NewConflict(schema.GroupResource{}, "lease", errors.New("somebody else wrote it"))
	}
	l.record = &r
	if l.unanswered {
		return errors.New("the answer is lost")
	}
	return nil
}

// standby waits for the same lease, and is answered always.
type standby struct{ *lease }

func (s standby) Identity() string { return "them" }

func (s standby) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read()
}

func (s standby) Update(_ context.Context, r resourcelock.LeaderElectionRecord) error {
	s.take(r)
	return nil
}

// elected is a tenure that goes by upstream's election, which takes place on a lease. It tells who it says has led since the tenure was lost.
func elected(t *testing.T, l *lease) (tenure *tenure, lost func() []string) {
	t.Helper()
	tenure = newTenure()
	var leaders []string
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	tenure.lost = func(_ context.Context, leader string) {
		l.mu.Lock()
		leaders = append(leaders, leader)
		l.mu.Unlock()
		end()
	}
	config := leaderelection.LeaderElectionConfig{
		Lock: l, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
	}
	tenure.follow(&config)
	e, err := leaderelection.NewLeaderElector(config)
	if err != nil {
		t.Fatal(err)
	}
	go e.Run(ctx)
	return tenure, func() []string {
		l.mu.Lock()
		defer l.mu.Unlock()
		return slices.Clone(leaders)
	}
}

func TestATenureLastsFromBeforeTheRenewalForTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{takes: time.Second}
		begun := time.Now()
		tenure, lost := elected(t, l)
		if tenure.holds() {
			t.Error("it holds before the lease is there")
		}
		time.Sleep(time.Minute + time.Second/2)
		if !tenure.holds() {
			t.Errorf("it does not hold after %s of renewals", time.Since(begun))
		}
		// From now on nobody answers. The last renewal was asked for by now.
		l.fail(errors.New("no answer"))
		last := time.Now()
		time.Sleep(15 * time.Second)
		if tenure.holds() {
			t.Errorf("it holds %s after the last renewal that can have succeeded was asked for", time.Since(last))
		}
		if len(lost()) > 0 {
			t.Errorf("it is lost to %v, of whom nobody knows", lost())
		}
	})
}

// renewal is what the lease says once a holder has renewed it.
func renewal(holder string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: 15, RenewTime: metav1.Now()}
}

// TestTwoNeverHold has a leader stand still, early in a second and late in one, while upstream's election sees to it that another one takes the lease. Each second answer is lost.
func TestTwoNeverHold(t *testing.T) {
	for _, late := range []time.Duration{0, 300 * time.Millisecond, 900 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			l := &lease{}
			tenure, leads := newTenure(), make(chan struct{})
			ours := followedLock{l, tenure}
			tenure.lease = 15 * time.Second
			e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
				Lock: standby{l}, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 10 * time.Millisecond,
				Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { close(leads) }, OnStoppedLeading: func() {}},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			for renewed := time.Duration(0); renewed <= 10*time.Second+late; renewed += 100 * time.Millisecond {
				l.unanswered = renewed%(200*time.Millisecond) == 0
				if err := ours.Update(t.Context(), renewal("us")); (err != nil) != l.unanswered {
					t.Fatal(err)
				}
				if renewed == 0 {
					go e.Run(ctx)
				}
				time.Sleep(100 * time.Millisecond)
			}
			<-leads
			if tenure.holds() {
				t.Errorf("renewed until %s after a full second: another one leads, and it still holds", late)
			}
		})
	}
}

func TestAStandbyLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{record: &resourcelock.LeaderElectionRecord{HolderIdentity: "them", LeaseDurationSeconds: 15}}
		tenure, lost := elected(t, l)
		time.Sleep(10 * time.Second)
		if tenure.holds() || len(lost()) > 0 {
			t.Errorf("a standby holds: %t, and lost to %v", tenure.holds(), lost())
		}
	})
}

// TestWhoSeesAnotherLeaderEnds: upstream goes on trying to renew until the deadline, and to schedule.
func TestWhoSeesAnotherLeaderEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{}
		tenure, lost := elected(t, l)
		time.Sleep(time.Minute)
		if !tenure.holds() || len(lost()) > 0 {
			t.Fatalf("the leader holds: %t, and lost to %v", tenure.holds(), lost())
		}
		l.take(renewal("them"))
		time.Sleep(3 * time.Second)
		if len(lost()) != 1 || lost()[0] != "them" {
			t.Errorf("3 s after another one took the lease it is lost to %v, want to them", lost())
		}
	})
}

// acting is a profile that counts what it does.
type acting struct {
	framework.Framework
	binds, searches int
	// later is called in the middle of a bind, and err is what its context says then.
	later func()
	err   error
}

func (a *acting) RunBindPlugins(ctx context.Context, _ fwk.CycleState, _ *corev1.Pod, _ string) *fwk.Status {
	a.binds++
	if a.later != nil {
		a.later()
	}
	a.err = ctx.Err()
	return nil
}

func (a *acting) RunPostFilterPlugins(context.Context, fwk.CycleState, *corev1.Pod, fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	a.searches++
	return nil, nil
}

func TestAfterTheTenureNobodyIsBoundOrEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := &acting{}
		sched := &scheduler.Scheduler{Profiles: profile.Map{"volcano": inner}}
		tenure := newTenure()
		tenure.fence(sched)
		act := func() (bind, search *fwk.Status) {
			_, search = sched.Profiles["volcano"].RunPostFilterPlugins(t.Context(), nil, nil, nil)
			return sched.Profiles["volcano"].RunBindPlugins(t.Context(), nil, nil, ""), search
		}
		if bind, search := act(); !bind.IsSuccess() || !search.IsSuccess() || inner.err != nil {
			t.Fatalf("without elections: %v and %v, and in the middle %v", bind, search, inner.err)
		}
		tenure.follow(&leaderelection.LeaderElectionConfig{LeaseDuration: 15 * time.Second, Lock: &lease{}})
		tenure.wrote(renewal("us"))
		time.Sleep(14 * time.Second)
		if bind, search := act(); !bind.IsSuccess() || !search.IsSuccess() || inner.err != nil {
			t.Fatalf("a leader: %v and %v, and in the middle %v", bind, search, inner.err)
		}
		// What waits for its turn to be sent when the lease runs out is not sent.
		inner.later = func() { time.Sleep(time.Second) }
		if act(); !errors.Is(inner.err, errLeaseOver) {
			t.Errorf("in the middle of a bind when the lease runs out: %v, want %v", inner.err, errLeaseOver)
		}
		if bind, search := act(); !errors.Is(bind.AsError(), errLeaseOver) || !errors.Is(search.AsError(), errLeaseOver) {
			t.Errorf("after the lease: %v and %v, want %v", bind, search, errLeaseOver)
		}
		tenure.wrote(renewal("us"))
		tenure.wrote(renewal(""))
		if bind, _ := act(); bind.IsSuccess() {
			t.Error("who gave the lease back binds")
		}
		if inner.binds != 3 || inner.searches != 3 {
			t.Errorf("%d binds and %d searches came through, want 3 of each", inner.binds, inner.searches)
		}
	})
}

// TestNothingIsSentAfterTheTenure: the server has the header of a request when the lease runs out, and never gets its body.
func TestNothingIsSentAfterTheTenure(t *testing.T) {
	tenure := newTenure()
	tenure.follow(&leaderelection.LeaderElectionConfig{LeaseDuration: time.Hour, Lock: &lease{}})
	tenure.wrote(renewal("us"))
	came, over := make(chan struct{}, 1), make(chan struct{})
	got := make(chan string, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		<-over
		body, err := io.ReadAll(r.Body)
		if err != nil {
			body = nil
		}
		got <- string(body)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	client := server.Client()
	client.Transport = tenure.requests(client.Transport)
	post := func(body io.Reader) error {
		response, err := client.Post(server.URL, "application/json", body)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	close(over)
	if err := post(strings.NewReader("bind")); err != nil || <-got != "bind" {
		t.Fatalf("while the lease lasts: %v", err)
	}
	<-came
	over = make(chan struct{})
	read, write := io.Pipe() // The body is not there before the header has come.
	failed := make(chan error, 1)
	go func() { failed <- post(read) }()
	<-came
	tenure.wrote(renewal(""))
	close(over)
	_, _ = write.Write([]byte("bind"))
	_ = write.Close()
	if err := <-failed; !errors.Is(err, errLeaseOver) {
		t.Errorf("the error is %v, want %v", err, errLeaseOver)
	}
	if body := <-got; body != "" {
		t.Errorf("the server got %q", body)
	}
}
