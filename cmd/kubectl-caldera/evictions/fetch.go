// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package evictions

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/caldera-scheduler/caldera/pkg/preemption/eviction"
)

const (
	// patience is how long the scheduler may take to answer.
	patience = 30 * time.Second
	// longest bounds the answer; a ledger of the largest size with many victims stays below it.
	longest = 1 << 30
	// portForward makes the port of the scheduler that leads reachable at the default of --scheduler. The lease is held by
	// the name of its pod and a suffix.
	portForward = "kubectl -n caldera-system port-forward " +
		"$(kubectl -n caldera-system get lease caldera-scheduler -o jsonpath={.spec.holderIdentity} | cut -d_ -f1) 10259"
)

// fetch gets the ledger from the scheduler.
func (f *flags) fetch(ctx context.Context, config clientcmd.ClientConfig) (*eviction.Document, error) {
	client, endpoint, err := f.client(config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking the scheduler: %w", err)
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, unreachable(err)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, longest))
	if err = errors.Join(err, answer.Body.Close()); err != nil {
		return nil, fmt.Errorf("reading the answer of the scheduler: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return nil, refused(endpoint, answer.StatusCode, body)
	}
	return read(endpoint, body)
}

// client returns a client with the user's credentials, and the URL to ask. Nothing else of the kubeconfig's cluster is
// meant for the scheduler, but the authorities that its certificate may come from.
func (f *flags) client(config clientcmd.ClientConfig) (*http.Client, string, error) {
	target, err := url.Parse(f.scheduler)
	if err != nil || target.Scheme != "https" || target.Host == "" {
		return nil, "", fmt.Errorf("--scheduler is %q: write a URL like https://127.0.0.1:10259", f.scheduler)
	}
	own, err := config.ClientConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	c := rest.CopyConfig(own)
	c.Host, c.APIPath, c.Proxy, c.Impersonate = f.scheduler, "", nil, rest.ImpersonationConfig{}
	c.TLSClientConfig.ServerName, c.TLSClientConfig.Insecure = "", f.insecure
	if f.insecure || f.authority != "" {
		c.TLSClientConfig.CAFile, c.TLSClientConfig.CAData = f.authority, nil
	}
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, "", fmt.Errorf("preparing the connection to the scheduler: %w", err)
	}
	safe := *client
	// The credentials are for this URL and no other.
	safe.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &safe, target.JoinPath(eviction.Endpoint).String(), nil
}

// unreachable says what to do when there is no answer.
func unreachable(err error) error {
	if _, unverified := errors.AsType[*tls.CertificateVerificationError](err); unverified {
		return fmt.Errorf("checking the scheduler's certificate: %w: name the authority it comes from by --certificate-authority, "+
			"or, if you trust who listens there with your credentials, use --insecure-skip-tls-verify", err)
	}
	return fmt.Errorf("asking the scheduler: %w: make its port reachable, or name another URL by --scheduler; for instance\n  %s", err, portForward)
}

// refused says what to do when the answer is no.
func refused(endpoint string, code int, body []byte) error {
	said := strings.TrimSpace(string(body[:min(len(body), 300)]))
	switch {
	case strings.Contains(said, user.Anonymous):
		return fmt.Errorf("%s does not know you (%d, %s): use a context with a token or a client certificate; if it has one, the scheduler "+
			"checks none, because it runs outside of a pod without --authentication-kubeconfig", endpoint, code, said)
	case code == http.StatusUnauthorized:
		return fmt.Errorf("%s does not accept the credentials of the kubeconfig (401): use a context whose token or client certificate "+
			"is valid in the cluster of the scheduler", endpoint)
	case code == http.StatusForbidden:
		return fmt.Errorf("you may not get %s (403, %s): somebody who may has to allow it by RBAC, for instance "+
			`"kubectl create clusterrole evictions-reader --verb=get --non-resource-url=%s" and `+
			`"kubectl create clusterrolebinding evictions-reader --clusterrole=evictions-reader --user=NAME"`, endpoint, said, eviction.Endpoint)
	}
	return fmt.Errorf("%s answers %d %s (%s): check that --scheduler is the secure port of a scheduler", endpoint, code, http.StatusText(code), said)
}

// read reads what the scheduler serves.
func read(endpoint string, body []byte) (*eviction.Document, error) {
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(body, &entries); err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w: check that --scheduler is the secure port of a scheduler", endpoint, err)
	}
	entry, ok := entries[eviction.Entry]
	if !ok {
		return nil, fmt.Errorf("the scheduler at %s keeps no account of evictions: check that it is Caldera, and that the plugin Reclaim "+
			"is enabled in its configuration", endpoint)
	}
	var doc eviction.Document
	if err := json.Unmarshal(entry, &doc); err != nil {
		return nil, fmt.Errorf("reading the evictions of %s: %w", endpoint, err)
	}
	if doc.APIVersion != eviction.DocumentVersion || doc.Kind != eviction.DocumentKind {
		return nil, fmt.Errorf("the scheduler serves %s %s, and this command reads %s %s: use the versions of one release",
			doc.APIVersion, doc.Kind, eviction.DocumentVersion, eviction.DocumentKind)
	}
	return &doc, nil
}
