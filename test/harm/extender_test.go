// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package harm_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/caldera-scheduler/caldera/test/harm"
)

// TestTheExtenderBehaves: it answers, closes connections, or lets callers wait until it is well.
func TestTheExtenderBehaves(t *testing.T) {
	e, err := harm.NewExtender()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close() //nolint:errcheck // nothing is left to be told
	ask := func() error {
		r, err := http.Post(e.URL()+"/filter", "application/json", strings.NewReader(`{"NodeNames": ["a"]}`))
		if err != nil {
			return err
		}
		defer r.Body.Close() //nolint:errcheck // it was read
		body, err := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `["a"]`) {
			t.Errorf("it answers %s", body)
		}
		return err
	}
	if err := ask(); err != nil {
		t.Error(err)
	}
	e.Behave(harm.Refuses)
	if ask() == nil {
		t.Error("it answers though it is dead")
	}
	e.Behave(harm.Hangs)
	answer := make(chan error)
	go func() { answer <- ask() }()
	select {
	case err := <-answer:
		t.Errorf("it answers though it hangs: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	e.Behave(harm.Answers)
	if err := <-answer; err != nil {
		t.Error(err)
	}
}
