// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitor watches a cluster from outside, through nothing but what the API server tells, and judges whether a
// scheduler that evicts keeps its promises: gangs are whole, queues stay within their limits, nobody is evicted below
// what it is due or guaranteed, in a circle, or for nothing.
//
// The monitor takes objects in the order of their changes, and is told what the program that plays the cluster does
// itself: which pods it removes with their nodes, and which jobs it ends. What else ends has been evicted.
package monitor

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	volcano "volcano.sh/apis/pkg/apis/scheduling/v1beta1"

	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Config says by what a cluster is judged.
type Config struct {
	// ByObject: queues are due what their objects say they deserve (the plugin capacity). Otherwise the cluster is divided
	// by their weights (the plugin proportion).
	ByObject bool
	// Grace is how long a gang may be partly bound, which only the latency of binding and of the API explains.
	Grace time.Duration
	// Start is how long a beneficiary may take to start once its victims are gone.
	Start time.Duration
	// Lag is how old what the scheduler decided by may be when an eviction is seen: decisions take time to carry out.
	Lag time.Duration
	// Hold is how long room that was taken for a job may be kept for it before its pods are bound.
	Hold time.Duration
	// Cycle is how soon after it lost pods to a job another one may not take from that job.
	Cycle time.Duration
}

// Defaults are the values that latencies of the API and of binding explain.
func Defaults() Config {
	return Config{Grace: 30 * time.Second, Start: 30 * time.Second, Lag: 5 * time.Second, Hold: 20 * time.Second, Cycle: 10 * time.Minute}
}

// Kind is a promise that can be broken.
type Kind string

// The promises, by how they are broken.
const (
	PartialGang    Kind = "partial gang"
	OverCapability Kind = "queue above its capability"
	BelowGuarantee Kind = "evicted below its guarantee"
	BelowDue       Kind = "reclaimed below its due"
	Cycle          Kind = "eviction cycle"
	Unexplained    Kind = "eviction without a beneficiary"
)

// Kinds are all promises.
var Kinds = []Kind{PartialGang, OverCapability, BelowGuarantee, BelowDue, Cycle, Unexplained}

// Violation is a broken promise.
type Violation struct {
	Kind Kind
	At   time.Time
	// Objects are the names of the jobs and queues concerned, for whoever looks for them in the ledger.
	Objects []string
	// Text is the evidence.
	Text string
}

// state is what a pod is to the monitor.
type state int

const (
	unknown state = iota
	waiting
	// held: it is bound and holds its node.
	held
	// done: it has succeeded.
	done
	// over: it ends, has failed or is gone.
	over
)

type pod struct {
	uid     types.UID
	name    string
	group   *group
	node    string
	request resource.Vector
	created time.Time
	placed  time.Time
	state   state
	// lost is set when the program takes the pod away together with its node.
	lost bool
	// told is for whom it is evicted, as the pod or an event says.
	told taking
	// eviction is set once it has been evicted.
	eviction *eviction
}

// Monitor judges one cluster. It is safe for concurrent use.
type Monitor struct {
	config Config

	mu     sync.Mutex // guards the rest
	pods   map[types.UID]*pod
	groups map[string]*group
	queues map[string]*queue
	nodes  map[string]resource.Vector
	total  resource.Vector
	// told are beneficiaries that events and the scheduler's ledger name of pods, for which the pods have not.
	told       map[types.UID]taking
	samples    []sample
	evictions  []*eviction
	batches    []*batch
	losses     map[pair]time.Time
	violations []Violation
	figures    Figures
}

// New returns a monitor that has seen nothing.
func New(c Config) *Monitor {
	return &Monitor{
		config: c, pods: map[types.UID]*pod{}, groups: map[string]*group{}, queues: map[string]*queue{},
		nodes: map[string]resource.Vector{}, told: map[types.UID]taking{}, losses: map[pair]time.Time{},
		figures: Figures{Evicted: map[Flow]int{}, Waits: map[string][]time.Duration{}},
	}
}

// Node takes in a node that is there.
func (m *Monitor) Node(n *corev1.Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setNode(n.Name, resource.Schedulable(n.Status.Allocatable))
}

// NodeGone takes in that a node is gone.
func (m *Monitor) NodeGone(n *corev1.Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setNode(n.Name, nil)
}

func (m *Monitor) setNode(name string, has resource.Vector) {
	m.total = m.total.Clone()
	m.total.Sub(m.nodes[name])
	m.total.Add(has)
	m.nodes[name] = has
}

// Queue takes in a queue as it is now.
func (m *Monitor) Queue(q *volcano.Queue, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue(q.Name).set(&q.Spec, now)
}

