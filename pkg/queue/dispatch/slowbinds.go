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
	// full has how many pods wait, for the namespaces whose jobs have no turns.
	full map[string]int
	// changed are namespaces that came or went.
	changed map[string]bool
	// some: full or changed is not empty.
	some atomic.Bool
}

// put notes how many pods of a namespace wait, and reports whether its jobs may have turns that might not before, or the other way round.
func (s *slowBinds) put(namespace string, waiting int) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, full := s.full[namespace]
	switch {
	case full && waiting < leastAside:
		delete(s.full, namespace)
	case full || waiting >= mostAside:
		if s.full == nil {
			s.full, s.changed = map[string]int{}, map[string]bool{}
		}
		s.full[namespace] = waiting
		if full {
			return false
		}
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
	waiting, full := s.full[namespace]
	if !full {
		return model.Reason{}
	}
	return model.Reason{Kind: model.SlowBinds, Message: fmt.Sprintf("%d pods of namespace %s have nodes and wait to be bound, which takes the API server longer than a second: "+
		"look for a webhook or policy for pods/binding that answers late there", waiting, namespace)}
}

// SlowBinds is told how many pods of a namespace have their nodes and wait because the API server takes long to bind pods of that namespace.
func (d *Dispatcher) SlowBinds(namespace string, waiting int) {
	if d.waits.slow.put(namespace, waiting) {
		d.wake()
	}
}
