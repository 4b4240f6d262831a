// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/utils/clock"
)

// errLeaseOver is why a scheduler does not act any more.
var errLeaseOver = errors.New("the lease of this scheduler has run out, and another one may lead")

// tenure is for how long this process may act as the leader. Upstream's leader that stood still for longer than its lease, as in a machine that
// is short of everything, goes on by what it knew before: it binds pods to nodes whose room the next leader has given away, until it gives up to
// renew the lease, 10 s later by default.
//
// Here it does nothing once its lease has run out by its own clock, and ends as soon as it sees that somebody else leads. The time counts from
// before a renewal can have been written, and the next leader waits from when it saw that renewal, so that the two do not overlap. A request that has been sent
// cannot be taken back; it is done long before the next leader begins.
type tenure struct {
	clock clock.PassiveClock
	// lost is called when somebody else leads. It ends the process.
	lost func(ctx context.Context, leader string)

	mu sync.Mutex // guards the rest
	// lease is how long a renewal lasts; 0: leaders are not elected.
	lease time.Duration
	// renewed is from when others may count the last renewal that succeeded; zero if this process does not lead.
	renewed time.Time
}

func newTenure() *tenure { return &tenure{clock: clock.RealClock{}, lost: exit} }

// exit ends the process as upstream does if the lease is lost.
func exit(ctx context.Context, leader string) {
	klog.FromContext(ctx).Error(nil, "Leaderelection lost: another scheduler leads", "leader", leader)
	klog.FlushAndExit(klog.ExitFlushTimeout, 1)
}

// holds reports whether this process may act.
func (t *tenure) holds() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lease == 0 {
		return true
	}
	now := t.clock.Now()
	// The monotonic clock stands still while a machine sleeps, and the other one does not.
	return max(now.Sub(t.renewed), now.Round(0).Sub(t.renewed.Round(0))) < t.lease
}

// begin has a scheduler act only while it leads; nil: leaders are not elected. It must be called before the scheduler runs.
func (t *tenure) begin(e *leaderelection.LeaderElectionConfig, sched *scheduler.Scheduler) {
	if e != nil {
		t.follow(e)
		t.fence(sched)
	}
}

// follow has the tenure go by an election. It must be called before the scheduler runs.
func (t *tenure) follow(e *leaderelection.LeaderElectionConfig) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// A lease says how long it lasts in whole seconds.
	t.lease = e.LeaseDuration.Truncate(time.Second)
	e.Lock = followedLock{Interface: e.Lock, tenure: t}
}

// fence has the profiles of a scheduler do nothing that lasts after the tenure: bind, and have others evicted. It must be called before the scheduler runs.
func (t *tenure) fence(sched *scheduler.Scheduler) {
	for name, profile := range sched.Profiles {
		sched.Profiles[name] = fenced{Framework: profile, tenure: t}
	}
}

// wrote takes in that the lease was written; without a holder it was given back. Of the time of a renewal others see the second only, as LeaseLock.Get has it in
// JSON: they count from the first that was written in it, which may be one without an answer. So a renewal counts from the beginning of its second.
func (t *tenure) wrote(record resourcelock.LeaderElectionRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewed = time.Time{}
	if at := record.RenewTime.Time; record.HolderIdentity != "" {
		t.renewed = at.Add(-time.Duration(at.Nanosecond())) // It keeps its monotonic reading.
	}
}

// saw takes in who holds the lease.
func (t *tenure) saw(ctx context.Context, holder, own string) {
	t.mu.Lock()
	led := !t.renewed.IsZero()
	t.mu.Unlock()
	if led && holder != "" && holder != own {
		t.lost(ctx, holder)
	}
}

// followedLock is a lock that tells a tenure what becomes of it.
type followedLock struct {
	resourcelock.Interface
	tenure *tenure
}

// Get implements resourcelock.Interface.
func (l followedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil {
		l.tenure.saw(ctx, record.HolderIdentity, l.Identity())
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l followedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Create(ctx, record)
	if err == nil {
		l.tenure.wrote(record)
	}
	return err
}

// Update implements resourcelock.Interface.
func (l followedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := l.Interface.Update(ctx, record)
	if err == nil {
		l.tenure.wrote(record)
	}
	return err
}

// requests wraps how requests are sent that may be sent only while the tenure lasts.
func (t *tenure) requests(by http.RoundTripper) http.RoundTripper { return fencedRequests{by, t} }

// fencedRequests sends requests while the tenure lasts. It looks once more when a body is sent, behind the header: what is about to be sent when a process begins to
// stand still is sent when it wakes up otherwise. Without its body a request is none.
type fencedRequests struct {
	http.RoundTripper
	tenure *tenure
}

// RoundTrip implements http.RoundTripper.
func (f fencedRequests) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return f.RoundTripper.RoundTrip(r)
	}
	sent := *r // It is not to be changed.
	sent.Body = fencedBody{r.Body, f.tenure}
	if again := r.GetBody; again != nil {
		sent.GetBody = func() (io.ReadCloser, error) {
			body, err := again()
			return fencedBody{body, f.tenure}, err
		}
	}
	return f.RoundTripper.RoundTrip(&sent)
}

// fencedBody cannot be read after the tenure.
type fencedBody struct {
	io.ReadCloser
	tenure *tenure
}

// Read implements io.Reader.
func (b fencedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.tenure.holds() {
		return 0, errLeaseOver
	}
	return n, err
}

// tenureContext has an error as soon as the tenure is over. Clients look for one when a request has waited for its turn. A deadline would
// not do: its timer and that of the wait go off together when a process wakes up. Binds of ordinary pods go by this alone.
type tenureContext struct {
	context.Context
	tenure *tenure
}

// Err implements context.Context.
func (c tenureContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if !c.tenure.holds() {
		return errLeaseOver
	}
	return nil
}

// fenced is a profile that acts only while the tenure lasts.
type fenced struct {
	framework.Framework
	tenure *tenure
}

// RunBindPlugins implements framework.Framework.
func (f fenced) RunBindPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	if !f.tenure.holds() {
		return fwk.AsStatus(errLeaseOver)
	}
	return f.Framework.RunBindPlugins(tenureContext{ctx, f.tenure}, state, pod, node)
}

// RunPostFilterPlugins implements framework.Framework.
func (f fenced) RunPostFilterPlugins(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if !f.tenure.holds() {
		return nil, fwk.AsStatus(errLeaseOver)
	}
	return f.Framework.RunPostFilterPlugins(ctx, state, pod, nodes)
}
