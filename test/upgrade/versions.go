// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/caldera-scheduler/caldera/pkg/localcluster/schedulerprocess"
)

// beforeReleases is what is upgraded from while there is no release: a commit of the main branch. From the first release on it is not used.
const beforeReleases = "8dea153c883bc3d43ca7345f0fb1b667facf4cb2"

// fence is a file of all versions whose leader, when it wakes up after its lease has run out, does nothing any more. Those before it are known to put more
// pods on nodes than there is room for then.
const fence = "pkg/scheduler/app/tenure.go"

// errNoHistory: the earlier version is not to be had here.
var errNoHistory = errors.New("the earlier version is not in this repository: " +
	"the whole history is needed (git fetch --tags --unshallow), or --from has to name a commit that is there")

// version is one of the two schedulers, with the manifests that it is shipped with.
type version struct {
	// name is what it is called in reports.
	name      string
	binary    string
	manifests fs.FS
	// crds is the directory of its definitions.
	crds string
	// fenced: a leader that wakes up after its lease has run out binds and evicts nobody.
	fenced bool
}

func newVersion(name, binary, manifests string, fenced bool) *version {
	return &version{name: name, binary: binary, manifests: os.DirFS(manifests), crds: filepath.Join(manifests, "crds"), fenced: fenced}
}

// present is the version of the working tree.
func present(ctx context.Context, dir string) (*version, error) {
	root, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	binary, err := schedulerprocess.Build(ctx, dir)
	if err != nil {
		return nil, err
	}
	return newVersion("the new version", binary, filepath.Join(root, "manifests"), true), nil
}

// earlier is the version that is upgraded from: its manifests, and its scheduler, which is built if it was not before.
func earlier(ctx context.Context, from string) (*version, error) {
	root, name, commit, err := find(ctx, from)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(root, "_output", "upgrade", commit)
	_, err = git(ctx, root, "cat-file", "-e", commit+":"+fence)
	v := newVersion(name, filepath.Join(dir, "kube-scheduler"), filepath.Join(dir, "manifests"), err == nil)
	if _, err := os.Stat(v.binary); err == nil {
		return v, nil
	}
	if err := construct(ctx, root, commit, dir); err != nil {
		return nil, fmt.Errorf("building %s: %w", name, err)
	}
	return v, nil
}

// find finds the root of the repository, and what is upgraded from.
func find(ctx context.Context, from string) (root, name, commit string, err error) {
	if root, err = git(ctx, ".", "rev-parse", "--show-toplevel"); err != nil {
		return "", "", "", fmt.Errorf("%w: %w", errNoHistory, err)
	}
	name = from
	if name == "" {
		// On the commit of a release, the one before it.
		if name, err = git(ctx, root, "describe", "--tags", "--abbrev=0", "--match=v[0-9]*", "HEAD^"); err != nil {
			name = beforeReleases
		}
	}
	if commit, err = git(ctx, root, "rev-parse", "--verify", "--quiet", name+"^{commit}"); err != nil {
		return "", "", "", fmt.Errorf("%q: %w", name, errNoHistory)
	}
	if strings.HasPrefix(commit, name) {
		name = commit[:10]
	}
	return root, name, commit, nil
}

// construct builds the scheduler of a commit as its own Makefile says, and keeps it in a directory with its manifests.
func construct(ctx context.Context, root, commit, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	// Others may be at it. Whoever comes first has the directory.
	kept, err := os.MkdirTemp(filepath.Dir(dir), "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(kept) //nolint:errcheck // it is there only after an error, or if others came first
	// Outside of the repository, which is none of that version's.
	sources, err := os.MkdirTemp("", "upgrade-from-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(sources) //nolint:errcheck // a leftover directory does no harm
	if err := errors.Join(unpack(ctx, root, commit, sources), unpack(ctx, root, commit, kept, "manifests")); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", sources, "BIN="+kept, filepath.Join(kept, "kube-scheduler"))
	// A make around this one has flags and variables of its own.
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKEOVERRIDES=", "MAKELEVEL=")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("running make: %w\n%s", err, output)
	}
	if err := os.Rename(kept, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// unpack writes the files of a commit, or those below some paths, into a directory. Symbolic links are left out: no binary needs one.
func unpack(ctx context.Context, root, commit, dir string, paths ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", root, "archive", "--format=tar", commit, "--"}, paths...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	extracted := extract(tar.NewReader(out), dir)
	_, _ = io.Copy(io.Discard, out) // so that git ends also if extracting did not
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("running git archive: %w\n%s", err, said.Bytes())
	}
	return extracted
}

func extract(files *tar.Reader, dir string) error {
	root, err := os.OpenRoot(dir) // no name leads out of it
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it any more
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch header.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(filepath.Clean(header.Name), 0o755)
		case tar.TypeReg:
			err = write(root, header, files)
		}
		if err != nil {
			return fmt.Errorf("unpacking %s: %w", header.Name, err)
		}
	}
}

func write(root *os.Root, header *tar.Header, content io.Reader) error {
	f, err := root.OpenFile(header.Name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, header.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	return errors.Join(err, f.Close())
}

// git runs git in a directory and returns what it prints.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("running git %s: %w: %s", args[0], err, bytes.TrimSpace(said.Bytes()))
	}
	return string(bytes.TrimSpace(out)), nil
}
