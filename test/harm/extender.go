// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package harm

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Manner is how an extender treats requests.
type Manner int

// The manners.
const (
	// Answers that pods may go onto all nodes.
	Answers Manner = iota
	// Refuses closes the connection.
	Refuses
	// Hangs does not answer until the extender is well, or the caller has gone.
	Hangs
)

// Extender lets pods onto all nodes, if it is well.
type Extender struct {
	server   *http.Server
	listener net.Listener

	mu  sync.Mutex // guards what follows
	how Manner
	// changed is closed when it behaves otherwise.
	changed chan struct{}
}

// NewExtender serves on a free port.
func NewExtender() (*Extender, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting an extender: %w", err)
	}
	e := &Extender{listener: listener, changed: make(chan struct{})}
	e.server = &http.Server{Handler: http.HandlerFunc(e.serve), ReadHeaderTimeout: time.Second}
	go e.server.Serve(listener) //nolint:errcheck // it ends when it is closed
	return e, nil
}

// URL is where it serves.
func (e *Extender) URL() string { return "http://" + e.listener.Addr().String() }

// Close ends it.
func (e *Extender) Close() error { return e.server.Close() }

// Behave changes how requests are treated, those that hang as well.
func (e *Extender) Behave(how Manner) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.how = how
	close(e.changed)
	e.changed = make(chan struct{})
}

// now returns how requests are treated, and what is closed when that changes.
func (e *Extender) now() (Manner, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.how, e.changed
}

func (e *Extender) serve(w http.ResponseWriter, r *http.Request) {
	var args extenderv1.ExtenderArgs
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for {
		how, changed := e.now()
		switch how {
		case Refuses:
			panic(http.ErrAbortHandler) // closes the connection without a word
		case Hangs:
			select {
			case <-changed:
				continue
			case <-r.Context().Done():
				return
			}
		case Answers:
			json.NewEncoder(w).Encode(extenderv1.ExtenderFilterResult{NodeNames: args.NodeNames}) //nolint:errcheck,errchkjson // the caller notices
			return
		}
	}
}
