// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// usage is what a process has used so far.
type usage struct {
	// cpu is user and system time.
	cpu time.Duration
	// memory is the resident set, in bytes.
	memory int64
}

// ticksPerSecond is the unit of times in /proc, which Linux fixes for user space.
const ticksPerSecond = 100

func readUsage(pid int) (usage, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return usage{}, fmt.Errorf("reading the use of process %d: %w", pid, err)
	}
	u, err := parseUsage(data, os.Getpagesize())
	if err != nil {
		return usage{}, fmt.Errorf("reading the use of process %d: %w", pid, err)
	}
	return u, nil
}

// parseUsage reads /proc/PID/stat. The name of the program, in brackets, may hold anything; numbers are counted after it.
func parseUsage(stat []byte, pageSize int) (usage, error) {
	const user, system, pages = 11, 12, 21
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= pages {
		return usage{}, fmt.Errorf("%d fields after the name, want more than %d", len(fields), pages)
	}
	var values [3]int64
	for i, place := range []int{user, system, pages} {
		value, err := strconv.ParseInt(string(fields[place]), 10, 64)
		if err != nil {
			return usage{}, fmt.Errorf("field %d after the name: %w", place, err)
		}
		values[i] = value
	}
	return usage{cpu: time.Duration(values[0]+values[1]) * time.Second / ticksPerSecond, memory: values[2] * int64(pageSize)}, nil
}
