// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package visibility makes the objects of the API visibility.caldera.dev from what the scheduler goes by: the model, the dispatcher and the ledger of
// evictions. It decides nothing, and changes nothing that anybody decides by. Package serve shows them.
package visibility

import (
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/model"
	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
)

const (
	// Freshness is how old views may be. However many ask, they are made once in that time.
	Freshness = time.Second
	// idle is how often as long as it takes to make them nothing is made at least: they cost a twentieth of a core at most. Oldest is how old they
	// may be all the same.
	idle   = 19
	oldest = 10 * time.Second
)

// Source is where views come from.
type Source struct {
	State    *model.State
	Dispatch dispatch.View
	Ledger   *eviction.Ledger
	Clock    clock.WithTicker
	// Leader is the scheduler itself, without its configuration.
	Leader v1alpha1.Leader
	// Configuration returns what it schedules by now, in YAML.
	Configuration func() string
}

// Views makes views of what a source has. All its methods may be called at any time from anywhere. What they return is shared, and must never be
// changed.
type Views struct {
	source    Source
	jobs      recent[[]v1alpha1.JobView]
	queues    recent[[]v1alpha1.QueueView]
	evictions recent[[]v1alpha1.EvictionDecision]
	cluster   recent[*v1alpha1.ClusterView]
	histories recent[[]v1alpha1.QueueHistory]
	history   history
}

// New returns the views of a source.
func New(s Source) *Views { return &Views{source: s} }

// Jobs returns all jobs, by namespace and name.
func (v *Views) Jobs() []v1alpha1.JobView { return v.jobs.get(v.source.Clock, v.makeJobs) }

// Job returns a job by its namespace and the name of its view; nil if there is none.
func (v *Views) Job(namespace, name string) *v1alpha1.JobView {
	jobs := v.Jobs()
	wanted := v1alpha1.JobView{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if i, there := slices.BinarySearchFunc(jobs, wanted, compareJobs); there {
		return &jobs[i]
	}
	return nil
}

// Queues returns all queues by name.
func (v *Views) Queues() []v1alpha1.QueueView { return v.queues.get(v.source.Clock, v.makeQueues) }

// Cluster returns the cluster, and the scheduler that leads.
func (v *Views) Cluster() *v1alpha1.ClusterView { return v.cluster.get(v.source.Clock, v.makeCluster) }

// Now is the time by which views are made.
func (v *Views) Now() time.Time { return v.source.Clock.Now() }

// recent is a value that is made again once it is too old. Who asks while it is being made waits for it.
type recent[T any] struct {
	mu    sync.Mutex
	value T
	// until is how long it is good; zero before the first.
	until time.Time
}

func (r *recent[T]) get(clock clock.PassiveClock, build func(now time.Time) T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := clock.Now(); r.until.IsZero() || !now.Before(r.until) {
		r.value = build(now)
		r.until = now.Add(min(max(Freshness, clock.Now().Sub(now)*(idle+1)), oldest))
	}
	return r.value
}
