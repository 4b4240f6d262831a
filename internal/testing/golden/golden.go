// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden runs text tables: files under testdata in which each case is a command, the lines that describe its
// world, "----", and what comes out, with prose between the cases. A reviewer who reads no Go can check them. The flag
// -rewrite writes the outputs anew.
package golden

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/caldera-scheduler/caldera/pkg/resource"
)

// Case is one case of a file.
type Case struct {
	// Command is the first word of the case; Options are the "key=value" that follow it on the same line.
	Command string
	Options *Line
	// Lines are the input.
	Lines []*Line

	t    *testing.T
	data *datadriven.TestData
}

// Line is a line of input: words, then "key=value" attributes.
type Line struct {
	words []string
	attrs map[string]string
	read  map[string]bool
	c     *Case
}

// Walk runs the cases of testdata/<file>.txt. A command that is not in run, and an attribute that nobody asked for, fail.
func Walk(t *testing.T, file string, run map[string]func(*Case) string) {
	t.Helper()
	datadriven.RunTest(t, "testdata/"+file+".txt", func(t *testing.T, data *datadriven.TestData) string {
		t.Helper()
		c := &Case{Command: data.Cmd, t: t, data: data}
		fn := run[data.Cmd]
		if fn == nil {
			c.Fatalf("no command %q", data.Cmd)
		}
		return c.run(fn)
	})
}

// Run runs a case that is in no file, of which input is the lines before "----".
func Run(t *testing.T, input string, fn func(*Case) string) string {
	t.Helper()
	return (&Case{t: t, data: &datadriven.TestData{Pos: t.Name(), Input: input}}).run(fn)
}

// run reads the lines of the case and has it answered.
func (c *Case) run(fn func(*Case) string) string {
	c.t.Helper()
	c.Options = &Line{words: []string{c.Command}, attrs: map[string]string{}, read: map[string]bool{}, c: c}
	for _, arg := range c.data.CmdArgs {
		c.Options.attrs[arg.Key] = strings.Join(arg.Vals, ",")
	}
	for text := range strings.Lines(c.data.Input) {
		if fields := strings.Fields(text); len(fields) > 0 {
			c.Lines = append(c.Lines, c.line(fields))
		}
	}
	out := fn(c)
	for _, l := range append([]*Line{c.Options}, c.Lines...) {
		for key := range l.attrs {
			if !l.read[key] {
				c.Fatalf("%q has an attribute %q that means nothing", strings.Join(l.words, " "), key)
			}
		}
	}
	return out
}

func (c *Case) line(fields []string) *Line {
	l := &Line{attrs: map[string]string{}, read: map[string]bool{}, c: c}
	for _, field := range fields {
		if key, value, ok := strings.Cut(field, "="); ok {
			l.attrs[key] = value
		} else {
			l.words = append(l.words, field)
		}
	}
	return l
}

// Fatalf fails the case and names its place in the file.
func (c *Case) Fatalf(format string, args ...any) {
	c.t.Helper()
	c.t.Fatalf(c.data.Pos+": "+format, args...)
}

// T is the test of the case.
func (c *Case) T() *testing.T { return c.t }

// Word returns the i-th word of the line, empty when it has fewer.
func (l *Line) Word(i int) string {
	if i < len(l.words) {
		return l.words[i]
	}
	return ""
}

// Words returns the words from the i-th on.
func (l *Line) Words(i int) []string { return l.words[min(i, len(l.words)):] }

// Has reports whether an attribute is given.
func (l *Line) Has(key string) bool {
	_, ok := l.attrs[key]
	l.read[key] = true
	return ok
}

// Text returns an attribute, or what is meant without it.
func (l *Line) Text(key, absent string) string {
	if !l.Has(key) {
		return absent
	}
	return l.attrs[key]
}

// All returns all attributes.
func (l *Line) All() map[string]string {
	for key := range l.attrs {
		l.read[key] = true
	}
	return l.attrs
}

// Int returns an attribute that is a whole number, or what is meant without it.
func (l *Line) Int(key string, absent int) int {
	if !l.Has(key) {
		return absent
	}
	n, err := strconv.Atoi(l.attrs[key])
	if err != nil {
		l.c.Fatalf("%s: %v", key, err)
	}
	return n
}

// Float returns an attribute that is a number, or what is meant without it.
func (l *Line) Float(key string, absent float64) float64 {
	if !l.Has(key) {
		return absent
	}
	f, err := strconv.ParseFloat(l.attrs[key], 64)
	if err != nil {
		l.c.Fatalf("%s: %v", key, err)
	}
	return f
}

// Duration returns an attribute that is a duration, or what is meant without it.
func (l *Line) Duration(key string, absent time.Duration) time.Duration {
	if !l.Has(key) {
		return absent
	}
	d, err := time.ParseDuration(l.attrs[key])
	if err != nil {
		l.c.Fatalf("%s: %v", key, err)
	}
	return d
}

// Split returns the parts of an attribute, nil when it is not given.
func (l *Line) Split(key, separator string) []string {
	if !l.Has(key) {
		return nil
	}
	return strings.Split(l.attrs[key], separator)
}

// List returns an attribute that is a list of quantities, "cpu=2,memory=4Gi"; nil when it is not given.
func (l *Line) List(key string) corev1.ResourceList {
	if !l.Has(key) {
		return nil
	}
	list := corev1.ResourceList{}
	for part := range strings.SplitSeq(l.attrs[key], ",") {
		name, text, _ := strings.Cut(part, "=")
		if name == "" && text == "" {
			continue
		}
		quantity, err := apiresource.ParseQuantity(text)
		if err != nil {
			l.c.Fatalf("%s of %s: %v", key, name, err)
		}
		list[corev1.ResourceName(name)] = quantity
	}
	return list
}

// Amounts returns an attribute that is a list of quantities as a vector; nil when it is not given.
func (l *Line) Amounts(key string) resource.Vector {
	if !l.Has(key) {
		return nil
	}
	return resource.FromList(l.List(key))
}
