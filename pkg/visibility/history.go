// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package visibility

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/caldera-scheduler/caldera/pkg/apis/visibility/v1alpha1"
	"github.com/caldera-scheduler/caldera/pkg/queue/dispatch"
	"github.com/caldera-scheduler/caldera/pkg/resource"
)

const (
	// SampleEvery is how often it is written down what queues hold and are due.
	SampleEvery = 30 * time.Second
	// Moments is how many samples are remembered: two hours.
	Moments = 240
	// MostSampled is how many queues have samples at one time. Nobody reads a chart of more, and they bound what is remembered: with four resources
	// 61,440 samples take 15 MB, if all queues change all the time.
	MostSampled = 256
	// deepest is how far below the root a queue counts as being at most. Queues that are above each other are that deep.
	deepest = 64
)

// history is what queues held and were due. It is a ring of moments, not one of each queue: a queue that is gone drops out with its last moment, and
// there is nothing else to bound.
type history struct {
	// mu guards the moments, the oldest first. What is in one of them is never changed.
	mu      sync.Mutex
	moments []moment
}

// moment is what queues held and were due at one time, by name.
type moment struct {
	at     time.Time
	queues map[string]*holding
}

type holding struct {
	parent string
	held   resource.Vector
	due    resource.Portion
}

func (h *holding) equal(o *holding) bool {
	return o != nil && h.parent == o.parent && slices.Equal(h.held, o.held) && slices.Equal(h.due, o.due)
}

// Sample writes down every SampleEvery what queues hold and are due, until the context ends. A failure is logged: it is no reason not to schedule.
func (v *Views) Sample(ctx context.Context) {
	ticker := v.source.Clock.NewTicker(SampleEvery)
	defer ticker.Stop()
	for {
		if err := v.sample(); err != nil {
			klog.FromContext(ctx).Error(err, "What queues hold was not written down")
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
	}
}

// sample adds a moment. What goes wrong in it is an error, whatever it is.
func (v *Views) sample() (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("taking a sample of queues: %v", r)
		}
	}()
	// The time before the lock of the history: the dispatcher may keep whoever asks waiting.
	m := moment{at: v.source.Clock.Now(), queues: map[string]*holding{}}
	for _, q := range upmost(v.source.Dispatch.Figures(), MostSampled) {
		m.queues[q.Name] = &holding{parent: q.Parent, held: q.Total.Allocated, due: q.Deserved}
	}
	v.history.add(m)
	return nil
}

// upmost are at most so many queues: those nearest to the root, of these the first by name.
func upmost(queues []dispatch.QueueFigures, most int) []dispatch.QueueFigures {
	if len(queues) <= most {
		return queues
	}
	parents := make(map[string]string, len(queues))
	for _, q := range queues {
		parents[q.Name] = q.Parent
	}
	depths := make(map[string]int, len(queues))
	for name := range parents {
		for above := parents[name]; above != "" && depths[name] < deepest; above = parents[above] {
			depths[name]++
		}
	}
	slices.SortFunc(queues, func(a, b dispatch.QueueFigures) int {
		return cmp.Or(cmp.Compare(depths[a.Name], depths[b.Name]), strings.Compare(a.Name, b.Name))
	})
	return queues[:most]
}

// add adds a moment, and forgets the oldest if there are too many. Of a queue that is as it was the sample before is kept once more: mostly nothing
// changes, and then it takes a pointer.
func (h *history) add(m moment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.moments); n > 0 {
		before := h.moments[n-1].queues
		for name, now := range m.queues {
			if now.equal(before[name]) {
				m.queues[name] = before[name]
			}
		}
	}
	// A new slice: whoever has read the one before goes on reading it.
	h.moments = slices.Concat(h.moments[max(0, len(h.moments)+1-Moments):], []moment{m})
}

func (h *history) read() []moment {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.moments
}

// Histories returns what queues have held and were due, by name.
func (v *Views) Histories() []v1alpha1.QueueHistory {
	return v.histories.get(v.source.Clock, v.makeHistories)
}

func (v *Views) makeHistories(time.Time) []v1alpha1.QueueHistory {
	type lists struct{ held, due corev1.ResourceList }
	// A sample that is kept once more is written once.
	written := map[*holding]lists{}
	byName := map[string]*v1alpha1.QueueHistory{}
	for _, m := range v.history.read() {
		at := metav1.NewTime(m.at)
		for name, q := range m.queues {
			l, ok := written[q]
			if !ok {
				l = lists{q.held.List(), q.due.List()}
				written[q] = l
			}
			view := byName[name]
			if view == nil {
				view = &v1alpha1.QueueHistory{ObjectMeta: metav1.ObjectMeta{Name: name}}
				byName[name] = view
			}
			view.Status.AsOf, view.Status.Parent = at, q.parent
			view.Status.Samples = append(view.Status.Samples, v1alpha1.QueueSample{Time: at, Held: l.held, Due: l.due})
		}
	}
	views := make([]v1alpha1.QueueHistory, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		views = append(views, *byName[name])
	}
	return views
}
