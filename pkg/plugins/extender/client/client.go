// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client asks an extender: it posts JSON to a URL and reads JSON back. It decides nothing.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// most is how many bytes of an answer are read; Volcano has the same limit (pkg/scheduler/plugins/extender/extender.go).
	most = 10 << 20
	// quoted is how many bytes of an answer that is no good are told.
	quoted = 200
)

// Client asks one extender. It is safe for concurrent use.
type Client struct {
	prefix string
	http   *http.Client
}

// New returns a client of the extender below a URL. A call takes no longer than the timeout, whatever comes back.
func New(urlPrefix string, timeout time.Duration) *Client {
	return &Client{prefix: strings.TrimRight(urlPrefix, "/"), http: &http.Client{Timeout: timeout}}
}

// URL is where a verb is asked.
func (c *Client) URL(verb string) string { return c.prefix + "/" + strings.TrimLeft(verb, "/") }

// Call posts a question and reads the answer, which must come with status 200 and be JSON of at most 10 MiB. An answer
// of nil is not read. Errors name the URL and what came back.
func (c *Client) Call(ctx context.Context, verb string, question, answer any) error {
	if err := c.call(ctx, verb, question, answer); err != nil {
		return fmt.Errorf("asking the extender at %s: %w", c.URL(verb), err)
	}
	return nil
}

func (c *Client) call(ctx context.Context, verb string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("writing the question: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL(verb), bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return reason(err)
	}
	defer func() { _ = response.Body.Close() }()
	limited := http.MaxBytesReader(nil, response.Body, most)
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(limited, quoted))
		return fmt.Errorf("status %s where 200 is wanted, with the text %q", response.Status, strings.TrimSpace(string(text)))
	}
	if answer == nil {
		return nil
	}
	data, err := io.ReadAll(limited)
	if err != nil {
		return fmt.Errorf("reading the answer: %w", reason(err))
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("reading the answer %q: %w", data[:min(len(data), quoted)], err)
	}
	return nil
}

// reason is what went wrong without the URL, which is told already.
func reason(err error) error {
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return errors.New("no answer in time; raise httpTimeout if the extender needs longer")
	}
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return fmt.Errorf("%w: it may have %d bytes", err, most)
	}
	if inner := errors.Unwrap(err); inner != nil {
		return inner
	}
	return err
}
