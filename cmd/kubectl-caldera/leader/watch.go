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
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// shortest is how often something is shown again at most. Views are made once a second.
const shortest = time.Second

// AddWatch adds the flags by which something is shown again and again.
func AddWatch(cmd *cobra.Command, watch *bool, every *time.Duration) {
	cmd.Flags().BoolVarP(watch, "watch", "w", false, "Show it again and again, until the command is interrupted.")
	cmd.Flags().DurationVar(every, "every", 2*time.Second, "How often it is shown with --watch, at least 1s.")
}

// Repeat shows something once, or again and again until the context ends. A terminal shows the latest only; elsewhere each follows the one before.
func Repeat(ctx context.Context, watch bool, every time.Duration, streams genericiooptions.IOStreams, show func(io.Writer) error) error {
	if !watch {
		return show(streams.Out)
	}
	if every < shortest {
		return fmt.Errorf("--every is %s: use %s or more", every, shortest)
	}
	file, terminal := streams.Out.(*os.File)
	terminal = terminal && term.IsTerminal(int(file.Fd()))
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
			fmt.Fprint(streams.Out, "\x1b[H\x1b[2J")
		case !first:
			fmt.Fprintln(streams.Out)
		}
		if _, err := page.WriteTo(streams.Out); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
	}
}
