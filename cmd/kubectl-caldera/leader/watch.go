// Copyright The Caldera Authors.
// SPDX-License-Identifier: Apache-2.0

package leader

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// shortest is how often something is shown again at most. Views are made once a second.
const shortest = time.Second

// Watch says whether and how often something is shown again.
type Watch struct {
	again bool
	// live: it is shown again and again on a terminal without being asked to.
	live  bool
	every time.Duration
}

// AddLive adds the flags to a command that goes on by itself where somebody looks at a terminal.
func (w *Watch) AddLive(cmd *cobra.Command) {
	w.live = true
	cmd.Flags().DurationVar(&w.every, "every", 2*time.Second, "How often it is shown on a terminal, at least 1s. Elsewhere it is shown once.")
}

// Screen is the size of the terminal that something is written to, in characters; zero if it is none.
func Screen(out io.Writer) (width, height int) {
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		if width, height, err := term.GetSize(int(file.Fd())); err == nil {
			return width, height
		}
	}
	return 0, 0
}

// Add adds the flags to a command.
func (w *Watch) Add(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&w.again, "watch", "w", false, "Show it again and again, until the command is interrupted.")
	cmd.Flags().DurationVar(&w.every, "every", 2*time.Second, "How often it is shown with --watch, at least 1s.")
}

// Repeat shows something once, or again and again until the context ends. A terminal shows the latest only; elsewhere each follows the one before.
func (w *Watch) Repeat(ctx context.Context, out io.Writer, show func(io.Writer) error) error {
	file, terminal := out.(*os.File)
	terminal = terminal && term.IsTerminal(int(file.Fd()))
	if !w.again && !(w.live && terminal) {
		return show(out)
	}
	if w.every < shortest {
		return fmt.Errorf("--every is %s: use %s or more", w.every, shortest)
	}
	for first := true; ; first = false {
		var page bytes.Buffer
		if err := show(&page); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		switch {
		case terminal:
			// Home, and nothing below.
			fmt.Fprint(out, "\x1b[H\x1b[2J")
		case !first:
			fmt.Fprintln(out)
		}
		if _, err := page.WriteTo(out); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(w.every):
		}
	}
}
