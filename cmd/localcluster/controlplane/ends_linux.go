// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os/exec"
	"syscall"
)

// endsWithThis has a program end when this one is killed.
func endsWithThis(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
