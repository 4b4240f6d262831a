// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package reload_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caldera-scheduler/caldera/pkg/scheduler/reload"
)

// TestWaysOfReplacingAFile: a ConfigMap is mounted as links to files in a directory that is a link itself, which is replaced.
func TestWaysOfReplacingAFile(t *testing.T) {
	dir := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{dir}, parts...)...) }
	do := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(content string, parts ...string) error { return os.WriteFile(at(parts...), []byte(content), 0o600) }
	do(os.Mkdir(at("v1"), 0o700), write("one", "v1", "conf"), os.Symlink("v1", at("data")), os.Symlink("data/conf", at("conf")))
	r := &reload.Reloader{File: at("conf"), Content: []byte("one")}
	for _, step := range []struct {
		name   string
		change func()
		// want is the new content, empty for none; problem is part of an error.
		want, problem string
	}{
		{"nothing", func() {}, "", ""},
		{"the directory is another one", func() {
			do(os.Mkdir(at("v2"), 0o700), write("two", "v2", "conf"), os.Symlink("v2", at("next")), os.Rename(at("next"), at("data")))
		}, "two", ""},
		{"nothing again", func() {}, "", ""},
		{"a file is put in its place", func() { do(write("three", "edited"), os.Rename(at("edited"), at("conf"))) }, "three", ""},
		{"it is written to", func() { do(write("four", "conf")) }, "four", ""},
		{"it is gone", func() { do(os.Remove(at("conf"))) }, "", "no such file"},
		{"it is still gone", func() {}, "", ""},
		{"it is a directory", func() { do(os.Mkdir(at("conf"), 0o700)) }, "", "is a directory"},
		{"it is back as it was", func() { do(os.Remove(at("conf")), write("four", "conf")) }, "", ""},
		{"it is gone again", func() { do(os.Remove(at("conf"))) }, "", "no such file"},
		{"it is empty", func() { do(write("", "conf")) }, "empty", ""},
	} {
		step.change()
		content, news, err := r.Look()
		got := string(content)
		if got == "" {
			got = "empty"
		}
		if news != (step.want != "") || news && got != step.want {
			t.Errorf("%s: got %q, new: %v, want %q", step.name, content, news, step.want)
		}
		if (err != nil) != (step.problem != "") || err != nil && !strings.Contains(err.Error(), step.problem) {
			t.Errorf("%s: error is %v, want one with %q", step.name, err, step.problem)
		}
	}
}
