// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package processor

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// List returns the processors that this process may use.
func List() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("asking for the processors of this process: %w", err)
	}
	var list []int
	for i := 0; len(list) < set.Count(); i++ {
		if set.IsSet(i) {
			list = append(list, i)
		}
	}
	return list, nil
}

// Start starts a command on some processors; none: on all. What the command starts is on them, too.
func Start(cmd *exec.Cmd, processors []int) error {
	if len(processors) == 0 {
		return cmd.Start()
	}
	// A new process has the processors of the thread that it comes from.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("asking for the processors of a thread: %w", err)
	}
	for _, p := range processors {
		set.Set(p)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("binding a thread to processors %v: %w", processors, err)
	}
	defer unix.SchedSetaffinity(0, &before) //nolint:errcheck // it was allowed a moment ago
	return cmd.Start()
}
