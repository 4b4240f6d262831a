// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
)

// profiler keeps profiles of the program of one contender.
type profiler struct {
	options   options
	scenario  scenario
	contender contender
}

// wanted: only programs that are configured as kube-scheduler are known to serve profiles.
func (p profiler) wanted() bool { return p.options.profile > 0 && p.contender.config != nil }

// port returns a free port for the program, or 0 if it is to serve nothing.
func (p profiler) port() (int, error) {
	if !p.wanted() {
		return 0, nil
	}
	return schedulerprocess.FreePort()
}

// begin collects the profiles in the background. The channel yields what went wrong, once.
func (p profiler) begin(ctx context.Context, port int) <-chan error {
	done := make(chan error, 1)
	if !p.wanted() {
		done <- nil
		return done
	}
	go func() { done <- p.collect(ctx, fmt.Sprintf("https://127.0.0.1:%d", port)) }()
	return done
}

func (p profiler) collect(ctx context.Context, server string) error {
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the program's own certificate, on this machine
	}}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		return p.fetch(ctx, client, server+"/healthz", io.Discard) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the endpoints of %s: %w", p.contender.name, err)
	}
	for _, profile := range []struct{ kind, path string }{
		{"cpu", fmt.Sprintf("profile?seconds=%d", p.options.profile)}, {"allocs", "allocs"}, {"heap", "heap?gc=1"},
	} {
		if err := p.save(ctx, client, profile.kind, server+"/debug/pprof/"+profile.path); err != nil {
			return err
		}
	}
	return nil
}

// save writes one profile to the directory of the figures.
func (p profiler) save(ctx context.Context, client *http.Client, kind, url string) error {
	if err := os.MkdirAll(p.options.out, 0o755); err != nil {
		return err
	}
	s := p.scenario
	file, err := os.Create(filepath.Join(p.options.out, fmt.Sprintf("%s-%d-%dx%d.%s.pprof", p.contender.name, s.Nodes, s.Gangs, s.Size, kind)))
	if err != nil {
		return err
	}
	if err := p.fetch(ctx, client, url, file); err != nil {
		file.Close() //nolint:errcheck,gosec // the first error says it all
		return fmt.Errorf("fetching a profile of %s: %w", p.contender.name, err)
	}
	return file.Close()
}

func (p profiler) fetch(ctx context.Context, client *http.Client, url string, to io.Writer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end or of no use
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server answers %s", response.Status)
	}
	_, err = io.Copy(to, response.Body)
	return err
}
