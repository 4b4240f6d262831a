// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// StartProgram runs a program of somebody else's beside the cluster until its context ends, which is to be that of the test. What it wrote is
// logged if the test fails.
func StartProgram(t *testing.T, command *exec.Cmd) {
	t.Helper()
	logs, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout, command.Stderr = logs, logs
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Wait() // It was killed.
		if text, err := os.ReadFile(logs.Name()); err == nil && t.Failed() {
			t.Logf("%s wrote\n%s", filepath.Base(command.Path), text)
		}
		_ = logs.Close()
	})
}
