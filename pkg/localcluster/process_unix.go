// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package localcluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// detach keeps signals of the terminal away from the child: Ctrl-C reaches the parent, which stops the child.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// Pause has the control plane stand still: connections to it stay open, and nobody answers.
func (c *Cluster) Pause() error { return c.signal(syscall.SIGSTOP) }

// Resume has it go on after a Pause.
func (c *Cluster) Resume() error { return c.signal(syscall.SIGCONT) }

func (c *Cluster) signal(s os.Signal) error {
	if err := c.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("sending %s to the local cluster: %w", s, err)
	}
	return nil
}

// lockFile waits for an exclusive lock that ends with the process at the latest.
func lockFile(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		f.Close() //nolint:errcheck // the lock error is the one to report
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { f.Close() }, nil //nolint:errcheck // closing releases the lock
}
