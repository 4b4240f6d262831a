// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// scenario is one life of a cluster: what is there, what happens to it when, and which requests of the scheduler fail. All of it is drawn
// from a seed beforehand, so that parts can be left out and the rest stays what it is.
type scenario struct {
	// Seed is what latencies are drawn from, too.
	Seed uint64 `json:"seed"`
	// Conf names the configuration of the scheduler; see confs.
	Conf string `json:"conf"`
	// Slow: now and then a request or a piece of news takes a second, not milliseconds.
	Slow bool `json:"slow,omitempty"`
	// Standby: there are two schedulers, of which one leads.
	Standby bool `json:"standby,omitempty"`
	// Drowsy: a plugin of the scheduler takes its time; see drowsy.
	Drowsy bool `json:"drowsy,omitempty"`
	// Gated: pods are created before the gate of their queue.
	Gated bool `json:"gated,omitempty"`
	// NoSubresource: the status of PodGroups is written with the whole object, as where their definition has no subresource for it. Volcano's has none.
	NoSubresource bool `json:"noSubresource,omitempty"`
	// Capability is how many cores a queue may hold; 0: as many as there are.
	Capability int      `json:"capability,omitempty"`
	Nodes      []node   `json:"nodes"`
	Jobs       []job    `json:"jobs"`
	Events     []event  `json:"events"`
	Faults     []outage `json:"faults"`
}

// node is a node of so many cores.
type node struct {
	Name  string `json:"name"`
	Cores int    `json:"cores"`
}

// job is a PodGroup with Size pods of Cores cores each, of which a controller keeps up the number.
type job struct {
	Name string `json:"name"`
	// At is when it is submitted.
	At    duration `json:"at"`
	Size  int      `json:"size"`
	Min   int      `json:"min"`
	Cores int      `json:"cores"`
	Queue string   `json:"queue"`
	Class string   `json:"class"`
	// Lasts is how long a pod runs; 0: for ever.
	Lasts duration `json:"lasts,omitempty"`
	// Grace is how long a pod takes to end once it is deleted.
	Grace duration `json:"grace"`
	// Stuck is why it can never run, one of hopeless; empty if it can.
	Stuck string `json:"stuck,omitempty"`
	// Part is how many pods make a subgroup, which is placed whole or not at all; 0: there are none. Size is a multiple of it.
	Part int `json:"part,omitempty"`
}

// The ways in which jobs can never run.
const (
	noClaim   = "claim"     // its pods name a resource claim that does not exist
	noVolume  = "volume"    // they name a volume claim that does not exist
	noNode    = "node"      // no node has the label they select
	gated     = "gate"      // they have a scheduling gate that nobody opens
	tooLarge  = "large"     // they ask for more than can be counted
	unwelcome = "unwelcome" // each node refuses them, which takes a while to find out
)

var hopeless = []string{noClaim, noVolume, noNode, gated, tooLarge}

// event is something that happens to the cluster, or to the scheduler's process.
type event struct {
	At   duration `json:"at"`
	Kind string   `json:"kind"`
	// In is what it waits for, from At on: a moment of a drowsy scheduler, or that somebody is evicted; empty for nothing.
	In string `json:"in,omitempty"`
	// Target is the node, the job or the resource it happens to.
	Target string `json:"target,omitempty"`
	// N is which pod of a job, how many cores or members.
	N int `json:"n,omitempty"`
	// For is how long it lasts; 0 for what cannot be undone.
	For duration `json:"for,omitempty"`
}

// outage is a request of the scheduler that does not go well: the Nth (from 0) of its kind, or of all that are sent at a moment.
type outage struct {
	Request string `json:"request,omitempty"`
	In      string `json:"in,omitempty"`
	Nth     int    `json:"nth"`
	// Kind is one of failures.
	Kind string `json:"kind"`
}

// duration is written as people read it.
type duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(text)
	*d = duration(parsed)
	return err
}

