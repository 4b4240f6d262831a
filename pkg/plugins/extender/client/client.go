// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client asks an extender: it posts JSON to a URL and reads JSON back. It decides nothing.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/transport"

	"github.com/caldera-scheduler/caldera/pkg/apis/config"
)

const (
	// most is how many bytes of an answer are read; Volcano has the same limit (pkg/scheduler/plugins/extender/extender.go).
	most = 10 << 20
	// quoted is how many bytes of an answer that is no good are told.
	quoted = 200
)

// Client asks one extender. It is safe for concurrent use.
type Client struct {
	prefix  string
	timeout time.Duration
	tls     transport.TLSConfig

	mu sync.Mutex
	// http is nil until the files of the TLS configuration could be read.
	http *http.Client
}

// New returns a client of the extender at the URL of the arguments. A call takes no longer than their timeout, whatever comes back. Files are read
// by the first call, and by each after it until that succeeds: one that is missing is a failure of the extender like others.
func New(args *config.ExtenderArgs) *Client {
	t := &args.TLSConfig
	return &Client{
		prefix: strings.TrimRight(args.URLPrefix, "/"), timeout: args.HTTPTimeout.Duration,
		tls: transport.TLSConfig{Insecure: t.Insecure, ServerName: t.ServerName, CertFile: t.CertFile, KeyFile: t.KeyFile, CAFile: t.CAFile},
	}
}

// connection is what calls are made by.
func (c *Client) connection() (*http.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.http == nil {
		way, err := transport.New(&transport.Config{TLS: c.tls})
		if err != nil {
			return nil, fmt.Errorf("using tlsConfig: %w", err)
		}
		c.http = &http.Client{Timeout: c.timeout, Transport: way}
	}
	return c.http, nil
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
	connection, err := c.connection()
	if err != nil {
		return err
	}
	response, err := connection.Do(request)
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
		err = inner
	}
	if hint := advice(err); hint != "" {
		return fmt.Errorf("%w; %s", err, hint)
	}
	return err
}

// certificateRequired is the alert of a server to which no client certificate, or none of an authority it knows, was shown (RFC 8446, section 6).
const certificateRequired = tls.AlertError(116)

// advice is what in tlsConfig may help; empty: nothing does.
func advice(err error) string {
	var name x509.HostnameError
	var remote *net.OpError
	switch {
	case errors.As(err, &name):
		return "if it is the right server, write one of its names as tlsConfig.serverName"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "name a file with its authority's certificate as tlsConfig.caFile"
	case errors.As(err, &remote) && remote.Err != nil && remote.Err.Error() == certificateRequired.Error():
		return "name the files of a client certificate as tlsConfig.certFile and tlsConfig.keyFile"
	}
	return ""
}
