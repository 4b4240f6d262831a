// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// childVariable, if set, has the test program play the scenarios it reads.
	childVariable = "FAULTS_CHILD"
	// logVariable is the verbosity of the scheduler's log there; empty for none.
	logVariable = "FAULTS_LOG"
	// longest is how long, of real time, a scenario may take; usually it is a quarter of a second.
	longest = 2 * time.Minute
)

// build builds the program that plays: a bubble with a time of its own belongs to a test.
func build(ctx context.Context) (program string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "faults")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(dir) } //nolint:errcheck // a leftover directory does no harm
	program = filepath.Join(dir, "faults.test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, "github.com/caldera-scheduler/caldera/test/faults")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("building the test program: %w\n%s", err, output)
	}
	return program, remove, nil
}

// player plays scenarios in a process of its own, which is started again when it dies.
type player struct {
	program string
	// log is where the scheduler's log goes, and what happens; nil for nowhere.
	log io.Writer

	cmd      *exec.Cmd
	in       io.WriteCloser
	outcomes chan outcome
	errors   *tail
}

func newPlayer(program string, o options, progress io.Writer) *player {
	p := &player{program: program}
	if o.verbose {
		p.log = progress
	}
	return p
}

// play plays a scenario. That it kills the process, or never ends, is a failure of the scenario.
func (p *player) play(ctx context.Context, s *scenario) outcome {
	failed := func(format string, args ...any) outcome {
		p.close()
		return outcome{Seed: s.Seed, Failure: fmt.Sprintf(format, args...)}
	}
	if p.cmd == nil {
		if err := p.start(); err != nil {
			return failed("starting the test program: %v", err)
		}
	}
	text, err := json.Marshal(s)
	if err != nil {
		return failed("encoding the scenario: %v", err)
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		return failed("handing over the scenario: %v", err)
	}
	select {
	case o, ok := <-p.outcomes:
		if !ok {
			err := p.cmd.Wait()
			said := p.errors.String()
			p.cmd = nil
			return outcome{Seed: s.Seed, Failure: fmt.Sprintf("the process died: %v\n%s", err, said)}
		}
		return o
	case <-time.After(longest):
		p.cmd.Process.Signal(syscall.SIGQUIT) //nolint:errcheck,gosec // it is killed next
		time.Sleep(time.Second)
		return failed("it does not end: after %s\n%s", longest, p.errors)
	case <-ctx.Done():
		return failed("%v", context.Cause(ctx))
	}
}

func (p *player) start() error {
	p.cmd = exec.Command(p.program, "-test.run=^TestPlay$", "-test.timeout=0")
	level := ""
	if p.errors = newTail(p.log); p.log != nil {
		level = "3"
	}
	// One goroutine runs at a time, and none is interrupted: as far as can be, a scenario comes out the same twice.
	p.cmd.Env = append(os.Environ(), childVariable+"=1", logVariable+"="+level, "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1,randseednop=0")
	p.cmd.Stderr = p.errors
	// An interrupt at the terminal is for the parent.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.outcomes = make(chan outcome)
	go receive(out, p.outcomes, p.errors)
	return nil
}

// receive reads outcomes until the process ends. What else it prints, the test framework's words about a panic for instance, goes to the others.
func receive(out io.Reader, outcomes chan<- outcome, others io.Writer) {
	defer close(outcomes)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		var o outcome
		if bytes.HasPrefix(line, []byte("{")) && json.Unmarshal(line, &o) == nil {
			outcomes <- o
		} else {
			others.Write(line) //nolint:errcheck,gosec // in memory
		}
		if err != nil {
			return
		}
	}
}

// close ends the process.
func (p *player) close() {
	if p.cmd == nil || p.cmd.Process == nil {
		p.cmd = nil
		return
	}
	p.cmd.Process.Kill() //nolint:errcheck,gosec // it may have ended
	for range p.outcomes {
	}
	p.cmd.Wait() //nolint:errcheck,gosec // it was killed
	p.cmd = nil
}

// tail keeps the first lines of what is written; those of a panic tell the most.
type tail struct {
	also io.Writer
	kept strings.Builder
}

const mostKept = 8 << 10

func newTail(also io.Writer) *tail { return &tail{also: also} }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	if t.also != nil {
		t.also.Write(p) //nolint:errcheck,gosec // it is for reading along
	}
	t.kept.Write(p[:min(len(p), max(0, mostKept-t.kept.Len()))])
	return len(p), nil
}

func (t *tail) String() string { return t.kept.String() }
