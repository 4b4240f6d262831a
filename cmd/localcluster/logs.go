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

	"k8s.io/klog/v2"
)

// tailLines is how much of the log is shown when a start fails.
const tailLines = 20

// logFile receives what the components log. Each of them writes whole lines.
type logFile struct {
	io.Writer
	file *os.File
}

// redirectLogs opens the log file and points klog and the standard logger at it.
func redirectLogs(path string, verbose bool, stderr io.Writer) (*logFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening log: %w", err)
	}
	l := &logFile{Writer: file, file: file}
	if verbose {
		l.Writer = io.MultiWriter(file, stderr)
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			return nil, fmt.Errorf("configuring klog: %w", err)
		}
	}
	klog.SetOutput(l)
	log.SetOutput(l)
	return l, nil
}

// Close flushes the log.
func (l *logFile) Close() {
	klog.Flush()
	l.file.Close() //nolint:errcheck,gosec // nothing can be done about a log that cannot be closed
}

// copyTail writes the last lines of the log to w.
func (l *logFile) copyTail(w io.Writer) {
	klog.Flush()
	content, err := os.ReadFile(l.file.Name())
	if err != nil {
		return
	}
	lines := bytes.SplitAfter(bytes.TrimRight(content, "\n"), []byte("\n"))
	lines = lines[max(0, len(lines)-tailLines):]
	fmt.Fprintf(w, "Last lines of the log:\n%s\n", bytes.Join(lines, nil)) //nolint:errcheck // best effort on stderr
}
