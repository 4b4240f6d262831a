// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
	coscheduling "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/caldera-scheduler/caldera/internal/testing/rights"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/simulate/memory"
)

// verbose: what happens is logged.
var verbose = os.Getenv(logVariable) != ""

// errCut is what a client sees of a connection that breaks.
var errCut = errors.New("connection reset by peer")

// wire is what lies between the schedulers and the API server: it takes time, and breaks as the scenario says.
type wire struct {
	s      *scenario
	server *memory.Server
	// granted is what the scheduler may ask for.
	granted rights.Rules
	began   time.Time
	// dozing is told the moment at which a drowsy scheduler begins to take its time, and when somebody is evicted, if anybody listens.
	dozing chan string
	// vetoes says why the API server refuses a request, if it does; errs says why a plugin errs over a pod, if it does. Evicts is told whom the API
	// server has agreed to evict, and what the scheduler has decided that asked for it.
	vetoes func(*request.RequestInfo) error
	errs   func(job string, placing bool) error
	evicts func(pod string, of plans)

	mu sync.Mutex // guards what follows
	// sent counts requests by who asks what, arrived by kind, and by moment. Hits counts the faults that came to pass, during both faults and
	// events by the moment at which they did.
	sent, arrived, hits, during map[string]int
	// healed: nothing fails any more.
	healed bool
	// forbidden is the first request that the scheduler had no right to make; empty if there was none.
	forbidden string
	// second counts what has been asked of each object since the last look.
	second map[string]int
	// watches are those that are on, the oldest first: in that order they break.
	watches []*stream
	// stalled is until when nothing of a resource is delivered.
	stalled map[string]time.Time
	// trace is what has been sent when.
	trace trace
}

func newWire(s *scenario, server *memory.Server, granted rights.Rules) *wire {
	return &wire{
		s: s, server: server, granted: granted, began: time.Now(), dozing: make(chan string),
		sent: map[string]int{}, arrived: map[string]int{}, hits: map[string]int{}, during: map[string]int{}, second: map[string]int{},
		stalled: map[string]time.Time{},
	}
}

// line is the connection of one process, which ends with it.
type line struct {
	*wire
	// name is that of the process.
	name string
	// dead is closed when the process is; orphans: what it had sent by then still arrives.
	dead    chan struct{}
	orphans bool
	// phase is how far the turn has come that the process has given, plans are what it has decided to evict, and for whom it keeps room.
	phase func() dispatch.TurnPhase
	plans func() plans

	// What follows is guarded by the wire's lock.

	// apart is until when nothing reaches the API server, nor comes from there.
	apart time.Time
	// binding counts the binds that have been sent and not been answered.
	binding int
}

// The moments at which something may happen to a scheduler: the phases of a turn, and between two of them, while pods are bound. In simulated
// time a turn that is offered is so for no time at all: nothing comes between the choice of its lead and the cycle of that, in which no
// other plugin is asked before Gang.
const binding = "binding"

// evicting is when a scheduler has just been told that somebody is evicted.
const evicting = "evicting"

var (
	// amidst are those in which a drowsy scheduler takes its time.
	amidst  = []string{string(dispatch.Planning), string(dispatch.Preempting), string(dispatch.Placing)}
	moments = append(amidst, string(dispatch.Idle), binding)
)

// moment names what the process is doing: a phase of the turn, or binding.
func (l *line) moment() string {
	phase := l.phase()
	l.mu.Lock()
	defer l.mu.Unlock()
	if phase == dispatch.Idle && l.binding > 0 {
		return binding
	}
	return string(phase)
}

const (
	// wholeGroup is how the status of a PodGroup is written whose definition has no subresource for it. The status is all that it says.
	wholeGroup = "patch podgroups"

	binds  = "create pods/binding"
	evicts = "create pods/eviction"
)

// tell has what waits for a moment happen.
func (w *wire) tell(moment string) {
	select {
	case w.dozing <- moment:
	default:
	}
}

// sends notes that a request is on its way, until the function is called that it returns.
func (l *line) sends(kind string) (answered func()) {
	if kind != binds {
		return func() {}
	}
	count := func(n int) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.binding += n
	}
	count(1)
	return func() { count(-1) }
}

// part cuts the line for a while.
func (l *line) part(until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.apart = until
	for _, s := range l.watches {
		if s.line == l {
			s.cut()
		}
	}
}

func (l *line) parted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.healed && time.Now().Before(l.apart)
}

// pick draws one of so many for a thing that happens: the same in each run of a scenario, whatever else happens.
func (w *wire) pick(what string, nth, of int) int {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", what, nth)
	// Sums of texts that differ in a digit are too much alike: with them alone, news would arrive exactly a second after other news.
	return rand.New(rand.NewPCG(w.s.Seed, h.Sum64())).IntN(of)
}

// latency is how long a request or a piece of news takes: some milliseconds, now and then much more. No two arrive at the same moment, or
// chance would decide who comes first: timers of a bubble that end together fire in any order.
func (w *wire) latency(what string, nth int) time.Duration {
	most := 4
	if w.s.Slow {
		most = []int{4, 4, 4, 4, 4, 4, 4, 50, 50, 1000}[w.pick("slow "+what, nth, 10)]
	}
	return time.Millisecond + time.Duration(w.pick(what, nth, most*int(time.Millisecond)))
}

