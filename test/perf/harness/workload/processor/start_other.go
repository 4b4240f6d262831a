// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package processor

import (
	"errors"
	"os/exec"
)

// List fails: on this system processes are not bound to processors.
func List() ([]int, error) {
	return nil, errors.New("processes can be bound to processors on Linux only")
}

// Start starts a command on all processors.
func Start(cmd *exec.Cmd, _ []int) error { return cmd.Start() }
