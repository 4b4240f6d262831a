// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package fragmentation

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/node/fragment"
)

const (
	// anew is by which part of what is known new pods have to add up until kinds are worked out again: as long as it is the same, so are all scores.
	anew = 0.05
	// forgotten is how much a demand counts that nobody has any more: a pod of four half-lives ago.
	forgotten = 1. / 16
	// farthest is after how many half-lives counts are brought to the present, so that numbers stay small.
	farthest = 16
)

// mix learns what pods ask for. Each pod counts once, from its creation, and half as much after each half-life.
type mix struct {
	clock    clock.PassiveClock
	halfLife time.Duration

	// mu guards what follows. While it is held nothing is called but what learn is given.
	mu sync.Mutex
	// begun: the pods of nodes have been counted.
	begun bool
	seen  map[types.UID]bool
	// counts are how often there is each demand, as of the time since. Models are as pods name them.
	counts map[fragment.Demand]float64
	since  time.Time
	// fresh are the pods counted since kinds were worked out, and known how many these stood on.
	fresh, known float64
	now          *outlook
}

// outlook is what pods are expected to ask for, and where. It is not changed any more.
type outlook struct {
	version int64
	kinds   fragment.Kinds
	cluster cluster
}

// cluster is what counts of all nodes.
type cluster struct {
	nodes int
	// gpus are how many GPUs of each model there are.
	gpus map[string]int
	// milliCPU and each are the most CPU and the most GPUs, in thousandths, that a node has.
	milliCPU int64
	each     int
}

// usable reports whether there are GPUs.
func (c *cluster) usable() bool { return c.each > 0 }

func newMix(c clock.PassiveClock, halfLife time.Duration) *mix {
	return &mix{clock: c, halfLife: halfLife, seen: map[types.UID]bool{}, counts: map[fragment.Demand]float64{}, since: c.Now(), now: &outlook{}}
}

// arrival is a pod with what it asks for.
type arrival struct {
	pod    *corev1.Pod
	demand fragment.Demand
}

// learn counts a pod if that was not done yet, and returns what is expected. At the first time those on nodes, which bound tells of, are counted as
// well: that is what is remembered over a restart. Survey looks at all nodes, of which there are so many; takes reports whether pods that name
// models take one.
func (m *mix) learn(a arrival, nodes int, bound func() []arrival, survey func() cluster, takes func(models, model string) bool) *outlook {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.begun {
		m.begun = true
		for _, other := range bound() {
			m.count(other)
		}
	}
	m.count(a)
	if m.now.version == 0 || m.fresh > 0 && m.fresh >= anew*m.known || nodes != m.now.cluster.nodes {
		c := survey()
		m.now = &outlook{version: m.now.version + 1, kinds: m.kinds(&c, takes), cluster: c}
	}
	return m.now
}

// forget is told of pods that are gone. They still count.
func (m *mix) forget(pod types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.seen, pod)
}

func (m *mix) count(a arrival) {
	if m.seen[a.pod.UID] {
		return
	}
	if by := metav1.GetControllerOf(a.pod); by != nil && by.Kind == "DaemonSet" {
		// There is one on each node, and it could be on no other.
		return
	}
	m.seen[a.pod.UID] = true
	now := m.clock.Now()
	if now.Sub(m.since) > farthest*m.halfLife {
		m.rebase(now)
	}
	created := a.pod.CreationTimestamp.Time
	if created.IsZero() || created.After(now) {
		created = now
	}
	// A pod that is older than what counts at all has no place in the sum.
	if n := math.Exp2(float64(created.Sub(m.since)) / float64(m.halfLife)); n > 0 {
		m.counts[a.demand] += n
	}
	m.fresh++
}

// rebase has counts be those of now, and drops the demands that hardly count any more.
func (m *mix) rebase(now time.Time) {
	// A clock that was set back makes nothing count more.
	faded := min(1, math.Exp2(-float64(now.Sub(m.since))/float64(m.halfLife)))
	m.since = now
	for d, n := range m.counts {
		if n *= faded; n < forgotten {
			delete(m.counts, d)
		} else {
			m.counts[d] = n
		}
	}
}

// kinds are worked out from the counts. The models that pods name are replaced by those of which there are GPUs. What fits no node, however empty,
// does not count: nothing that is left could be of use to it.
func (m *mix) kinds(c *cluster, takes func(models, model string) bool) fragment.Kinds {
	m.rebase(m.clock.Now())
	known := map[string]string{}
	counts := make(map[fragment.Demand]float64, len(m.counts))
	m.fresh, m.known = 0, 0
	// In order, so that sums are the same to the last digit.
	for _, d := range slices.SortedFunc(maps.Keys(m.counts), fragment.Demand.Compare) {
		n := m.counts[d]
		if d.Models != "" {
			if _, ok := known[d.Models]; !ok {
				known[d.Models] = among(d.Models, c.gpus, takes)
			}
			d.Models = known[d.Models]
		}
		m.known += n
		if d.Models != nowhere && d.MilliCPU <= c.milliCPU && d.GPUs*fragment.Whole <= c.each {
			counts[d] += n
		}
	}
	return fragment.KindsOf(counts).Scarce(c.gpus)
}

// nowhere stands for models of which there are no GPUs. No model has that name.
const nowhere = "|"

// among are the models that pods take of those there are, joined with "|"; empty if they take all, nowhere if none.
func among(models string, gpus map[string]int, takes func(models, model string) bool) string {
	var taken []string
	for model := range gpus {
		if takes(models, model) {
			taken = append(taken, model)
		}
	}
	switch len(taken) {
	case 0:
		return nowhere
	case len(gpus):
		return ""
	}
	slices.Sort(taken)
	return strings.Join(taken, "|")
}