// RoundTrip implements http.RoundTripper.
func (l *line) RoundTrip(r *http.Request) (*http.Response, error) {
	if closed(l.dead) {
		return nil, errCut
	}
	info, err := l.server.Info(r)
	if err != nil {
		return nil, err
	}
	kind := kindOf(info)
	l.authorize(info, kind)
	object, body, err := describe(r, info, kind)
	if err != nil {
		return nil, err
	}
	defer l.sends(kind)()
	nth := l.count(object, body)
	// What is sent at the same moment comes in any order: so latencies go by who asks what of which object.
	mine := l.name + ": " + object
	fault, err := l.arrive(r.Context(), kind, mine, nth)
	if err != nil {
		return nil, err
	}
	if response, err := l.refuse(r, info, fault); response != nil || err != nil {
		return response, err
	}
	response, err := l.carryOut(r, kind)
	if err != nil {
		return nil, err
	}
	agreed := kind == evicts && response.StatusCode < http.StatusBadRequest
	if agreed {
		l.evicts(info.Name, l.plans())
	}
	err = errors.Join(l.lost(fault), l.travel(r.Context(), l.latency("answer to "+mine, nth)))
	if err == nil && l.parted() {
		err = errCut
	}
	if agreed {
		l.tell(evicting)
	}
	if err != nil {
		response.Body.Close() //nolint:errcheck,gosec // it is in memory
		return nil, err
	}
	if info.Verb == "watch" {
		response.Body = l.follow(r.Context(), info.Resource, fmt.Sprintf("news of %s, the %dth", mine, nth), response.Body)
	}
	return response, nil
}

// carryOut has the API server do what a request asks, even if nobody waits for the answer any more.
func (l *line) carryOut(r *http.Request, kind string) (*http.Response, error) {
	r = r.Clone(context.WithoutCancel(r.Context()))
	if l.s.NoSubresource && kind == wholeGroup {
		r.URL.Path += "/status"
	}
	return l.server.RoundTrip(r)
}

// kindOf names a request by its verb and its resource. Faults are drawn by that.
func kindOf(info *request.RequestInfo) string {
	if info.Subresource != "" {
		return info.Verb + " " + info.Resource + "/" + info.Subresource
	}
	return info.Verb + " " + info.Resource
}

// arrive lets a request get to the API server, and says what fault hits it there.
func (l *line) arrive(ctx context.Context, kind, mine string, nth int) (fault string, err error) {
	if err := l.travel(ctx, l.latency(mine, nth)); err != nil {
		return "", err
	}
	fault = l.strike(kind, l.moment())
	if fault == held {
		if err := l.travel(ctx, 20*time.Second); err != nil {
			return "", err
		}
	}
	if l.parted() {
		return "", errCut
	}
	return fault, nil
}

// describe says what a request asks of which object, and what it sends.
func describe(r *http.Request, info *request.RequestInfo, kind string) (object string, body []byte, err error) {
	name := info.Name
	if !info.IsResourceRequest {
		name = info.Path
	}
	if r.Body != nil {
		if body, err = io.ReadAll(r.Body); err != nil {
			return "", nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if info.Verb == "create" && name == "" {
		var named metav1.PartialObjectMetadata
		// What is not JSON, a lease for instance, there is one of.
		if json.Unmarshal(body, &named) == nil {
			name = named.Name
		}
	}
	query := r.URL.Query()
	object = fmt.Sprintf("%s %s%s%s", kind, name, query.Get("fieldSelector"), query.Get("labelSelector"))
	if info.APIGroup == coscheduling.SchemeGroupVersion.Group {
		object += " of " + info.APIGroup
	}
	return object, body, nil
}

// count notes that a request is sent, and numbers it among those that ask the same.
func (l *line) count(object string, body []byte) (nth int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.second[object]++
	mine := l.name + ": " + object
	nth = l.sent[mine]
	l.sent[mine]++
	l.trace = append(l.trace, sending{time.Since(l.began), mine, body})
	if verbose {
		klog.Background().Info("Request", "process", l.name, "object", object)
	}
	return nth
}

// strike says what fault hits a request that arrives, as one of its kind, and at which moment of the process that sent it.
func (w *wire) strike(kind, moment string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	nth, then := w.arrived[kind], w.arrived[moment]
	w.arrived[kind]++
	w.arrived[moment]++
	if w.healed {
		return ""
	}
	for _, o := range w.s.Faults {
		if o.Request == kind && o.Nth == nth || o.In == moment && o.Nth == then {
			w.hits[o.Kind+" at "+kind]++
			w.during[during(o.Kind, moment)]++
			return o.Kind
		}
	}
	return ""
}

// note counts that something happens to a process.
func (l *line) note(what string) {
	moment := l.moment()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.during[during(what, moment)]++
}

// during names that something happened at a moment.
func during(what, moment string) string { return what + " while " + moment }

// authorize notes if a request was made that the scheduler has no right to.
func (w *wire) authorize(info *request.RequestInfo, kind string) {
	if w.allowed(info) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forbidden = cmp.Or(w.forbidden, kind)
}

// mostASecond is how often the same may be asked of an object in a second, by all processes together; client-go repeats some requests.
const mostASecond = 20

// misused says what has been asked that may not be, or of an object too often since the last look, a second ago; empty if nothing was.
func (w *wire) misused() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.forbidden != "" {
		return fmt.Sprintf("the scheduler has no right to %s, and asked for that", w.forbidden)
	}
	worst := ""
	for object, times := range w.second {
		if times > mostASecond && (worst == "" || times > w.second[worst]) {
			worst = object
		}
	}
	if worst != "" {
		return fmt.Sprintf("%q was sent %d times in a second", worst, w.second[worst])
	}
	clear(w.second)
	return ""
}

// travel lets time pass, unless the client gives up or dies before. Of one that dies, what was sent may arrive.
func (l *line) travel(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
	case <-l.dead:
	}
	switch {
	case !closed(l.dead):
		return context.Cause(ctx)
	case !l.orphans:
		return errCut
	}
	<-timer.C
	return nil
}