// The events. Those of the process come first.
const (
	crash          = "crash"           // the scheduler that acts dies, and another one starts For later; with N the requests it had sent arrive
	parted         = "parted"          // it cannot reach the API server For so long; with a standby it loses its lease, and ends
	watchDropped   = "watch-dropped"   // the watches of a resource break
	watchExpired   = "watch-expired"   // they break, and what happened since is not known any more
	watchDelayed   = "watch-delayed"   // nothing of a resource is delivered For so long
	bindsRefused   = "binds-refused"   // the API server refuses to bind the Nth pod of a job, or any with N = -1; For = 0: for ever
	evictsRefused  = "evicts-refused"  // it refuses to evict anybody
	nodeLost       = "node-lost"       // a node goes, with its pods, and comes back
	nodeCordoned   = "node-cordoned"   // it takes no new pods
	nodeShrunk     = "node-shrunk"     // it has N cores less
	podDeleted     = "pod-deleted"     // somebody deletes the Nth pod of a job
	podFailed      = "pod-failed"      // it fails
	podBoundByElse = "pod-bound"       // somebody else binds it
	podTouched     = "pod-touched"     // somebody changes its annotations
	groupReplaced  = "group-replaced"  // a PodGroup is deleted, and comes back as another one
	minimumChanged = "minimum-changed" // its minMember becomes N
	jobDeleted     = "job-deleted"     // a job goes with all it has
	queueClosed    = "queue-gone"      // a queue is deleted, and comes back
	pluginErrs     = "plugin-errs"     // a plugin of the scheduler errs over the pods of a job, N = 1: once they are placed, not when that is planned; For = 0: for ever
)

// The ways in which a request fails.
const (
	refused    = "500"         // an error before anything was written
	overloaded = "429"         // the same, with the request to come back in a second
	conflicted = "409"         // somebody else was faster
	unreached  = "unreached"   // the connection breaks before the request arrives
	answerLost = "answer-lost" // it breaks before the answer does: the write has happened
	held       = "held"        // it takes 20 s
)

var failures = []string{refused, overloaded, conflicted, unreached, answerLost, held}

// kinds are the events that are drawn; what is there twice happens more often.
var kinds = []string{
	crash, crash, parted, watchDropped, watchExpired, watchDelayed, watchDelayed, bindsRefused, evictsRefused, nodeLost, nodeCordoned, nodeShrunk, podDeleted,
	podFailed, podBoundByElse, podTouched, groupReplaced, minimumChanged, jobDeleted, queueClosed, pluginErrs, pluginErrs,
}

// harmless are events after which everybody gets what others were evicted for.
var harmless = []string{crash, watchDropped, watchExpired, podTouched}

// calm are the events of calm scenarios; what is there more than once happens more often.
var calm = []string{crash, crash, crash, watchDropped, watchExpired, podTouched, minimumChanged}

// ungates are requests by which the gate of a queue is taken off a pod, as wire names them.
const ungates = "patch pods"

// requests are those that a fault may hit.
var requests = append(slices.Clone(drawn), ungates)

// drawn are those that it may hit in any scenario; what is there more than once is hit more often.
var drawn = []string{
	binds, binds, binds, evicts, "patch pods/status",
	"patch podgroups/status", "patch queues/status", "list pods", "watch pods", "list podgroups", "watch podgroups", "watch nodes", "watch queues",
}

// trouble is how long what happens to a cluster goes on.
const trouble = 3 * time.Minute

// draw makes a scenario of a seed.
func draw(seed uint64) *scenario {
	switch {
	case seed%16 == 5:
		return drawCapped(seed)
	case seed%32 == 11:
		return drawBusy(seed)
	case seed%32 == 27:
		return drawContested(seed)
	}
	return drawMixed(seed)
}

// secondsBetween draws a time, to the millisecond.
func secondsBetween(r *rand.Rand, from, to int) duration {
	return duration(time.Duration(from*1000+r.IntN((to-from)*1000)) * time.Millisecond)
}

// within draws times up to a given one, to the millisecond.
func within(r *rand.Rand) func(most time.Duration) duration {
	return func(most time.Duration) duration {
		return duration(time.Duration(r.Int64N(int64(most))).Round(time.Millisecond))
	}
}

