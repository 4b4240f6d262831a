// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package datadir_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/caldera-scheduler/caldera/cmd/localcluster/datadir"
)

func open(t *testing.T, path string) *datadir.Dir {
	t.Helper()
	d, err := datadir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func closeDir(t *testing.T, d *datadir.Dir) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestTemporaryDirectoryIsPrivateAndGoesAway(t *testing.T) {
	t.Parallel()
	d := open(t, "")
	info, err := os.Stat(d.Path())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode is %v, want 0700", info.Mode().Perm())
	}
	closeDir(t, d)
	if _, err := os.Stat(d.Path()); !os.IsNotExist(err) {
		t.Errorf("%s after Close: %v", d.Path(), err)
	}
}

func TestNamedDirectoryStaysAndIsUsedByOneAtATime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "dir")
	d := open(t, path)
	if _, err := datadir.Open(path); err == nil || !strings.Contains(err.Error(), "used by another running localcluster") {
		t.Errorf("opening it twice: %v", err)
	}
	closeDir(t, d)
	closeDir(t, open(t, path))
}

func TestSocketsOfALongPathAreElsewhere(t *testing.T) {
	t.Parallel()
	d := open(t, filepath.Join(t.TempDir(), strings.Repeat("long", 30)))
	socket := d.Socket("etcd")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	listener.Close() //nolint:errcheck // was only opened to see that it can be
	closeDir(t, d)
	if _, err := os.Stat(filepath.Dir(socket)); !os.IsNotExist(err) {
		t.Errorf("directory of the sockets after Close: %v", err)
	}
}

func TestPortIsThatOfTheLastStartUnlessBusy(t *testing.T) {
	t.Parallel()
	d := open(t, filepath.Join(t.TempDir(), "dir"))
	defer closeDir(t, d)
	address := func(port int) (string, func()) {
		listener, err := d.Listen(port)
		if err != nil {
			t.Fatal(err)
		}
		return listener.Addr().String(), func() { listener.Close() } //nolint:errcheck // the address is what matters
	}
	first, closeFirst := address(0)
	other, closeOther := address(0)
	if first == other {
		t.Errorf("%s was given twice", first)
	}
	closeFirst()
	closeOther()
	again, closeAgain := address(0)
	defer closeAgain()
	if again != other {
		t.Errorf("port of %s, want that of the last start, %s", again, other)
	}
	taken := again[strings.LastIndex(again, ":")+1:]
	port, err := strconv.Atoi(taken)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Listen(port); err == nil || !strings.Contains(err.Error(), "--port "+taken) {
		t.Errorf("asking for the busy port %s: %v", taken, err)
	}
}