// refuse is the answer to a request that comes to nothing; nil if it does not.
func (l *line) refuse(r *http.Request, info *request.RequestInfo, fault string) (*http.Response, error) {
	resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	switch fault {
	case unreached:
		return nil, errCut
	case refused:
		return memory.Refuse(r, apierrors.NewInternalError(errors.New("etcdserver: request timed out")))
	case overloaded:
		return memory.Refuse(r, apierrors.NewTooManyRequests("too many requests, please try again later", 1))
	case conflicted:
		return memory.Refuse(r, apierrors.NewConflict(resource, info.Name, errors.New("the object has been modified")))
	}
	if l.s.NoSubresource && kindOf(info) == wholeGroup+"/status" {
		return memory.Refuse(r, apierrors.NewNotFound(resource, info.Name))
	}
	if err := l.vetoes(info); err != nil {
		return memory.Refuse(r, err)
	}
	return nil, nil
}

// lost is the error of an answer that does not come back.
func (w *wire) lost(fault string) error {
	if fault == answerLost {
		return errCut
	}
	return nil
}

// heal ends all faults.
func (w *wire) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.healed = true
	clear(w.stalled)
}

// stall holds up the news of a resource.
func (w *wire) stall(resource string, d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stalled[resource] = time.Now().Add(d)
}

// cut breaks the watches of a resource.
func (w *wire) cut(resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.watches {
		if s.resource == resource {
			s.cut()
		}
	}
}

// stream is a watch on its way to the scheduler.
type stream struct {
	line     *line
	resource string
	from     io.ReadCloser
	to       *io.PipeReader
	once     sync.Once
	broken   chan struct{}
}

func (s *stream) cut() { s.once.Do(func() { close(s.broken) }) }

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) { return s.to.Read(p) }

// Close implements io.Closer: the client has had enough.
func (s *stream) Close() error {
	s.cut()
	return errors.Join(s.to.Close(), s.from.Close())
}

// follow passes on what a watch says, late.
func (l *line) follow(ctx context.Context, resource, name string, from io.ReadCloser) io.ReadCloser {
	to, in := io.Pipe()
	s := &stream{line: l, resource: resource, from: from, to: to, broken: make(chan struct{})}
	l.mu.Lock()
	l.watches = append(l.watches, s)
	l.mu.Unlock()
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(from)
		for {
			text, err := reader.ReadBytes('\n')
			if err != nil {
				return
			}
			select {
			case lines <- text:
			case <-s.broken:
				return
			}
		}
	}()
	go func() {
		err := l.pass(ctx, s, name, lines, in)
		in.CloseWithError(err)
		l.mu.Lock()
		l.watches = slices.DeleteFunc(l.watches, func(other *stream) bool { return other == s })
		l.mu.Unlock()
		s.cut()
		from.Close() //nolint:errcheck,gosec // it is in memory
	}()
	return s
}

// pass writes lines until something ends the watch, and says what.
func (l *line) pass(ctx context.Context, s *stream, name string, lines <-chan []byte, to io.Writer) error {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.dead:
			return errCut
		case <-s.broken:
			return io.ErrUnexpectedEOF
		case text, ok := <-lines:
			if !ok {
				return io.EOF
			}
			if err := l.delay(ctx, s, name, n); err != nil {
				return err
			}
			if _, err := to.Write(text); err != nil {
				return err
			}
		}
	}
}

// delay holds up a piece of news.
func (l *line) delay(ctx context.Context, s *stream, name string, n int) error {
	d := l.latency(name, n)
	for d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ctx.Err()
		case <-l.dead:
			return errCut
		case <-s.broken:
			return io.ErrUnexpectedEOF
		}
		l.mu.Lock()
		d = min(tick, time.Until(l.stalled[s.resource]))
		l.mu.Unlock()
	}
	return nil
}