// drawMixed has each seed draw its own mix: most of them have a few kinds of trouble, and not all. In some, jobs start in subgroups, or pods come
// before the gate of their queue.
func drawMixed(seed uint64) *scenario {
	s := drawJobs(seed)
	if r := rand.New(rand.NewPCG(seed, 0x5b)); s.Conf == "plain" && r.IntN(3) == 0 {
		s.divide(r)
	}
	if r := rand.New(rand.NewPCG(seed, 0x9a)); s.Conf == "plain" && r.IntN(3) == 0 {
		s.Gated = true
		for range r.IntN(4) {
			s.Faults = append(s.Faults, outage{Request: ungates, Nth: int(r.ExpFloat64() * 4), Kind: failures[r.IntN(len(failures))]})
		}
	}
	return s
}

// divide has jobs start in subgroups of two or three.
func (s *scenario) divide(r *rand.Rand) {
	for i := range s.Jobs {
		j := &s.Jobs[i]
		j.Part = 2 + r.IntN(2)
		j.Size = (j.Size + j.Part - 1) / j.Part * j.Part
		j.Min = max(1, j.Min/j.Part) * j.Part
	}
}

// drawJobs draws the mix.
func drawJobs(seed uint64) *scenario {
	r := rand.New(rand.NewPCG(seed, 0x5eed))
	s := &scenario{Seed: seed, Conf: []string{"plain", "queues"}[r.IntN(2)], Slow: r.IntN(3) == 0, Standby: r.IntN(4) == 0, NoSubresource: seed%10 == 3}
	for i := range 2 + r.IntN(4) {
		s.Nodes = append(s.Nodes, node{Name: fmt.Sprintf("node-%d", i), Cores: 2 + r.IntN(7)})
	}
	at := within(r)
	for i := range 1 + r.IntN(7) {
		size := 1 + r.IntN(6)
		j := job{
			Name: fmt.Sprintf("job-%d", i), At: at(trouble / 2), Size: size, Min: 1 + r.IntN(size), Cores: 1 + r.IntN(3),
			Queue: []string{"default", "a", "b"}[r.IntN(3)], Class: []string{"low", "low", "high"}[r.IntN(3)],
			Grace: duration(time.Duration(1+r.IntN(40)) * time.Second),
		}
		if r.IntN(2) == 0 {
			j.Grace = duration(2 * time.Second)
		}
		// Who is beyond the minimum of a job may be evicted.
		if r.IntN(3) > 0 && s.Conf != "queues" {
			j.Min = size
		}
		if r.IntN(2) == 0 {
			j.Lasts = at(2*time.Minute) + duration(time.Second)
		}
		if i > 0 && r.IntN(4) == 0 {
			j.At = s.Jobs[i-1].At
		}
		if r.IntN(8) == 0 {
			j.Stuck = hopeless[r.IntN(len(hopeless))]
		}
		s.Jobs = append(s.Jobs, j)
	}
	if r.IntN(4) == 0 {
		s.drawCalm(r, at)
		return s
	}
	s.drawEvents(r, kinds, at)
	for range r.IntN(12) {
		o := outage{Request: drawn[r.IntN(len(drawn))], Nth: int(r.ExpFloat64() * 6), Kind: failures[r.IntN(len(failures))]}
		if strings.HasPrefix(o.Request, "list ") || strings.HasSuffix(o.Request, "/eviction") {
			// There are few of them.
			o.Nth = r.IntN(2)
		}
		s.Faults = append(s.Faults, o)
	}
	if s.Drowsy = r.IntN(3) == 0; s.Drowsy {
		s.aim(r, amidst...)
	}
	return s
}

