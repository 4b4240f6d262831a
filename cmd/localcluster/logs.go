// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// tailLines is how much of the log is shown when something fails.
const tailLines = 20

// logFile receives what the components log. Each of them writes whole lines.
type logFile struct {
	io.Writer          // the file, and the terminal if the user wants that
	terminal  *os.File // the standard error the process was started with
	file      *os.File
}

// redirectLogs sends everything the components write to the file: klog, the standard logger, and what goes straight to
// standard error, such as the log of kube-apiserver's etcd client. The terminal gets progress, errors and crashes.
func redirectLogs(path string, verbose bool) (*logFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	terminal, err := redirectStderr(file)
	if err != nil {
		return nil, fmt.Errorf("redirecting standard error: %w", err)
	}
	l := &logFile{Writer: file, terminal: terminal, file: file}
	if verbose {
		l.Writer = io.MultiWriter(file, terminal)
	}
	os.Stderr = terminal
	if err := debug.SetCrashOutput(terminal, debug.CrashOptions{}); err != nil {
		return nil, fmt.Errorf("redirecting crash reports: %w", err)
	}
	log.SetOutput(l)
	if err := l.redirectKlog(); err != nil {
		return nil, fmt.Errorf("configuring klog: %w", err)
	}
	return l, nil
}

func (l *logFile) redirectKlog() error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			return err
		}
	}
	klog.SetOutput(l)
	return nil
}

// Close flushes the log.
func (l *logFile) Close() {
	klog.Flush()
	l.file.Close() //nolint:errcheck // nothing can be done about a log that cannot be closed
}

// showTail writes the last lines of the log to the terminal.
func (l *logFile) showTail() {
	klog.Flush()
	content, err := os.ReadFile(l.file.Name())
	if err != nil || len(content) == 0 {
		return
	}
	lines := bytes.SplitAfter(bytes.TrimRight(content, "\n"), []byte("\n"))
	lines = lines[max(0, len(lines)-tailLines):]
	fmt.Fprintf(l.terminal, "Last lines of %s:\n%s\n", l.file.Name(), bytes.Join(lines, nil))
}
