// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prometheus runs a real Prometheus beside a test. It is built from a module of its own, which keeps what it requires apart.
package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/caldera-scheduler/caldera/test/integration/env"
)

// The programs.
const (
	Server = "prometheus"
	Tool   = "promtool"
)

// Binary is the path of a program. The environment variable CALDERA_PROMETHEUS or CALDERA_PROMTOOL names one; without it, it is built,
// which takes about five minutes of processor time at first and a second afterwards. It must be called from a package beside this one.
func Binary(t *testing.T, program string) string {
	t.Helper()
	if path := os.Getenv("CALDERA_" + strings.ToUpper(program)); path != "" {
		return path
	}
	path, err := filepath.Abs("../../../_output/bin/" + program)
	if err != nil {
		t.Fatal(err)
	}
	if err := build(t.Context(), path, program); err != nil {
		t.Fatal(err)
	}
	return path
}

// build builds a program. Tests of several packages run at a time, and none must run what another one has not finished.
func build(ctx context.Context, path, program string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("building %s: %w", program, err)
	}
	lock, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("building %s: %w", program, err)
	}
	defer lock.Close() //nolint:errcheck // It gives the lock back, and holds nothing.
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	// The tag leaves out what finds targets in clouds.
	command := exec.CommandContext(ctx, "go", "build", "-tags", "remove_all_sd", "-o", path, "github.com/prometheus/prometheus/cmd/"+program)
	command.Dir, command.Env = "../prometheus/server", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", program, err, out)
	}
	return nil
}

// Prometheus is one that runs until its test ends.
type Prometheus struct {
	// URL is where it serves.
	URL string
}

// Start runs Prometheus with a configuration file's content.
func Start(t *testing.T, config string) *Prometheus {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	env.StartProgram(t, exec.CommandContext(t.Context(), Binary(t, Server),
		"--config.file="+file, "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+address))
	return &Prometheus{URL: "http://" + address}
}

// Get asks its API at a path, and decodes the data of the answer.
func (p *Prometheus) Get(ctx context.Context, path string, query url.Values, data any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/api/v1/"+path+"?"+query.Encode(), nil)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", path, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", path, err)
	}
	defer response.Body.Close() //nolint:errcheck // It was only read.
	answer := struct {
		Data  any    `json:"data"`
		Error string `json:"error"`
	}{Data: data}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("reading the answer to %s, %s: %w", path, response.Status, err)
	}
	if answer.Error != "" || response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking for %s: %s: %s", path, response.Status, answer.Error)
	}
	return nil
}

func freeAddress(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}