// drawCalm has little happen: of what comes to nothing, and of who comes after others, more can be said then.
func (s *scenario) drawCalm(r *rand.Rand, at func(time.Duration) duration) {
	s.Slow = false
	all := 0
	for _, n := range s.Nodes {
		all += n.Cores
	}
	if s.Conf != "queues" {
		// There is an order among all. Somebody has all of the room, would like more, and may raise its minimum to that.
		for i := range s.Jobs {
			s.Jobs[i].Queue = "default"
		}
		s.drawEvents(r, calm, at)
		if j := &s.Jobs[0]; r.IntN(2) == 0 {
			j.At, j.Cores, j.Size, j.Min, j.Class, j.Lasts, j.Stuck = 0, 1, all+2, 1, "low", 0, ""
			s.Events = append(s.Events, event{At: at(trouble), Kind: minimumChanged, Target: j.Name, N: j.Size})
		}
		return
	}
	// Whoever comes first has more than it is due, and takes its time to give that back to the others. Among these are small ones, which fit where
	// the first of them does not yet.
	for i := range s.Jobs {
		j := &s.Jobs[i]
		switch {
		case i < 2:
			j.At, j.Cores, j.Size, j.Min, j.Class, j.Queue, j.Lasts, j.Stuck = 0, 1, all*2/3, 1, "low", "default", 0, ""
			j.Grace = duration(10*time.Second) + at(30*time.Second)
		case i == 2:
			j.At, j.Cores, j.Size, j.Min, j.Queue, j.Lasts, j.Stuck = duration(10*time.Second)+at(time.Minute), 1+r.IntN(3), 2, 2, "a", 0, ""
		case r.IntN(3) > 0:
			first := s.Jobs[2]
			j.At, j.Queue, j.Class, j.Size, j.Min, j.Cores = first.At+at(20*time.Second), first.Queue, first.Class, 1, 1, 1
		default:
			j.At, j.Min = max(j.At, duration(10*time.Second)), j.Size
		}
	}
	s.drawEvents(r, calm, at)
	for i := range s.Events {
		switch e := &s.Events[i]; {
		case e.Kind != crash || len(s.Jobs) < 3 || r.IntN(3) == 0:
		case r.IntN(2) == 0:
			e.In = evicting
		default:
			e.At = s.Jobs[2].At + at(30*time.Second)
		}
	}
}

// drawEvents adds what happens, of some kinds.
func (s *scenario) drawEvents(r *rand.Rand, kinds []string, at func(time.Duration) duration) {
	kinds = slices.Clone(kinds)
	r.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	kinds = kinds[:1+r.IntN(min(6, len(kinds)))]
	for range r.IntN(10) {
		e := event{At: at(trouble), Kind: kinds[r.IntN(len(kinds))], For: at(time.Minute)}
		some := s.Jobs[r.IntN(len(s.Jobs))]
		switch e.Kind {
		case crash:
			e.N, e.For = r.IntN(2), at(10*time.Second)
		case watchDropped, watchExpired, watchDelayed:
			e.Target = []string{"pods", "pods", "podgroups", "nodes", "queues"}[r.IntN(5)]
			if e.Kind == watchDelayed {
				e.For = at(20 * time.Second)
			}
		case bindsRefused:
			e.Target, e.N = some.Name, r.IntN(some.Size+1)-1
			if r.IntN(3) == 0 {
				e.For = 0
			}
		case nodeLost, nodeCordoned, nodeShrunk:
			e.Target, e.N = s.Nodes[r.IntN(len(s.Nodes))].Name, 1+r.IntN(3)
		case podDeleted, podFailed, podBoundByElse, podTouched:
			e.Target, e.N, e.For = some.Name, r.IntN(some.Size), 0
		case groupReplaced, minimumChanged, jobDeleted:
			e.Target, e.N = some.Name, 1+r.IntN(some.Size+1)
		case pluginErrs:
			e.Target, e.N = some.Name, min(1, r.IntN(3))
			if r.IntN(2) == 0 {
				e.For = 0
			}
		case queueClosed:
			e.Target = some.Queue
		}
		s.Events = append(s.Events, e)
	}
}

// aim has half of what happens, and a fault or two, wait until the scheduler is in the middle of something: at one of some moments.
func (s *scenario) aim(r *rand.Rand, moments ...string) {
	for i := range s.Events {
		if r.IntN(2) == 0 {
			s.Events[i].In = moments[r.IntN(len(moments))]
		}
	}
	for range r.IntN(3) {
		s.Faults = append(s.Faults, outage{In: moments[r.IntN(len(moments))], Nth: r.IntN(3), Kind: failures[r.IntN(len(failures))]})
	}
}

