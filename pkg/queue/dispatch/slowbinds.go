// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/caldera-scheduler/caldera/pkg/model"
)

const (
	// mostAside is how many pods of a namespace may wait for its slow binds when one of its jobs has its turn: more would hold room for nothing.
	mostAside = 256
	// leastAside is below how many of them its jobs have turns again.
	leastAside = mostAside / 2
)

// slowBinds are the namespaces whose pods take the API server long to bind, because of a webhook for instance. Pods of such a namespace wait for
// each other; while many do, its jobs have no turns. Its methods may be called by any goroutine.
type slowBinds struct {
	mu sync.Mutex
	// waiting has how many pods wait, by their namespace.
	waiting map[string]int
	// full are the namespaces whose jobs have no turns, changed those that came or went.
	full, changed map[string]bool
	// some: full or changed is not empty.
	some atomic.Bool
}

func newSlowBinds() *slowBinds {
	return &slowBinds{waiting: map[string]int{}, full: map[string]bool{}, changed: map[string]bool{}}
}

// add notes that more pods of a namespace wait, or fewer, and reports whether its jobs may have turns that might not before, or the other way round.
func (s *slowBinds) add(namespace string, more int) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.waiting[namespace] + more
	s.waiting[namespace] = waiting
	if waiting == 0 {
		delete(s.waiting, namespace)
	}
	switch full := s.full[namespace]; {
	case full && waiting < leastAside:
		delete(s.full, namespace)
	case !full && waiting >= mostAside:
		s.full[namespace] = true
	default:
		return false
	}
	s.changed[namespace] = true
	s.some.Store(true)
	return true
}

// take returns the namespaces that came or went since.
func (s *slowBinds) take() map[string]bool {
	if !s.some.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.changed
	s.changed = map[string]bool{}
	s.some.Store(len(s.full) > 0)
	return taken
}

// reason is why jobs of a namespace have no turns; the zero Reason when they have.
func (s *slowBinds) reason(namespace string) model.Reason {
	if !s.some.Load() {
		return model.Reason{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.full[namespace] {
		return model.Reason{}
	}
	return model.Reason{Kind: model.SlowBinds, Message: fmt.Sprintf("%d pods of namespace %s have nodes and wait to be bound, which takes the API server longer than a second: "+
		"look for a webhook or policy for pods/binding that answers late there", s.waiting[namespace], namespace)}
}

// SlowBinds is told that more pods of a namespace, or fewer, have their nodes and wait because the API server takes long to bind pods of it.
func (d *Dispatcher) SlowBinds(namespace string, more int) {
	if d.waits.slow.add(namespace, more) {
		d.wake()
	}
}
