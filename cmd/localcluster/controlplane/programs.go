// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopTimeout is how long a program may take to end before it is killed.
const stopTimeout = 15 * time.Second

// Programs are kube-apiserver and kube-controller-manager of another release of Kubernetes, which run as processes of their own. The zero value is none: what
// is linked into this program runs in it.
type Programs struct {
	// Dir is the folder that they are in.
	Dir string
	// Log receives what they write.
	Log io.Writer
}

// Given reports whether there are any.
func (p Programs) Given() bool { return p.Dir != "" }

// Version is the release that kube-apiserver says it is of, for example v1.34.4.
func (p Programs) Version(ctx context.Context) (string, error) {
	said, err := p.ask(ctx, "kube-apiserver", "--version")
	if err != nil {
		return "", err
	}
	version, ok := strings.CutPrefix(strings.TrimSpace(said), "Kubernetes ")
	if !ok {
		return "", fmt.Errorf("%s/kube-apiserver --version says %q, not Kubernetes and its release", p.Dir, said)
	}
	return version, nil
}

// known are those of some controllers that the folder's kube-controller-manager has. Releases have different ones.
func (p Programs) known(ctx context.Context, controllers []string) ([]string, error) {
	said, err := p.ask(ctx, "kube-controller-manager", "--help")
	if err != nil {
		return nil, err
	}
	_, list, found := strings.Cut(said, "All controllers: ")
	if !found {
		return nil, fmt.Errorf("%s/kube-controller-manager --help does not say which controllers there are", p.Dir)
	}
	all := strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
	known := slices.DeleteFunc(slices.Clone(controllers), func(c string) bool { return !slices.Contains(all, c) })
	return known, nil
}

// ask runs a program that ends by itself, and returns what it says.
func (p Programs) ask(ctx context.Context, name string, args ...string) (string, error) {
	said, err := exec.CommandContext(ctx, filepath.Join(p.Dir, name), args...).Output()
	if err != nil {
		return "", fmt.Errorf("asking another release: %w", err)
	}
	return string(said), nil
}

// run runs a program until the context ends.
func (p Programs) run(ctx context.Context, name string, flags []string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(p.Dir, name), flags...)
	cmd.Stdout, cmd.Stderr = p.Log, p.Log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	endsWithThis(cmd)
	err := cmd.Run()
	if ctx.Err() != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("running %s: %w", cmd.Path, err)
	}
	return nil
}

// release gives a listener's port to a program, which cannot take the listener itself. Nobody else is likely to take the port before it does.
func release(l net.Listener) (port string, err error) {
	port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if err := l.Close(); err != nil {
		return "", fmt.Errorf("leaving port %s to another program: %w", port, err)
	}
	return port, nil
}
