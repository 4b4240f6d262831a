// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// StartProgram runs a program of somebody else's beside the cluster until the test ends. What it wrote is logged if the test fails.
func StartProgram(t *testing.T, path string, args ...string) {
	t.Helper()
	logs, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, args...)
	command.Stdout, command.Stderr = logs, logs
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Wait() // It was killed.
		if text, err := os.ReadFile(logs.Name()); err == nil && t.Failed() {
			t.Logf("%s wrote\n%s", filepath.Base(path), text)
		}
		_ = logs.Close()
	})
}
