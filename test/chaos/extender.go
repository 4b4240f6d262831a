// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// manner is how an extender treats requests.
type manner int

const (
	answers manner = iota
	// refuses: it closes the connection.
	refuses
	// hangs: it does not answer until it is well, or the caller has gone.
	hangs
)

// extender lets pods onto all nodes, if it is well.
type extender struct {
	server   *http.Server
	listener net.Listener

	mu  sync.Mutex // guards what follows
	how manner
	// changed is closed when it behaves otherwise.
	changed chan struct{}
}

// newExtender serves on a free port.
func newExtender() (*extender, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting an extender: %w", err)
	}
	e := &extender{listener: listener, changed: make(chan struct{})}
	e.server = &http.Server{Handler: http.HandlerFunc(e.serve), ReadHeaderTimeout: time.Second}
	go e.server.Serve(listener) //nolint:errcheck // it ends when it is closed
	return e, nil
}

func (e *extender) url() string { return "http://" + e.listener.Addr().String() }

func (e *extender) close() error { return e.server.Close() }

// behave changes how requests are treated, those that hang as well.
func (e *extender) behave(how manner) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.how = how
	close(e.changed)
	e.changed = make(chan struct{})
}

// now returns how requests are treated, and what is closed when that changes.
func (e *extender) now() (manner, <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.how, e.changed
}

func (e *extender) serve(w http.ResponseWriter, r *http.Request) {
	var args extenderv1.ExtenderArgs
	if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for {
		how, changed := e.now()
		switch how {
		case refuses:
			panic(http.ErrAbortHandler) // closes the connection without a word
		case hangs:
			select {
			case <-changed:
				continue
			case <-r.Context().Done():
				return
			}
		case answers:
			json.NewEncoder(w).Encode(extenderv1.ExtenderFilterResult{NodeNames: args.NodeNames}) //nolint:errcheck,errchkjson // the caller notices
			return
		}
	}
}
