// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// The exit statuses besides 0: something did not behave as it should; a signal came before that could be told.
const (
	exitFailed      = 1
	exitInterrupted = 130
)

// signalGrace is how much later than a child process this one may learn of a Ctrl-C, which the terminal sends to both.
const signalGrace = 500 * time.Millisecond

// ErrInterrupted ends what a signal stopped before its verdict.
var ErrInterrupted = errors.New("interrupted")

// Main runs a command until it or a signal ends it, and ends the process.
func Main(cmd *cobra.Command) {
	// Further signals change nothing: what was started is being stopped already, which takes seconds.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := cmd.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
	}
	os.Exit(status(err))
}

func status(err error) int {
	switch {
	case errors.Is(err, ErrInterrupted):
		return exitInterrupted
	case err != nil:
		return exitFailed
	}
	return 0
}

// Interrupted reports whether a signal is why something ended.
func Interrupted(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(signalGrace):
		return false
	}
}

// DivertLogs writes what libraries log to a file instead of the terminal, until the program ends.
func DivertLogs(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening a log: %w", err)
	}
	var flags flag.FlagSet
	klog.InitFlags(&flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			return fmt.Errorf("setting klog's %s: %w", name, err)
		}
	}
	klog.SetOutput(f)
	return nil
}

// Progress tells what is being done and since when. As a writer it passes on what others say of their start.
type Progress struct {
	out   io.Writer
	clock clock.PassiveClock
	begun time.Time
	quiet atomic.Bool
}

// NewProgress counts from now.
func NewProgress(out io.Writer, c clock.PassiveClock) *Progress {
	return &Progress{out: out, clock: c, begun: c.Now()}
}

// Write implements io.Writer.
func (p *Progress) Write(text []byte) (int, error) {
	if p.quiet.Load() {
		return len(text), nil
	}
	return p.out.Write(text)
}

// Say tells what is being done from now on.
func (p *Progress) Say(format string, a ...any) {
	fmt.Fprintf(p.out, "%6.1fs  %s\n", p.clock.Since(p.begun).Seconds(), fmt.Sprintf(format, a...))
}

// Hush drops what others say from now on, which would be written over the screen.
func (p *Progress) Hush() { p.quiet.Store(true) }

// Hushed reports whether Hush was called.
func (p *Progress) Hushed() bool { return p.quiet.Load() }