// check complains about a scenario that cannot be played: one that was written or changed by hand.
func (s *scenario) check() error {
	if _, ok := confs[s.Conf]; !ok {
		return fmt.Errorf("conf is %q: use one of %v", s.Conf, slices.Sorted(maps.Keys(confs)))
	}
	for i, j := range s.Jobs {
		if err := j.check(); err != nil {
			return fmt.Errorf("jobs[%d] %w", i, err)
		}
	}
	for i, e := range s.Events {
		if !slices.Contains(kinds, e.Kind) {
			return fmt.Errorf("events[%d].kind is %q: use one of %v", i, e.Kind, slices.Compact(slices.Sorted(slices.Values(kinds))))
		}
		if s.idle(e) {
			return fmt.Errorf("events[%d].target is %q: there is no such node or job", i, e.Target)
		}
		if err := s.reaches(e.In); err != nil && e.In != evicting {
			return fmt.Errorf("events[%d].in is %q: %w, or %s", i, e.In, err, evicting)
		}
	}
	for i, o := range s.Faults {
		if err := s.reaches(o.In); err != nil {
			return fmt.Errorf("faults[%d].in is %q: %w", i, o.In, err)
		}
		if !o.possible() {
			return fmt.Errorf("faults[%d] is %q at %q in %q: use one of %v at one of %v, or in one of %v",
				i, o.Kind, o.Request, o.In, failures, slices.Compact(slices.Sorted(slices.Values(requests))), amidst)
		}
	}
	return nil
}

// check complains about a job that makes no sense.
func (j *job) check() error {
	switch {
	case j.Part < 0 || j.Part > 0 && j.Size%j.Part != 0:
		return fmt.Errorf("has size %d and part %d: the one must be a multiple of the other", j.Size, j.Part)
	case j.Size < 1 || j.Min < 0 || j.Cores < 1:
		return fmt.Errorf("has size %d, min %d and cores %d: the first and the last must be at least 1, min at least 0", j.Size, j.Min, j.Cores)
	case j.Stuck != "" && j.Stuck != unwelcome && !slices.Contains(hopeless, j.Stuck):
		return fmt.Errorf("has stuck %q: use one of %v, %s, or nothing", j.Stuck, hopeless, unwelcome)
	}
	return nil
}

// reaches complains about a moment that is none, or at which no time passes; none given is right.
func (s *scenario) reaches(moment string) error {
	switch {
	case moment == "":
		return nil
	case !slices.Contains(amidst, moment):
		return fmt.Errorf("use one of %v, or nothing", amidst)
	case !s.Drowsy:
		return errors.New("only a drowsy scheduler takes any time for that: set drowsy, or leave it out")
	}
	return nil
}

// possible reports whether an outage is one that there is: at requests of a kind or at a moment.
func (o outage) possible() bool {
	return slices.Contains(failures, o.Kind) && slices.Contains(requests, o.Request) != slices.Contains(amidst, o.In)
}

// prompt reports whether news of the cluster is never older than a few seconds.
func (s *scenario) prompt() bool {
	late := func(e event) bool { return e.Kind == watchDelayed || e.Kind == parted }
	broken := func(o outage) bool {
		return o.In != "" || strings.HasPrefix(o.Request, "list ") || strings.HasPrefix(o.Request, "watch ")
	}
	return !s.Slow && !s.Drowsy && !slices.ContainsFunc(s.Events, late) && !slices.ContainsFunc(s.Faults, broken)
}

// moody reports whether the scheduler has the plugin moody.
func (s *scenario) moody() bool {
	return s.Drowsy || s.busy() || slices.ContainsFunc(s.Events, func(e event) bool { return e.Kind == pluginErrs })
}

// busy reports whether there are jobs that seem to fit and that each node refuses.
func (s *scenario) busy() bool {
	return slices.ContainsFunc(s.Jobs, func(j job) bool { return j.Stuck == unwelcome })
}

// String says what is in a scenario.
func (s *scenario) String() string {
	return fmt.Sprintf("%d nodes, %d jobs, %d events, %d faults", len(s.Nodes), len(s.Jobs), len(s.Events), len(s.Faults))
}
