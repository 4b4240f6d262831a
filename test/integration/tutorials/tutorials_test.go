// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tutorials follows the README and the tutorials word for word: each block of a page is run, or the page says why it is not, and what commands write is
// what the page shows. Comments before the blocks say how: see how.
package tutorials_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheReadme(t *testing.T) {
	t.Parallel()
	r := newReader(t, project(t))
	r.hasCluster()
	r.follow("README.md")
}

func TestGettingStarted(t *testing.T) {
	t.Parallel()
	newReader(t, project(t)).follow("docs/getting-started.md")
}

func TestInstall(t *testing.T) {
	t.Parallel()
	r := newReader(t, copied(t))
	r.hasCluster()
	r.follow("docs/install.md")
}

func TestAddingAPlugin(t *testing.T) {
	t.Parallel()
	newReader(t, copied(t)).follow("docs/adding-a-plugin.md")
}

// project is the folder in which a reader is.
func project(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// copied is a copy of the project, for pages that change it.
func copied(t *testing.T) string {
	t.Helper()
	from, to := project(t), t.TempDir()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == ".git" || e.Name() == "_output" {
			continue
		}
		if output, err := exec.CommandContext(t.Context(), "cp", "-a", filepath.Join(from, e.Name()), to).CombinedOutput(); err != nil {
			t.Fatalf("copying %s: %v: %s", e.Name(), err, output)
		}
	}
	return to
}

// reader follows a page.
type reader struct {
	t           *testing.T
	folder      string
	environment []string
	terminals   map[int]*terminal
	// at is the terminal in front of the reader.
	at int
	// either are two names that may have changed places.
	either []string
	// exports are lines "export ..." that a command has written, for terminals that are opened later.
	exports []string
	// wrote is what commands wrote.
	wrote map[string][]string
}

func newReader(t *testing.T, folder string) *reader {
	t.Helper()
	bin := filepath.Join(project(t), "_output", "bin")
	for _, name := range []string{"helm", "kubectl", "kubectl-caldera", "kube-scheduler", "kustomize", "localcluster"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			t.Fatalf("%v: make commands builds it", err)
		}
	}
	return &reader{
		t: t, folder: folder, environment: environment(bin), terminals: map[int]*terminal{}, at: 1,
		wrote: map[string][]string{},
	}
}

// environment is that of a reader who has the commands of a page, and no cluster but those of the page. What the reader builds is built as the tests were, so
// that little is compiled again.
func environment(bin string) []string {
	all := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return strings.HasPrefix(name, "MAKE") || slices.Contains([]string{"MFLAGS", "KUBECONFIG", "PATH", "GOFLAGS", "CGO_ENABLED"}, name)
	})
	return append(all, "KUBECONFIG="+os.DevNull, "PATH="+bin+":"+os.Getenv("PATH"), "GOFLAGS=-trimpath", "CGO_ENABLED=0")
}

// hasCluster gives the reader the cluster that a page takes for granted, with the scheduler that any cluster has.
func (r *reader) hasCluster() {
	r.t.Helper()
	r.terminals, r.exports, r.at = map[int]*terminal{}, nil, 8
	if err := r.do(step{command: "localcluster up --nodes 3 --node cpu=8,memory=32Gi", want: []string{"...", "Stop with Ctrl-C."}}, how{stays: true}); err != nil {
		r.t.Fatalf("starting a cluster: %v", err)
	}
	r.at = 9
	if err := r.do(step{command: `kube-scheduler --kubeconfig="$KUBECONFIG" --leader-elect=false --secure-port=0`}, how{stays: true}); err != nil {
		r.t.Fatalf("starting its scheduler: %v", err)
	}
	r.at = 1
}

// follow does what a page says, block by block, until something is not as it says.
func (r *reader) follow(page string) {
	r.t.Helper()
	data, err := os.ReadFile(filepath.Join(r.folder, page))
	if err != nil {
		r.t.Fatal(err)
	}
	blocks, err := blocksOf(string(data))
	if err != nil {
		r.t.Fatalf("%s: %v", page, err)
	}
	for _, b := range blocks {
		if err := r.block(b); err != nil {
			r.t.Fatalf("%s:%d: %v", page, b.line, err)
		}
	}
}

func (r *reader) block(b block) error {
	switch {
	case b.notRun != "":
		return nil
	case b.file != "":
		return r.write(b)
	case b.output != "":
		return r.compare(b)
	case b.language != "console":
		return errors.New("what is a reader to do with it? Say so in a comment before it: run, not run, output of, or file")
	}
	if b.otherCluster {
		r.hasCluster()
	}
	if b.either != nil {
		r.either = b.either
	}
	if b.terminal != 0 {
		r.at = b.terminal
	}
	steps, err := b.steps()
	if err != nil {
		return err
	}
	for i, s := range steps {
		h := b.how
		h.stays = h.stays && i == len(steps)-1
		r.t.Logf("line %d, terminal %d: %s", b.line, r.at, s.command)
		if err := r.do(s, h); err != nil {
			return fmt.Errorf("%s: %w", s.command, err)
		}
	}
	return nil
}

// write writes the file that a block is.
func (r *reader) write(b block) error {
	name := filepath.Join(r.folder, b.file)
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(strings.Join(b.text, "\n")+"\n"), 0o600)
}

// compare compares a block with what a command wrote before.
func (r *reader) compare(b block) error {
	got, ok := r.wrote[b.output]
	if !ok {
		return fmt.Errorf("%s was not run before", b.output)
	}
	want := append([]string{"..."}, append(b.text, "...")...)
	if line, no := missing(want, got, r.either); no {
		return fmt.Errorf("%s: %w", b.output, differs(line, got))
	}
	return nil
}

// do runs a command of a page. One that only looks is repeated for a while, as a reader does; the error has all that it wrote.
func (r *reader) do(s step, h how) error {
	name, _, _ := strings.Cut(s.command, " #")
	var seen []string
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		got, err := r.typed(s, h)
		r.wrote[strings.TrimSpace(name)] = got
		if err == nil && s.want == nil {
			r.t.Log("it wrote what the page does not show:\n" + strings.Join(got, "\n"))
		}
		if err != nil || s.want == nil || h.stays {
			return err
		}
		line, no := missing(s.want, got, r.either)
		if !no {
			return nil
		}
		if seen = append(seen, got...); !looks(s.command) || time.Now().After(end) {
			return differs(line, seen)
		}
	}
}

// differs is the error of a command that wrote something else than the page says.
func differs(line string, got []string) error {
	return fmt.Errorf("the page says %q, but it wrote\n%s", line, strings.Join(got, "\n"))
}

// looks says whether a command only looks at the cluster: a reader looks again.
func looks(command string) bool {
	for _, verb := range []string{"kubectl get ", "kubectl describe ", "kubectl caldera ", "_output/bin/kubectl-caldera "} {
		if strings.HasPrefix(command, verb) {
			return true
		}
	}
	return false
}

// typed types a command where the reader is.
func (r *reader) typed(s step, h how) ([]string, error) {
	if h.onScreen {
		return screen(r.folder, r.environment, s.command)
	}
	in := r.terminals[r.at]
	if in == nil {
		in = open(r.t, r.folder, r.environment)
		r.terminals[r.at] = in
		for _, line := range r.exports {
			if _, err := in.run(line); err != nil {
				return nil, err
			}
		}
	}
	if !h.stays {
		return in.run(s.command)
	}
	got, err := in.stay(s.command, s.want)
	for _, line := range got {
		if strings.HasPrefix(line, "export ") {
			r.exports = append(r.exports, line)
		}
	}
	return got, err
}
