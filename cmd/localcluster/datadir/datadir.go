// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package datadir owns the directory of one local control plane: where each file lives, the lock that keeps a second
// process out, and the removal of temporary directories.
package datadir

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// maxSocketPath is below sizeof(sockaddr_un.sun_path) of Linux (108) and macOS (104).
const maxSocketPath = 100

// Dir is an opened and locked data directory.
type Dir struct {
	path      string
	temporary bool
	lock      *fileutil.LockedFile
	sockets   string // directory of the etcd sockets, equal to path unless that is too long
}

// Open locks path, creating it if needed. An empty path means a fresh temporary directory, in memory where the
// system offers one, which Close removes.
func Open(path string) (*Dir, error) {
	d := &Dir{path: path, temporary: path == ""}
	if err := d.create(); err != nil {
		return nil, fmt.Errorf("preparing data directory: %w", err)
	}
	lock, err := fileutil.TryLockFile(d.file("lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, fmt.Errorf("--dir %s: used by another running localcluster; stop it or choose another directory", d.path)
	}
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", d.path, err)
	}
	d.lock = lock
	if err := d.placeSockets(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Dir) create() error {
	if d.temporary {
		path, err := tempDir()
		d.path, d.sockets = path, path
		return err
	}
	abs, err := filepath.Abs(d.path)
	if err != nil {
		return err
	}
	d.path, d.sockets = abs, abs
	return os.MkdirAll(abs, 0o700)
}

// tempDir prefers tmpfs: etcd's data then never touches a disk.
func tempDir() (string, error) {
	if path, err := os.MkdirTemp("/dev/shm", "localcluster-"); err == nil {
		return path, nil
	}
	return os.MkdirTemp("", "localcluster-")
}

func (d *Dir) placeSockets() error {
	if len(d.file("etcd-client.sock")) <= maxSocketPath {
		return nil
	}
	path, err := os.MkdirTemp("", "localcluster-")
	if err != nil {
		return fmt.Errorf("creating socket directory: %w", err)
	}
	d.sockets = path
	return nil
}

// Close unlocks the directory and removes what was temporary.
func (d *Dir) Close() error {
	var errs []error
	if d.sockets != d.path {
		errs = append(errs, os.RemoveAll(d.sockets))
	}
	if d.temporary {
		errs = append(errs, os.RemoveAll(d.path))
	}
	return errors.Join(append(errs, d.lock.Close())...)
}

func (d *Dir) file(name string) string { return filepath.Join(d.path, name) }

// Path is the absolute path of the directory.
func (d *Dir) Path() string { return d.path }

// Etcd holds etcd's data.
func (d *Dir) Etcd() string { return d.file("etcd") }

// Certificates holds the keys and certificates.
func (d *Dir) Certificates() string { return d.file("pki") }

// Kubeconfig is the administrator's kubeconfig.
func (d *Dir) Kubeconfig() string { return d.file("kubeconfig") }

// Log is where etcd, kube-apiserver, the controllers and the kubelets write.
func (d *Dir) Log() string { return d.file("localcluster.log") }

// Socket is the path of a unix socket.
func (d *Dir) Socket(name string) string { return filepath.Join(d.sockets, name+".sock") }

// Listen opens the API server's port on the loopback address. With port 0 it takes the port of the last start, so that
// kubeconfigs stay valid, or a free one if that is busy.
func (d *Dir) Listen(port int) (net.Listener, error) {
	if port != 0 {
		listener, err := listen(port)
		if err != nil {
			return nil, fmt.Errorf("--port %d: %w; choose another port, or 0 for a free one", port, err)
		}
		return listener, d.rememberPort(listener)
	}
	if last, ok := d.lastPort(); ok {
		if listener, err := listen(last); err == nil {
			return listener, nil
		}
	}
	listener, err := listen(0)
	if err != nil {
		return nil, fmt.Errorf("finding a free port: %w", err)
	}
	return listener, d.rememberPort(listener)
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

func (d *Dir) lastPort() (int, bool) {
	content, err := os.ReadFile(d.file("port"))
	if err != nil {
		return 0, false
	}
	port, err := strconv.Atoi(strings.TrimSpace(string(content)))
	return port, err == nil
}

func (d *Dir) rememberPort(listener net.Listener) error {
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return fmt.Errorf("reading port of %s: %w", listener.Addr(), err)
	}
	if err := os.WriteFile(d.file("port"), []byte(port+"\n"), 0o600); err != nil {
		return fmt.Errorf("remembering port: %w", err)
	}
	return nil
}
