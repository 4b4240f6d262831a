// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// redirectStderr makes file descriptor 2 write to file and returns the standard error there was.
func redirectStderr(file *os.File) (*os.File, error) {
	saved, err := unix.FcntlInt(uintptr(unix.Stderr), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Dup2(int(file.Fd()), unix.Stderr); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(saved), "stderr"), nil
}
