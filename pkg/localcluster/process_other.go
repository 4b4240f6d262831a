// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package localcluster

import (
	"os"
	"os/exec"
)

func detach(*exec.Cmd) {}

// terminate does nothing where there is no SIGTERM: the child also stops when its stdin is closed.
func terminate(*os.Process) error { return nil }

func lockFile(string) (unlock func(), err error) { return func() {}, nil }
