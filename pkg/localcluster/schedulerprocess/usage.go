// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package schedulerprocess

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Sample is what a running process has used so far.
type Sample struct {
	// CPU is user and system time.
	CPU time.Duration
	// Memory is the resident set, in bytes.
	Memory int64
}

// ticksPerSecond is the unit of times in /proc, which Linux fixes for user space.
const ticksPerSecond = 100

// Sample reads what the scheduler has used so far. Only Linux tells.
func (p *Process) Sample() (Sample, error) { return SampleOf(p.PID()) }

// SampleOf reads what any process has used so far. Only Linux tells.
func SampleOf(pid int) (Sample, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Sample{}, fmt.Errorf("reading the use of process %d: %w", pid, err)
	}
	s, err := parse(data, os.Getpagesize())
	if err != nil {
		return Sample{}, fmt.Errorf("reading the use of process %d: %w", pid, err)
	}
	return s, nil
}

// parse reads /proc/PID/stat. The name of the program, in brackets, may hold anything; numbers are counted after it.
func parse(stat []byte, pageSize int) (Sample, error) {
	const user, system, pages = 11, 12, 21
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= pages {
		return Sample{}, fmt.Errorf("%d fields after the name, want more than %d", len(fields), pages)
	}
	var values [3]int64
	for i, place := range []int{user, system, pages} {
		value, err := strconv.ParseInt(string(fields[place]), 10, 64)
		if err != nil {
			return Sample{}, fmt.Errorf("field %d after the name: %w", place, err)
		}
		values[i] = value
	}
	return Sample{CPU: time.Duration(values[0]+values[1]) * time.Second / ticksPerSecond, Memory: values[2] * int64(pageSize)}, nil
}
