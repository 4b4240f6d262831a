// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// The program that opens a browser is told of a file that nobody else can read: arguments are seen by all users of a machine.
func TestABrowserIsOpenedWithoutTellingOthersTheSecret(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("another program opens files on " + runtime.GOOS)
	}
	dir := t.TempDir()
	told := filepath.Join(dir, "told")
	// It is written elsewhere first, so that whoever finds it finds all of it.
	script := "#!/bin/sh\necho \"$@\" > " + told + ".new\nmv " + told + ".new " + told + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	const address = "http://127.0.0.1:8090/?token=SECRET&x=1"
	remove, err := show(t.Context(), address)
	defer remove()
	if err != nil {
		t.Fatal(err)
	}
	var file string
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		data, err := os.ReadFile(told)
		file = strings.TrimSpace(string(data))
		return err == nil, nil
	})
	if err != nil || strings.Contains(file, "SECRET") {
		t.Fatalf("the program was told %q: %v", file, err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v: %v", info, err)
	}
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), `content="0;url=http://127.0.0.1:8090/?token=SECRET&amp;x=1"`) {
		t.Errorf("the file has %v\n%s", err, data)
	}
	remove()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("in the end the file is there: %v", err)
	}
}
