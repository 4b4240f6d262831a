// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	// BinaryVariable is the environment variable that names a prebuilt binary; Build then builds nothing.
	BinaryVariable = "CALDERA_LOCALCLUSTER"

	modulePath     = "github.com/caldera-scheduler/caldera"
	kubernetesPath = "k8s.io/kubernetes"
)

// LDFlags is the value of go build's -ldflags that makes the API server report the given version, for example v1.37.1.
// Without them it calls itself v0.0.0-master, which client tools refuse, and so does the binary itself. The Makefile
// passes the same text: with equal flags neither build undoes the other's.
func LDFlags(kubernetesVersion string) string {
	major, minor, _ := strings.Cut(strings.TrimPrefix(kubernetesVersion, "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	var flags []string
	for _, value := range []string{
		"gitVersion=" + kubernetesVersion,
		"gitMajor=" + major,
		"gitMinor=" + minor,
		"gitTreeState=clean",
		"buildDate=2026-01-01T00:00:00Z",
	} {
		flags = append(flags, "-X k8s.io/component-base/version."+value, "-X k8s.io/client-go/pkg/version."+value)
	}
	return strings.Join(flags, " ")
}

// Build builds cmd/localcluster and returns the path of the binary, in _output/bin of the module. A build that is up to
// date costs a second. Several processes may call it at once.
func Build(ctx context.Context) (string, error) {
	if binary := os.Getenv(BinaryVariable); binary != "" {
		path, err := filepath.Abs(binary)
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			return "", fmt.Errorf("using %s: %w", BinaryVariable, err)
		}
		return path, nil
	}
	module, err := findModule(ctx)
	if err != nil {
		return "", fmt.Errorf("finding the sources of localcluster: %w", err)
	}
	binary := filepath.Join(module.dir, "_output", "bin", "localcluster")
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		return "", fmt.Errorf("building localcluster: %w", err)
	}
	unlock, err := lockFile(binary + ".lock")
	if err != nil {
		return "", fmt.Errorf("building localcluster: %w", err)
	}
	defer unlock()
	_, err = goCommand(ctx, module.dir, "build", "-o", binary, "-ldflags", LDFlags(module.kubernetesVersion), "./cmd/localcluster")
	if err != nil {
		return "", fmt.Errorf("building localcluster: %w", err)
	}
	return binary, nil
}

type module struct {
	dir               string
	kubernetesVersion string
}

// findModule asks the go command, which honours go.work and replace directives.
func findModule(ctx context.Context) (module, error) {
	dir, err := goCommand(ctx, "", "list", "-m", "-f", "{{.Dir}}", modulePath)
	if err != nil {
		return module{}, err
	}
	version, err := goCommand(ctx, dir, "list", "-m", "-f", "{{.Version}}", kubernetesPath)
	if err != nil {
		return module{}, err
	}
	return module{dir: dir, kubernetesVersion: version}, nil
}

func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as in the Makefile, so that compiled packages are shared
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running go %s: %w", args[0], errors.Join(err, errors.New(strings.TrimSpace(stderr.String()))))
	}
	return strings.TrimSpace(string(stdout)), nil
}