// Group takes in a PodGroup as it is now.
func (m *Monitor) Group(pg *volcano.PodGroup, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.group(pg.Namespace+"/"+pg.Name, now)
	g.exists, g.least, g.keeps = true, int(pg.Spec.MinMember), keepsRoom(pg)
	g.move(m.queue(pg.Spec.Queue))
	g.queue.groups[g] = true
	m.settle(g, now)
}

// GroupGone takes in that a PodGroup is gone.
func (m *Monitor) GroupGone(pg *volcano.PodGroup, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.group(pg.Namespace+"/"+pg.Name, now)
	g.exists, g.ended = false, true
	g.move(m.queue("")) // Pods without a PodGroup are in no queue.
	m.forgetGroup(g)
}

// Pod takes in a pod as it is now.
func (m *Monitor) Pod(p *corev1.Pod, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.see(p, stateOf(p), now)
}

// PodGone takes in that a pod is gone.
func (m *Monitor) PodGone(p *corev1.Pod, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.see(p, over, now)
	if rec := m.pods[p.UID]; rec != nil {
		m.gone(rec, now)
	}
}

// stateOf reads a pod.
func stateOf(p *corev1.Pod) state {
	switch {
	case p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed:
		return over
	case p.Status.Phase == corev1.PodSucceeded:
		return done
	case p.Spec.NodeName != "":
		return held
	}
	return waiting
}

// see moves a pod to its new state.
func (m *Monitor) see(p *corev1.Pod, to state, now time.Time) {
	rec := m.pods[p.UID]
	if rec == nil {
		name := p.Annotations[model.GroupNameAnnotation]
		if name == "" || to == over {
			return
		}
		rec = &pod{
			uid: p.UID, name: p.Namespace + "/" + p.Name, group: m.group(p.Namespace+"/"+name, now),
			request: resource.OfPod(p), created: now,
		}
		m.pods[p.UID], rec.group.pods[p.UID] = rec, rec
	}
	if p.Spec.NodeName != "" {
		rec.node = p.Spec.NodeName
	}
	if t, ok := takingOf(p); ok {
		rec.told = t
	}
	from := rec.state
	// What has ended stays so: an informer that lists again may show an older state.
	if from == to || from == over {
		return
	}
	rec.state = to
	rec.group.queue.count(rec, from, -1)
	rec.group.queue.count(rec, to, 1)
	m.moved(rec, from, now)
	m.judgeCapability(rec.group.queue, now)
	m.settle(rec.group, now)
}

// moved acts on what a change of state means.
func (m *Monitor) moved(p *pod, from state, now time.Time) {
	g := p.group
	switch {
	case p.state == held:
		g.note(now, "%s bound to %s", p.name, p.node)
		p.placed = now
		g.bound(p)
		g.queue.note(change{at: now, bound: true, group: g, request: p.request})
		m.figures.Bound++
		m.checkCapability(g.queue, p, now)
		m.served(p)
	case from != held:
	case p.state == done || g.ended:
		g.queue.note(change{at: now, group: g, request: p.request})
	case p.lost:
		m.figures.Lost++
		g.note(now, "%s lost with %s", p.name, p.node)
		g.lose(now)
		g.queue.note(change{at: now, group: g, request: p.request})
	default:
		m.evicted(p, now)
	}
}

// gone forgets a pod.
func (m *Monitor) gone(p *pod, now time.Time) {
	if p.eviction != nil {
		p.eviction.gone = now
	}
	delete(m.pods, p.uid)
	delete(p.group.pods, p.uid)
	m.forgetGroup(p.group)
}

// forgetGroup drops a PodGroup of which nothing is left. Its queue keeps what happened.
func (m *Monitor) forgetGroup(g *group) {
	if !g.exists && g.ended && len(g.pods) == 0 {
		delete(m.groups, g.key)
	}
}

// Lost announces that the program is about to remove a pod together with its node.
func (m *Monitor) Lost(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pods[uid]; p != nil {
		p.lost = true
	}
}

// Ended announces that the program is about to end a job: its PodGroup and pods will be deleted. On a busy machine neither may have been seen by then.
func (m *Monitor) Ended(namespace, name string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.group(namespace+"/"+name, now).ended = true
}

// Tick makes the checks that need time to have passed. It is to be called about twice a second.
func (m *Monitor) Tick(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sample(now)
	for _, g := range m.groups {
		m.settle(g, now)
	}
	for _, q := range m.queues {
		m.judgeCapability(q, now)
		q.forget(now.Add(-m.config.Hold - m.config.Lag - time.Minute))
	}
	m.judgeEvictions(now)
	m.judgeBatches(now)
}

// Violations are all broken promises so far.
func (m *Monitor) Violations() []Violation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Violation(nil), m.violations...)
}

func (m *Monitor) violate(kind Kind, at time.Time, objects []string, format string, a ...any) {
	m.violations = append(m.violations, Violation{Kind: kind, At: at, Objects: objects, Text: fmt.Sprintf(format, a...)})
}
