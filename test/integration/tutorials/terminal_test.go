// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package tutorials_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// finished is what a shell writes after each command, with its exit status.
	finished = "caldera-tutorial-finished"
	// patience is how long a command may take, and one that stays until it has written what the page says. Builds are commands, too.
	patience = 10 * time.Minute
)

// terminal is a shell in which the commands of a page are typed.
type terminal struct {
	program *exec.Cmd
	in      io.WriteCloser
	out     written
}

// shell is a shell, run by another command if one is given.
func shell(by ...string) *exec.Cmd {
	all := slices.Concat(by, []string{"bash", "--noprofile", "--norc"})
	return exec.Command(all[0], all[1:]...) //nolint:gosec // What pages say is what is run.
}

// open starts a shell in a folder. It ends with the test, and all that was started from it.
func open(t *testing.T, folder string, environment []string) *terminal {
	t.Helper()
	// It gives way to other tests: readers of pages have patience with what they build.
	s := &terminal{program: shell("nice")}
	s.program.Dir, s.program.Env, s.program.SysProcAttr = folder, environment, &syscall.SysProcAttr{Setpgid: true}
	var err error
	if s.in, err = s.program.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.program.Stdout, s.program.Stderr = write, write
	if err := s.program.Start(); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	var reading sync.WaitGroup
	reading.Go(func() { s.out.read(read) })
	t.Cleanup(func() {
		// As Ctrl-C: what stays ends by itself, and with it what it has started.
		_ = syscall.Kill(-s.program.Process.Pid, syscall.SIGINT)
		_ = s.in.Close()
		s.end(t)
		reading.Wait()
		_ = read.Close()
	})
	return s
}

// end waits for the shell, and kills it with all that it has started if it does not end.
func (s *terminal) end(t *testing.T) {
	ended := make(chan error, 1)
	go func() { ended <- s.program.Wait() }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("a terminal's last command does not end with Ctrl-C")
		_ = syscall.Kill(-s.program.Process.Pid, syscall.SIGKILL)
		<-ended
	}
}

// run types a command and returns what it wrote.
func (s *terminal) run(command string) ([]string, error) {
	from := s.out.length()
	if _, err := fmt.Fprintf(s.in, "%s\nprintf '\\n%s %%d\\n' $?\n", command, finished); err != nil {
		return nil, fmt.Errorf("typing it: %w", err)
	}
	var got []string
	status := ""
	err := s.out.await(func(lines []string) bool {
		for i, line := range lines[from:] {
			if code, ok := strings.CutPrefix(line, finished+" "); ok {
				got, status = lines[from:from+i], code
				return true
			}
		}
		return false
	})
	if err == nil && status != "0" {
		err = fmt.Errorf("exit status %s", status)
	}
	if err != nil {
		return got, fmt.Errorf("%w, after\n%s", err, strings.Join(s.out.since(from), "\n"))
	}
	return got, nil
}

// stay types a command that goes on, and waits until it has written what the page says.
func (s *terminal) stay(command string, want []string) ([]string, error) {
	from := s.out.length()
	want = append(slices.Clone(want), "...")
	if _, err := fmt.Fprintln(s.in, command); err != nil {
		return nil, fmt.Errorf("typing it: %w", err)
	}
	err := s.out.await(func(lines []string) bool {
		_, no := missing(want, lines[from:], nil)
		return !no
	})
	got := s.out.since(from)
	if err != nil {
		what, _ := missing(want, got, nil)
		return got, fmt.Errorf("%w: it did not write %q, but\n%s", err, what, strings.Join(got, "\n"))
	}
	return got, nil
}

// written is what was written in a terminal.
type written struct {
	mu    sync.Mutex
	lines []string
	ended bool
}

func (w *written) read(from io.Reader) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		w.mu.Lock()
		w.lines = append(w.lines, lines.Text())
		w.mu.Unlock()
	}
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
}

func (w *written) length() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.lines)
}

func (w *written) since(from int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.lines[from:]...)
}

// await waits until what was written is enough.
func (w *written) await(enough func([]string) bool) error {
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		w.mu.Lock()
		ok, ended := enough(w.lines), w.ended
		w.mu.Unlock()
		switch {
		case ok:
			return nil
		case ended:
			return errors.New("the terminal was closed")
		case time.Now().After(end):
			return fmt.Errorf("not within %v", patience)
		}
	}
}

// escapes are what a program says to a terminal, such as to go up some lines or to write in a color.
var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// screen runs a command that writes to a terminal of 200 columns, and returns all lines that were ever on it.
func screen(folder string, environment []string, command string) ([]string, error) {
	near, far, err := pty()
	if err != nil {
		return nil, fmt.Errorf("opening a terminal: %w", err)
	}
	defer near.Close() //nolint:errcheck // Nothing was written to it.
	program := shell()
	program.Args = append(program.Args, "-c", command)
	program.Dir, program.Env, program.Stdout, program.Stderr = folder, slices.Concat(environment, []string{"TERM=xterm-256color"}), far, far
	if err := program.Start(); err != nil {
		return nil, fmt.Errorf("starting it: %w", err)
	}
	_ = far.Close()
	// It ends with an error, as nobody is at the other end any more.
	all, _ := io.ReadAll(near)
	lines := strings.Split(strings.ReplaceAll(escapes.ReplaceAllString(string(all), ""), "\r", ""), "\n")
	if err := program.Wait(); err != nil {
		return lines, fmt.Errorf("%w, after\n%s", err, strings.Join(lines, "\n"))
	}
	return lines, nil
}

// pty opens both ends of a terminal.
func pty() (near, far *os.File, err error) {
	if near, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			_ = near.Close()
		}
	}()
	fd := int(near.Fd()) //nolint:gosec // A file descriptor.
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, fmt.Errorf("unlocking it: %w", err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return nil, nil, fmt.Errorf("reading its number: %w", err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 60, Col: 200}); err != nil {
		return nil, nil, fmt.Errorf("setting its size: %w", err)
	}
	far, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	return near, far, err
}
